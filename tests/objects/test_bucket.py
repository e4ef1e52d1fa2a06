"""Claims in an object store: a real server of S3 (moto's), spoken to over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from lengthlab.store.bucket import BucketPlace
from lengthlab.store.lease import Lease, Leases, Owner
from lengthlab.store.place import Create, Names, Read, Remove, Steps, carry_out

RUN = "0123456789ab"
KEYS = {"access_key_id": "any", "secret_access_key": "any", "region": "us-east-1"}


@pytest.fixture
def place(server: str) -> BucketPlace:
    return at(server)


def at(server: str) -> BucketPlace:
    plain = {"client_options": {"allow_http": True}, "retry_config": {"max_retries": 0}}
    return BucketPlace(f"s3://lab/{uuid4().hex}", endpoint=server, **KEYS, **plain)


class Worker:
    def __init__(self, place: BucketPlace, host: str) -> None:
        self.place, self.now = place, 0.0
        self.leases = Leases(Owner(host, seconds=60), lambda: self.now)
        self.do(self.leases.beat())

    def do(self, steps: Steps[Any]) -> Any:
        return carry_out(steps, self.place)


def test_operations_are_those_of_a_place(place: BucketPlace) -> None:
    assert place.do(Create("a/1", b"one"))
    assert not place.do(Create("a/1", b"two"))
    assert place.do(Read("a/1")) == b"one"
    assert place.do(Read("a/2")) is None
    assert (place.do(Names("a")), place.do(Names("")), place.do(Names("b"))) == (["1"], ["a"], [])
    for _ in range(2):
        place.do(Remove("a/1"))
    assert place.do(Names("a")) == []


def test_of_many_that_want_a_run_at_once_one_gets_it(place: BucketPlace) -> None:
    workers = [Worker(place, f"host {number}") for number in range(8)]
    with ThreadPoolExecutor(len(workers)) as threads:
        got = list(threads.map(lambda worker: worker.do(worker.leases.claim(RUN)), workers))
    assert sum(isinstance(each, Lease) for each in got) == 1


def test_a_server_that_does_not_answer_is_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        at("http://127.0.0.1:9").do(Read("a"))
