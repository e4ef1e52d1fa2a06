"""A run that is stopped, politely or not, ends as if it had never been stopped."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import sleep

import pytest

from lengthlab.spec.run import Run
from lengthlab.spec.schedule import delayed
from lengthlab.training import train
from scripts import start_command
from small_runs import (
    checkpoint_steps,
    counts,
    delayed_run,
    end_to_end_run,
    folder_of,
    identical,
    learned,
    small_run,
    start_worker,
    wait_for,
    weights,
)

POLITE = "lengthlab: stopped; what was trained so far is kept, and the same command goes on from there"
SHORT = delayed_run(first=55, joint=30, last=25)
LONG = end_to_end_run(steps=300)
SETTLING = small_run(delayed(10, joint=5, settle=20, lr=0.01))

DIE = "import os, signal\ndie = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
CHECKPOINT_ALWAYS = """
from lengthlab.training import recorder
recorder.FIRST_CHECKPOINT_SECONDS = recorder.CHECKPOINT_SECONDS = 0.0"""
CHECKPOINT_NEVER = CHECKPOINT_ALWAYS.replace("0.0", "1e9")  # but at the end of a phase, however slow the machine is
DIE_AT_STEP = """
from lengthlab.training.state import TrainState
advance = TrainState.advance
TrainState.advance = lambda state: die() if state.step == {step} else advance(state)"""
DIE_IN_CHECKPOINT = """
from lengthlab.store import folder as store
replace = os.replace
seen = []
def dying(old, new):
    seen.extend([new] if str(new).endswith(('/checkpoint.safetensors', '/checkpoint.2.safetensors')) else [])
    die() if len(seen) == {number} else replace(old, new)
store.os.replace = dying"""

# How to die, and the step that is kept then.
MOMENTS = {
    "before the first checkpoint": (CHECKPOINT_NEVER + DIE_AT_STEP.format(step=52), 0),
    "in the first phase, with a checkpoint half written": (CHECKPOINT_ALWAYS + DIE_IN_CHECKPOINT.format(number=52), 51),
    "at the phase boundary": (CHECKPOINT_NEVER + DIE_AT_STEP.format(step=55), 55),
    "in the last phase": (CHECKPOINT_ALWAYS + DIE_AT_STEP.format(step=105), 105),
    "while measuring": ("from lengthlab.training import recorder\nrecorder.accuracy = die", 110),
}


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store where both runs went through in one go."""
    store = tmp_path_factory.mktemp("unkilled")
    for run in (SHORT, LONG):
        train(run, store)
    return store


def assert_as_if_never_stopped(store: Path, unkilled: Path, run: Run) -> None:
    assert identical(weights(store, run), weights(unkilled, run))
    assert counts(store, run) == counts(unkilled, run)
    assert learned(store, run) == learned(unkilled, run)


def test_a_run_that_is_killed_while_its_state_settles_goes_on_in_the_middle_of_the_falling_rate(tmp_path: Path) -> None:
    train(SETTLING, tmp_path / "unkilled")
    killed = start_worker(tmp_path, SETTLING, before=f"{DIE}\n{CHECKPOINT_ALWAYS}\n{DIE_AT_STEP.format(step=17)}")
    assert killed.wait() == -signal.SIGKILL
    assert checkpoint_step(tmp_path, SETTLING) == 17
    train(SETTLING, tmp_path)
    assert_as_if_never_stopped(tmp_path, tmp_path / "unkilled", SETTLING)


def checkpoint_step(store: Path, run: Run) -> int:
    """The step that a resumed run would go on from."""
    return max(checkpoint_steps(store, run), default=0)


def last_logged_step(store: Path, run: Run) -> int:
    return max((line["step"] for line in folder_of(store, run).read_log()), default=0)


def partials(store: Path) -> list[Path]:
    """What a writer that died left half written."""
    return list(folder_of(store, SHORT).path.glob(".*.partial"))


# Killed


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_ends_as_if_it_had_never_been_killed(moment: str, tmp_path: Path, unkilled: Path) -> None:
    how, kept = MOMENTS[moment]
    assert start_worker(tmp_path, SHORT, before=f"{DIE}\n{how}").wait() == -signal.SIGKILL
    assert checkpoint_step(tmp_path, SHORT) == kept
    assert bool(partials(tmp_path)) == ("half written" in moment)
    assert not folder_of(tmp_path, SHORT).finished
    train(SHORT, tmp_path)
    assert partials(tmp_path) == []
    assert_as_if_never_stopped(tmp_path, unkilled, SHORT)


