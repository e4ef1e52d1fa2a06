"""A run that is killed while it is measured has lost one length at the most."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from lengthlab.evaluation.accuracy import accuracy
from lengthlab.store.folder import MEASURED, WEIGHTS
from lengthlab.training import measured, recorder, train
from small_runs import Killed, counts, end_to_end_run, files_in, folder_of, identical, start_worker, weights

RUN = end_to_end_run(steps=20, evaluate=(3, 9, 6, 12))
DIE_AT = """
import os, signal
from lengthlab.training import measured, recorder
accuracy = recorder.accuracy
def dying(network, task, lengths, *rest, **named):
    if list(lengths) == [6]:
        os.kill(os.getpid(), signal.SIGKILL)
    return accuracy(network, task, lengths, *rest, **named)
recorder.accuracy, measured.KEEP_SECONDS = dying, 0.0
"""


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("unkilled")
    train(RUN, store)
    return store


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A store where two of four lengths were measured."""
    assert start_worker(tmp_path, RUN, before=DIE_AT).wait() == -signal.SIGKILL
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths that are measured."""
    seen: list[int] = []

    def recorded(network: Any, task: Any, lengths: Iterable[int], *rest: Any) -> Any:
        seen.extend(lengths)
        return accuracy(network, task, lengths, *rest)

    monkeypatch.setattr(recorder, "accuracy", recorded)
    return seen


def kept(store: Path) -> dict[str, Any]:
    return folder_of(store, RUN).read_json(MEASURED)


def test_a_run_killed_between_two_lengths_goes_on_with_the_next(killed: Path, unkilled: Path, asked: list[int]) -> None:
    folder = folder_of(killed, RUN)
    assert not folder.finished
    assert {count["length"] for count in kept(killed)["counts"]} == {3, 9}
    assert identical(weights(killed, RUN), weights(unkilled, RUN)), "what was learned is there before it is measured"
    train(RUN, killed)
    assert asked == [6, 12]
    assert counts(killed, RUN) == counts(unkilled, RUN)
    assert set(files_in(folder.path)) == {"run.json", "log.jsonl", WEIGHTS, "result.json"}


def test_counts_of_other_weights_are_not_taken_for_these(killed: Path, unkilled: Path, asked: list[int]) -> None:
    folder_of(killed, RUN).write_json(MEASURED, kept(killed) | {"weights": "0" * 64})
    train(RUN, killed)
    assert asked == [3, 9, 6, 12]
    assert counts(killed, RUN) == counts(unkilled, RUN)


@pytest.mark.parametrize("change", ["", "{", "[]", '"counts": [{}]', '"counts": [7]', '"counts": 7'])
def test_where_nothing_can_be_relied_on_everything_is_measured_again(
    change: str, killed: Path, unkilled: Path, asked: list[int]
) -> None:
    whole = kept(killed)
    text = json.dumps(whole | json.loads(f"{{{change}}}")) if "counts" in change else change
    (folder_of(killed, RUN).path / MEASURED).write_text(text)
    train(RUN, killed)
    assert asked == [3, 9, 6, 12]
    assert counts(killed, RUN) == counts(unkilled, RUN)


def test_what_takes_a_moment_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(network: Any, task: Any, lengths: Iterable[int], *rest: Any) -> Any:
        if list(lengths) == [12]:
            raise Killed
        return accuracy(network, task, lengths, *rest)

    monkeypatch.setattr(measured, "KEEP_SECONDS", 1e9)
    monkeypatch.setattr(recorder, "accuracy", dying)
    with pytest.raises(Killed):
        train(RUN, tmp_path)
    assert (folder_of(tmp_path, RUN).path / WEIGHTS).exists()
    assert not (folder_of(tmp_path, RUN).path / MEASURED).exists()
