"""The time that runs will take: what is timed for what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Phase, Schedule, end_to_end
from lengthlab.tasks import ModuloRecall
from lengthlab.training import forecast as forecasting
from lengthlab.training.forecast import forecast, kinds_of
from lengthlab.training.pace import Pace
from small_runs import TASK, delayed_run, end_to_end_run, small_model, small_run

RUN = end_to_end_run()


@pytest.mark.parametrize(
    "other",
    [
        replace(RUN, task=ModuloRecall(modulus=2, values=4, keys=12, questions=("recall",))),
        replace(RUN, lengths=(1, 12)),
        replace(RUN, batch=5),
        replace(RUN, model=small_model(16)),
        small_run(Schedule("mine", (Phase(60, off=("attention",)),))),
        small_run(Schedule("mine", (Phase(60, asks=("modulo",)),))),
    ],
)
def test_steps_of_another_task_length_batch_model_or_phase_are_timed_by_themselves(other: Run) -> None:
    assert kinds_of(RUN)[0] != kinds_of(other)[0]


@pytest.mark.parametrize(
    "other",
    [replace(RUN, seed=5), replace(RUN, evaluate=(5,)), replace(RUN, schedule=end_to_end(7, lr=1e-5))],
)
def test_steps_of_another_seed_rate_or_number_are_timed_once(other: Run) -> None:
    assert kinds_of(RUN)[0] == kinds_of(other)[0]


def test_every_kind_is_timed_once_and_counts_for_its_own_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    long = replace(RUN, task=replace(TASK, questions=("recall",)))
    asked: list[tuple[Run, int]] = []

    def paces(phases: list[tuple[Run, int]], device: str, precision: str | None) -> list[Pace]:
        asked.extend(phases)
        return [Pace(seconds, seconds) for seconds in (10.0 if run == long else 1.0 for run, _ in phases)]

    monkeypatch.setattr(forecasting, "paces", paces)
    found = forecast([RUN, replace(RUN, seed=1), long], "cpu", {long.id: 58})
    assert len(asked) == 2
    assert dict(found.steps) == {RUN.id: 1.0, replace(RUN, seed=1).id: 1.0, long.id: 10.0}
    # Two steps of the slow one, 12 seconds each beside the two others, and meanwhile two of each; then they go on alone.
    assert found.seconds == pytest.approx(24 + 58 * 2)


def test_what_is_behind_a_run_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = delayed_run(60, 60, 40)
    asked: list[tuple[Run, int]] = []
    monkeypatch.setattr(forecasting, "paces", lambda phases, *_: asked.extend(phases) or [Pace(1.0, 1.0)] * len(phases))
    assert forecast([run], "cpu", {run.id: 70}).seconds == 90
    assert [phase for _, phase in asked] == [2]  # the last phase has the same parts on as the second