def test_a_worker_killed_from_outside_goes_on_from_its_last_checkpoint(tmp_path: Path, unkilled: Path) -> None:
    worker = start_worker(tmp_path, LONG, before=CHECKPOINT_ALWAYS)
    wait_for(lambda: last_logged_step(tmp_path, LONG) >= 100)
    worker.send(signal.SIGKILL)
    assert worker.wait() == -signal.SIGKILL
    assert checkpoint_step(tmp_path, LONG) >= 99
    train(LONG, tmp_path)
    assert_as_if_never_stopped(tmp_path, unkilled, LONG)


# Stopped politely


# One step long enough for anything to happen in the middle of it.
LONG_STEP = """
import time
from lengthlab.training.state import TrainState
advance = TrainState.advance
def long_step(state):
    time.sleep(1.0 if state.step == 50 else 0.0)
    return advance(state)
TrainState.advance = long_step"""


# Both is what Ctrl-C on a command comes to: the signal is passed on, and then the pipe is closed.
@pytest.mark.parametrize("how", ["a signal", "the end of its parent", "all"])
def test_a_stopped_worker_keeps_the_step_it_had_reached(how: str, tmp_path: Path, unkilled: Path) -> None:
    worker = start_worker(tmp_path, LONG, before=LONG_STEP)
    wait_for(lambda: last_logged_step(tmp_path, LONG) >= 50)
    if how != "the end of its parent":
        worker.send(signal.SIGINT)
        sleep(0.1)
    if how != "a signal":
        worker.parent.close()
    assert worker.wait() == 130
    assert checkpoint_step(tmp_path, LONG) >= 50
    assert not folder_of(tmp_path, LONG).finished
    train(LONG, tmp_path)
    assert_as_if_never_stopped(tmp_path, unkilled, LONG)


# Ctrl-C on the command

PLAN = """
[[run]]
task = { name = "modulo-recall", modulus = 2, values = 4, keys = 12 }
model = { name = "hybrid-block", width = 8, blocks = 1, heads = 2, mlp = 1, positions = "none", scores = "log-n" }
schedule = { name = "end-to-end", joint = 300, lr = 1e-2 }
lengths = [1, 3]
batch = 4
evaluate = [3]
"""


TRAIN = ("train", "plan.toml", "--store", "store")


def ending(process: BaseProcess, folder: Path) -> tuple[int | None, str]:
    """Exit code, and what was said on standard error."""
    process.join(120)
    return process.exitcode, (folder / "err.txt").read_text()


@dataclass(frozen=True)
class Interrupted:
    """`lengthlab train`, stopped by Ctrl-C and then given again: how both ended, and what was kept in between."""

    store: Path
    first: tuple[int | None, str]
    logged: int
    kept: int
    again: tuple[int | None, str]


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Interrupted:
    folder = tmp_path_factory.mktemp("interrupted")
    store = folder / "store"
    (folder / "plan.toml").write_text(PLAN)
    process = start_command(folder, *TRAIN)
    wait_for(lambda: last_logged_step(store, LONG) >= 50)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGINT)
    first = ending(process, folder)
    logged, kept = last_logged_step(store, LONG), checkpoint_step(store, LONG)
    return Interrupted(store, first, logged, kept, ending(start_command(folder, *TRAIN), folder))


def test_ctrl_c_ends_in_one_polite_line(interrupted: Interrupted) -> None:
    code, said = interrupted.first
    assert code == 130
    assert said.splitlines()[-1] == POLITE
    assert said.count("lengthlab: ") == 1
    assert "Traceback" not in said


def test_ctrl_c_keeps_what_was_trained_so_far(interrupted: Interrupted) -> None:
    assert interrupted.kept >= interrupted.logged


def test_the_command_given_again_after_ctrl_c_ends_as_if_never_stopped(interrupted: Interrupted, unkilled: Path) -> None:
    code, said = interrupted.again
    assert code == 0, said
    assert_as_if_never_stopped(interrupted.store, unkilled, LONG)
