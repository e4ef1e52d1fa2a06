"""Claims in an object store: a real server of S3 (moto's), spoken to over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import boto3
import pytest
from moto.server import ThreadedMotoServer

from lengthlab.store.bucket import BucketPlace, get, put
from lengthlab.store.lease import Lease, Leases, Owner
from lengthlab.store.place import Create, Names, Read, Steps, carry_out

RUN = "0123456789ab"
KEYS = {"access_key_id": "any", "secret_access_key": "any", "region": "us-east-1"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    words = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=url, **words).create_bucket(Bucket="lab")
    yield url
    server.stop()


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


def test_of_many_that_want_a_run_at_once_one_gets_it(place: BucketPlace) -> None:
    workers = [Worker(place, f"host {number}") for number in range(8)]
    with ThreadPoolExecutor(len(workers)) as threads:
        got = list(threads.map(lambda worker: worker.do(worker.leases.claim(RUN)), workers))
    assert sum(isinstance(each, Lease) for each in got) == 1


def test_a_late_owner_writes_to_names_that_nobody_reads(place: BucketPlace) -> None:
    one, two = Worker(place, "one"), Worker(place, "two")
    first = one.do(one.leases.claim(RUN))
    one.do(put(first, "checkpoint", b"one"))
    assert two.do(two.leases.claim(RUN)) is None
    two.now = 1000.0
    second = two.do(two.leases.claim(RUN))
    assert (first.number, second.number) == (1, 2)
    assert two.do(get(RUN, "checkpoint")) == b"one"
    two.do(put(second, "checkpoint", b"two"))
    one.do(put(first, "checkpoint", b"too late"))
    assert two.do(get(RUN, "checkpoint")) == b"two"
    assert not one.do(one.leases.holds(first))
    assert not one.do(one.leases.end(first, "finished"))


def test_what_is_not_committed_is_not_there(place: BucketPlace) -> None:
    one = Worker(place, "one")
    lease = one.do(one.leases.claim(RUN))
    steps = put(lease, "checkpoint", b"torn")
    place.do(next(steps))  # and killed
    assert one.do(get(RUN, "checkpoint")) is None


def test_a_server_that_does_not_answer_is_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        at("http://127.0.0.1:9").do(Read("a"))
