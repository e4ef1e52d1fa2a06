"""The study of rules: every arm is the run it is named after, and its claims are of what is measured."""

from __future__ import annotations

import pytest
import torch

from lengthlab.experiments import find_study, rules
from lengthlab.models import PositionIds
from lengthlab.spec.run import Run
from lengthlab.tasks import Few, Mixture, RulePointers, RulePrograms
from lengthlab.tasks.rules import RuleTask
from lengthlab.training.state import TrainState

STUDY = find_study("rules")


@pytest.mark.parametrize("size", ["gpu", "cpu"])
def test_every_arm_is_the_run_it_is_named_after(size: str) -> None:
    runs = STUDY.runs(size, [0])
    assert len({(arm, run.seed) for arm, run in runs}) == len({run.id for _, run in runs}) == len(runs)
    for arm, run in runs:
        assert (arm.model, arm.task, arm.training) == (run.model.name, run.task.name, run.schedule.name)
        assert Run.from_json(run.to_json()) == run
        if arm.training == "adapted":
            continue
        assert isinstance(run.task, RuleTask)
        form, way, *to_ten = arm.name.split(", ")
        assert run.task.written == form
        assert ("rope" in str(run.to_json()["model"])) == (way == "rope")
        longer = to_ten or isinstance(run.task, RulePointers)
        assert run.lengths == ((1, 10) if longer else (1, 3) if size == "cpu" else (1, 5))


def test_rules_that_were_never_seen_are_measured() -> None:
    tasks = [run.task for arm, run in STUDY.runs("gpu", [0], [STUDY.section("meta")])]
    assert {(task.programs, task.held) for task in tasks if isinstance(task, RulePrograms)} == {(1_000, 200)}
    assert len(tasks) == 12


def test_new_rules_are_measured_on_inputs_that_training_does_not_have() -> None:
    for arm, run in STUDY.runs("gpu", [0], [STUDY.section("adaptation")]):
        form = arm.name.split(", ")[0]
        drawn = [run.task_in(phase) for phase in run.schedule.phases]
        assert isinstance(drawn[-1], Mixture)
        assert drawn[-1].drawn == ("few-rule-programs/answer",)
        assert isinstance(run.task, Mixture)
        few, measured = drawn[-1].tasks[1], run.task.as_measured.tasks[1]
        assert isinstance(few, Few)
        assert isinstance(measured, Few)
        assert isinstance(few.task, RulePrograms)
        assert (few.samples, measured.samples, few.task.first, few.task.programs, few.task.form) == (100, 0, 1_000, 5, form)


def test_lists_are_pointed_into_by_the_rule_that_the_arm_says() -> None:
    small, large = (
        STUDY.runs(size, [0], [STUDY.section(part)]) for size, part in (("cpu", "small-pointers"), ("gpu", "pointers"))
    )
    assert (len(small), len(large)) == (3, 6)
    for arm, run in (*small, *large):
        assert isinstance(run.task, RulePointers)
        assert dict(arm.about)["rule"] == run.task.rule
        assert run.task.longest >= max(run.evaluate)
        assert run.model.position_ids == PositionIds(run.task.ids, random_start=True, tables=2, std=1.0, orthogonal=True)


def test_the_order_is_claimed_for_four_rules() -> None:
    claims = [claim for claim in STUDY.claims if claim.size == "gpu" and claim.section not in ("adaptation", "pointers")]
    assert [claim.section for claim in claims] == ["coin-flips", "digit-sum", "addition", "last-letters"]
    assert all(len(claim.checks) == 4 for claim in claims)


def test_the_order_is_claimed_for_pointers_too() -> None:
    claims = [claim for claim in STUDY.claims if claim.section == "pointers"]
    forms = [[(check.arm.name, check.bound.arm.name) for check in claim.checks] for claim in claims]  # type: ignore[union-attr]
    assert forms == [
        [(f"scratchpad, {rule}", f"direct, {rule}"), (f"trace, {rule}", f"scratchpad, {rule}")] for rule in rules.POINTED
    ]


def test_a_small_arm_makes_a_step() -> None:
    (run,) = [run for arm, run in STUDY.runs("cpu", [100]) if arm.training == "delayed"]
    state = TrainState(run, torch.device("cpu"))
    first = state.advance()
    assert 0 < first < 10
