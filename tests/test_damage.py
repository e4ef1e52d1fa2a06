"""A checkpoint that the disk has damaged: the run goes on from the one before it, says so, and ends as if nothing had been."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save

from lengthlab.errors import LabError
from lengthlab.store.folder import CHECKPOINTS
from lengthlab.training import recorder, train
from lengthlab.training.checkpoint import load_checkpoint
from lengthlab.training.state import TrainState
from small_runs import (
    CPU,
    checkpoint_steps,
    counts,
    end_to_end_run,
    files_in,
    folder_of,
    identical,
    learned,
    train_until_killed,
    weights,
)

RUN = end_to_end_run(steps=20, seed=100)
ALWAYS, NEVER = -1.0, 1e9
"""Seconds between checkpoints."""


def flipped(data: bytes, place: int, bit: int = 0) -> bytes:
    return data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "a byte short": lambda data: data[:-1],
    "a byte too long": lambda data: data + b"\0",
    "zeros": lambda data: bytes(len(data)),
    "a bit of the last number": lambda data: flipped(data, len(data) - 1),
    "a bit of the run's name": lambda data: flipped(data, data.index(RUN.id.encode())),
    "a bit of a tensor's name": lambda data: flipped(data, data.index(b"weights/")),
    "a bit of the digest": lambda data: flipped(data, data.index(b"sha256") + 12),
}


@pytest.fixture(scope="module", autouse=True)
def often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "LOG_STEPS", 2)
        yield


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("alone")
    train(RUN, store)
    return store


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores with checkpoints of steps 10 and 11, to be copied."""
    store = tmp_path_factory.mktemp("killed")
    train_until_killed(RUN, store, step=11, checkpoint_seconds=ALWAYS)
    assert list(checkpoint_steps(store, RUN)) == [11, 10]
    return store


@pytest.fixture
def store(killed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(killed, tmp_path / "store")


def ends_as_ever(store: Path, alone: Path) -> None:
    train(RUN, store)
    assert identical(weights(store, RUN), weights(alone, RUN))
    assert counts(store, RUN) == counts(alone, RUN)
    assert learned(store, RUN) == learned(alone, RUN)
    assert files_in(store).keys() == files_in(alone).keys()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_run_whose_newest_checkpoint_is_damaged_goes_on_from_the_one_before(
    damage: str, store: Path, alone: Path, caplog: pytest.LogCaptureFixture
) -> None:
    newest, before = checkpoint_steps(store, RUN).values()
    newest.write_bytes(DAMAGES[damage](newest.read_bytes()))
    train_until_killed(RUN, store, step=10, checkpoint_seconds=NEVER)  # it cannot come back: its lines of the log are gone
    assert list(checkpoint_steps(store, RUN)) == [10]
    assert max(line["step"] for line in folder_of(store, RUN).read_log()) == 10
    (said,) = caplog.messages
    assert said.startswith(f"{newest} was damaged and is removed (")
    assert said.endswith(f"): going on from step 10, in {before.name}")
    assert "\n" not in said
    ends_as_ever(store, alone)


def test_damage_is_met_again_and_again_and_in_the_older_one_too(store: Path, alone: Path) -> None:
    for step in (13, 15, 16, 18):
        for path in list(checkpoint_steps(store, RUN).values())[step % 2 : step % 2 + 1]:
            path.write_bytes(path.read_bytes()[:-1])
        train_until_killed(RUN, store, step=step, checkpoint_seconds=ALWAYS)
        assert list(checkpoint_steps(store, RUN)) == [step, step - 1]
    ends_as_ever(store, alone)


def test_whatever_bit_is_changed_the_run_goes_on_from_a_state_it_was_in(store: Path) -> None:
    newest, _ = checkpoint_steps(store, RUN).values()
    right = {step: load(path.read_bytes()) for step, path in checkpoint_steps(store, RUN).items()}
    whole, folder, state = newest.read_bytes(), folder_of(store, RUN), TrainState(RUN, CPU)
    header = 8 + int.from_bytes(whole[:8], "little")
    places = [*range(70), *range(70, header, 97), *range(header, len(whole), len(whole) // 20)]
    for place in places:
        newest.write_bytes(flipped(whole, place, bit=place % 8))
        state.step = 0
        load_checkpoint(state, folder)
        assert state.step == 10 or b"sha256" not in newest.read_bytes()
        for name, value in state.network.state_dict().items():
            assert torch.equal(value, right[state.step][f"weights/{name}"]), place


def test_two_damaged_checkpoints_are_named_and_left_alone(store: Path) -> None:
    paths = [folder_of(store, RUN).path / name for name in CHECKPOINTS]
    for path in paths:
        path.write_bytes(path.read_bytes() + b"\0")
    before = files_in(store)
    with pytest.raises(LabError, match=f"^{paths[0]} and {paths[1]} are truncated or no checkpoints: remove them to train"):
        train(RUN, store)
    assert files_in(store) == before


def with_note(path: Path, **changes: object) -> bytes:
    """As another version might write it: whole, with a note of its own."""
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    note = {**json.loads(header["__metadata__"]["lengthlab"]), **changes}
    note = {name: value for name, value in note.items() if value is not None}
    return save(load(data), metadata={"lengthlab": json.dumps(note)})


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sha256": None, "run": "ffffffffffff"}, "belongs to run ffffffffffff"),
        ({"sha256": None, "precision": None}, "not a checkpoint"),
        ({"sha256": None, "step": 1_000}, "not a checkpoint"),
    ],
)
def test_a_whole_checkpoint_that_is_not_of_this_run_is_refused_whichever_of_the_two_it_is(
    changes: dict[str, object], said: str, which: int, store: Path
) -> None:
    both = list(checkpoint_steps(store, RUN).values())
    both[which].write_bytes(with_note(both[which], **changes))
    both[1 - which].write_bytes(both[1 - which].read_bytes()[:-1])  # damage beside it is not touched, either
    before = files_in(store)
    with pytest.raises(LabError, match=f"^{both[which]} .*{said}"):
        train(RUN, store)
    assert files_in(store) == before


def test_a_checkpoint_without_a_digest_is_taken_up(store: Path, alone: Path) -> None:
    newest, _ = checkpoint_steps(store, RUN).values()
    newest.write_bytes(with_note(newest, sha256=None))
    ends_as_ever(store, alone)


def test_weights_with_a_changed_bit_are_named(alone: Path, tmp_path: Path) -> None:
    store = shutil.copytree(alone, tmp_path / "store")
    path = folder_of(store, RUN).path / "weights.safetensors"
    path.write_bytes(flipped(path.read_bytes(), len(path.read_bytes()) - 1))
    with pytest.raises(
        LabError, match=r"weights\.safetensors is missing, truncated or of another model \(its bytes are not those"
    ):
        train(RUN, store).accuracy(length=4)
