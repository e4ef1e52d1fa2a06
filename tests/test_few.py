"""A task of which training has few samples: they are always the same, and what is measured is drawn anew."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lengthlab.errors import LabError
from lengthlab.spec.plan import read_plan
from lengthlab.tasks import Addition, Copy, Few, Mixture, RulePrograms


def drawn(task: Few, size: int, lengths: tuple[int, int], seed: int) -> set[tuple[str, ...]]:
    batch = task.sample(size, lengths, torch.Generator().manual_seed(seed))
    return {tuple(task.decode(tokens_T)) for tokens_T in batch.tokens_BT}


def test_training_has_so_many_samples_of_each_length_and_no_others() -> None:
    few = Few(Addition(), samples=7)
    first = drawn(few, 400, (4, 6), seed=0)
    assert len(first) == 3 * 7
    assert drawn(few, 400, (4, 6), seed=1) == first
    assert drawn(Few(Addition(), samples=7, seed=1), 400, (4, 6), seed=0).isdisjoint(first)


def test_what_is_measured_is_drawn_anew() -> None:
    few = Few(RulePrograms("direct", programs=3, held=2), samples=1)
    measured = few.as_measured
    assert (measured.name, measured.task) == (few.name, few.task.as_measured)
    assert len(drawn(few, 50, (6, 6), seed=0)) == 1
    assert len(drawn(measured, 50, (6, 6), seed=0)) == 50


def test_its_samples_are_right_and_of_the_lengths_that_were_asked_for() -> None:
    few = Few(Copy(letters="repeated", alphabet=5), samples=3)
    n_B = torch.tensor([4, 2, 4, 3])
    batch = few.draw(n_B, torch.Generator().manual_seed(0))
    assert batch.length_B.tolist() == [2 * n + 3 for n in n_B.tolist()]
    for tokens_T in batch.tokens_BT:
        words = few.decode(tokens_T)
        answer = few.solve(words[: words.index("<sep>") + 1])["copy"]
        assert words[words.index("<sep>") + 1 :] == list(answer)


def test_it_mixes_with_the_task_that_it_is_of() -> None:
    task = RulePrograms("direct", programs=5)
    mixed = Mixture((task, Few(RulePrograms("direct", first=5, programs=2), 10)), tag=False, measured=(0, 1))
    assert mixed.words == task.words
    assert mixed.as_measured.weights == (0.0, 1.0)


PLAN = """
[[run]]
task = { name = "few", samples = 9, task = { name = "copy", letters = "repeated" } }
model = { name = "lstm", width = 8 }
schedule = { name = "end-to-end", joint = 2 }
lengths = [1, 4]
"""


def test_a_plan_names_it_with_its_task(tmp_path: Path) -> None:
    plan = tmp_path / "run.toml"
    plan.write_text(PLAN, encoding="utf-8")
    (run,) = read_plan(plan)
    assert isinstance(run.task, Few)
    assert (run.task.samples, run.task.task.name) == (9, "copy")


@pytest.mark.parametrize("wrong", [{"samples": -1}, {"samples": 1.5}, {"seed": -2}])
def test_numbers_that_cannot_be_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(LabError, match=r"task\."):
        Few(Copy(), **wrong)


def test_a_task_is_asked_for() -> None:
    with pytest.raises(LabError, match="few samples"):
        Few("copy")  # type: ignore[arg-type]
