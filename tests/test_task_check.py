"""A task that lies is found before it is trained: in full by `lengthlab check`, and at once where it would be trained."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

import own_tasks
from command import Call
from lengthlab.errors import LabError
from lengthlab.inspection import check_task
from lengthlab.inspection.task_check import CHANCE, examine_task
from lengthlab.tasks import Mixture, ModuloRecall, Task

FILE = Path(own_tasks.__file__)
NAMES, DRAWS, WORDS = "has names of its own", "draws what it is asked for", "keeps to its words"
PADDING, NEXT, SOLVED = (
    "pads on the right, asks nothing there",
    "is answered by the tokens that follow",
    "is solved as it is drawn",
)
RANDOM, SIZES = "draws by its generator alone", "has the sizes that it states"
VARIED = "asks everything, of many sequences"
FULL = ("OtherShape", "NotRandom")
"""Mistakes that the full check alone tells, or tells in these words."""
LONGER = "is longer where a greater length is asked"
EXAMPLES = Path(__file__).parent.parent / "examples"

MISTAKES = [
    ("WrongChance", CHANCE, "chance states 0.25 for 'parity' at n = "),
    ("NoChance", CHANCE, "gives None for 'parity'; what is needed is a share from 0 to 1"),
    ("Contradicting", NEXT, "the answer to 'parity' is '"),
    ("WrongSolve", SOLVED, "of 'parity' draw wrote '1', solve says '0'"),
    ("CopyingSolve", SOLVED, "solve repeats what stands where the answer to 'parity' is"),
    ("FailingSolve", SOLVED, "it fails: KeyError: '<parity>'"),
    ("TorchRandom", RANDOM, "draw takes random numbers from torch, which the whole process shares"),
    ("PythonRandom", RANDOM, "draw takes random numbers from Python's random"),
    ("OwnRandom", RANDOM, "two draws from a generator in the same state differ"),
    ("NotRandom", VARIED, "generators in different states give the same sequences"),
    ("FewWords", WORDS, "a token is 4, and there are words for 0 to 3"),
    ("WordTwice", NAMES, "its words have '0' more than once"),
    ("WrongTokens", SIZES, "a sequence of n = 1 has 4 tokens, where its `tokens` says 3"),
    ("WrongLength", PADDING, "a sequence of n = 1 is asked where no token follows, at position 2 (its length_B is 3)"),
    ("AskedInPadding", PADDING, "is asked where no token follows"),
    ("NamedAll", NAMES, "a question is named 'all'"),
    ("NamedBoth", NAMES, "a question is named 'both'"),
    ("OtherShape", DRAWS, "the target of 'parity' has shape (300, 27); what is needed is (300, T)"),
]


def made(name: str) -> Task:
    task: Task = getattr(own_tasks, name)()
    return task


@pytest.mark.parametrize(("name", "what", "told"), MISTAKES)
def test_a_mistake_is_found_and_told(name: str, what: str, told: str) -> None:
    report = check_task(made(name))
    failed = {check.what: check.evidence for check in report.checks if check.verdict == "does not hold"}
    assert told in failed[what]
    assert not report.holds


@pytest.mark.parametrize(("name", "told"), [(name, told) for name, _, told in MISTAKES if name not in FULL])
def test_the_quick_part_finds_it_too(name: str, told: str) -> None:
    with pytest.raises(LabError, match=f"task '{made(name).name}' is not sound: ") as refused:
        examine_task(made(name), (1, 4, 8))
    assert told in str(refused.value)


def test_a_stated_chance_that_is_wrong_is_told_with_both_numbers() -> None:
    (evidence,) = (check.evidence for check in check_task(made("WrongChance")).checks if check.what == CHANCE)
    assert "chance states 0.25" in evidence
    measured = float(evidence.partition("is right in ")[2].split()[0])
    assert measured == pytest.approx(0.5, abs=0.04)


def test_lengths_that_make_no_difference_are_told_in_full_and_do_not_keep_from_training() -> None:
    report = check_task(made("SameLength"))
    failed = {check.what: check.evidence for check in report.checks if check.verdict == "does not hold"}
    assert failed == {LONGER: "33 tokens at n = 1, 33 at n = 25: draw makes nothing of the lengths it is given"}
    examine_task(made("SameLength"), (1, 8))  # a task may be harder, not longer


@pytest.mark.parametrize(
    "task", [own_tasks.Parity(), ModuloRecall(), ModuloRecall(keys=3), Mixture((own_tasks.Parity(), ModuloRecall(keys=32)))]
)
def test_a_sound_task_passes_everything(task: Task) -> None:
    report = check_task(task)
    assert {check.what: check.evidence for check in report.checks if check.verdict != "holds"} == {}
    examine_task(task, (1, 3))


@pytest.mark.parametrize("reference", ["parity_task.py:Parity", "copy_task.py:Copy", "addition_task.py:Addition"])
def test_the_examples_pass(call: Call, reference: str) -> None:
    done = call("check", f"{EXAMPLES / reference}")
    assert (done.code, done.err) == (0, ""), done.out
    assert done.out.count("\n  holds") == 12


def test_what_is_drawn_to_try_a_task_leaves_no_trace_in_the_process() -> None:
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    for name in ("TorchRandom", "PythonRandom"):
        check_task(made(name))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before[1:]


def test_a_task_of_a_mixture_that_is_not_sound_is_found() -> None:
    with pytest.raises(LabError, match=r"task .parity. is not sound: chance states 0\.25"):
        examine_task(Mixture((ModuloRecall(keys=32), made("WrongChance"))), (1, 8))


def test_a_length_beyond_the_task_is_refused(call: Call) -> None:
    call("check", "modulo-recall", "--set", "keys=8", "--length", 9).refused("length 9: task 'modulo-recall' reaches 8 at most")


def test_check_tells_tasks_from_models_and_gives_a_list(call: Call) -> None:
    done = call("check", f"{FILE}:WrongChance", "--length", 8)
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines()[0] == f"{FILE}:WrongChance: a task, tried at n = 1, 2, 3, 5, 8"
    assert done.out.count("\n  holds") == 11
    assert done.out.count("\n  does not hold  is guessed as often as it states") == 1
    data = json.loads(call("check", f"{FILE}:WrongChance", "--json").out)
    assert (data["holds"], data["lengths"]) == (False, [1, 2, 3, 5, 10, 25])
    assert call("check", f"{FILE}:parity").out.startswith(f"{FILE}:parity: a task")


def test_a_length_that_has_no_room_is_refused_with_the_memory_it_would_need(call: Call) -> None:
    call("check", f"{FILE}:Parity", "--length", 10**12).refused("up to length 1000000000000 would need at least 112 TB")


def test_what_a_task_is_made_with_can_be_chosen(call: Call) -> None:
    done = call("check", "modulo-recall", "--set", "keys=8", "--set", "modulus=3")
    assert done.code == 0, done.out
    assert "22 words" in done.out
    assert "n = 1, 2, 3, 5, 8" in done.out
    call("check", "modulo-recall", "--set", "kyes=8").refused("kyes", "did you mean 'keys'?")
    call("check", "modulo-recall", "--set", "keys=1000000000000").refused("the words of task.keys", "60 TB of memory")
