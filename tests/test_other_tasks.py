"""Learning from other tasks: the studies are what they say, at equal compute, and the page's examples run."""

from __future__ import annotations

import re
from dataclasses import replace
from math import isfinite
from pathlib import Path

import pytest
import torch

import lengthlab as ll
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.experiments import Arm, Size, Study, auxiliary, hints
from lengthlab.experiments.association import ALONE_STRINGS, ASSOCIATION, LABELS, LONG, LONG_STRINGS, RECIPES
from lengthlab.experiments.auxiliary import AUXILIARY
from lengthlab.experiments.hints import HINTS
from lengthlab.report.evidence import Evidence
from lengthlab.report.markdown import markdown
from lengthlab.report.results import gather
from lengthlab.report.study_page import study_page
from lengthlab.spec.run import Run
from lengthlab.store.rows import Row
from lengthlab.tasks import Mixture
from lengthlab.tasks.lengths import spread
from lengthlab.training.state import TrainState
from small_runs import CPU

PAGE = Path(__file__).parents[1] / "docs" / "other-tasks.md"
STUDIES = (HINTS, ASSOCIATION, AUXILIARY)
SIZES = [(study, size) for study in STUDIES for size in study.sizes]
every_size = pytest.mark.parametrize(("study", "size"), SIZES, ids=[f"{study.name}, {size.name}" for study, size in SIZES])


@every_size
def test_every_arm_is_the_run_it_is_named_after_and_measures_its_main_task_alone(study: Study, size: Size) -> None:
    runs = study.runs(size.name, [0])
    assert len({run.id for _, run in runs}) == len(runs)
    for arm, run in runs:
        assert (arm.model, arm.task, arm.training) == (run.model.name, run.task.name, run.schedule.name)
        assert Run.from_json(run.to_json()) == run
        assert run.trained == run.lengths == size.trained
        if isinstance(run.task, Mixture):
            assert [task.name for task in run.task.asked_tasks] == [run.task.tasks[0].name]
            assert run.task.chances(size.lengths[-1])["all"] == run.task.tasks[0].chances(size.lengths[-1])["all"]


def test_hints_are_of_equal_samples_and_the_bar_is_of_repeated_numbers() -> None:
    runs = HINTS.runs("gpu", [0])
    assert {(run.steps, run.batch) for _, run in runs} == {(12_000, 512)}
    assert max(run.drawn[1] for _, run in runs) == 20
    bar = HINTS.claims[0]
    assert {(check.length, check.bound) for check in bar.checks} == {(100, 0.90)}
    assert {check.arm for check in bar.checks} == set(HINTS.section("repeated").arms)
    assert bar.exceptions == len(bar.checks) - 1
    assert {dict(arm.about)["helper"] for arm in hints.REPEATED} == {"none", "successor", hints.REPETITIVE}


def test_a_mixture_of_sort_with_sort_on_repetitive_lists_tells_them_apart_by_nothing() -> None:
    tags = {dict(arm.about)["helper"]: run.task.tag for arm, run in HINTS.runs("gpu", [0]) if isinstance(run.task, Mixture)}
    assert tags == {hints.REPETITIVE: False} | dict.fromkeys(("successor", *hints.OTHERS, "subsequence"), True)


@pytest.mark.parametrize("size", ["gpu", "cpu"])
def test_association_reads_as_many_tokens_with_helpers_as_without(size: str) -> None:
    read = {}
    for way in LABELS:
        run = RECIPES[size].run(way)
        batch = run.task.draw_training(*_drawn(run))
        read[way] = run.steps * float(batch.length_B.float().mean())
    assert max(read.values()) / min(read.values()) < 1.05
    assert RECIPES["gpu"].run("long").drawn == (1, 32)
    assert RECIPES["gpu"].run("alone").drawn == (1, 16)
    assert RECIPES["cpu"].run("long").drawn == (1, 8)
    assert RECIPES["cpu"].run("short").drawn == (1, 4)
    assert ASSOCIATION.seeds == 5


def _drawn(run: Run) -> tuple[torch.Tensor, torch.Generator]:
    generator = torch.Generator().manual_seed(0)
    return spread(3_000, run.lengths, generator), generator


def test_with_a_delay_the_first_phase_has_no_recall_and_steps_are_the_same() -> None:
    runs = {str(arm): run for arm, run in AUXILIARY.runs("gpu", [0])}
    assert len({run.steps for run in runs.values()}) == 1
    first = runs["delayed, helpers: both"].schedule.phases[0]
    assert (first.mixture, first.off) == ((2.0, 1.0, 0.0), ("attention",))
    assert first.asks == ("modulo-recall/modulo", "running-sum/modulo")


TRAINED: list[tuple[Study, Arm, str]] = [
    (HINTS, hints.hint_arm("repeated", "tempered", "successor", 0.5), "cpu"),
    (HINTS, hints.hint_arm("distinct", "log-n", "subsequence", 0.5), "gpu"),
    (ASSOCIATION, LONG, "gpu"),
    (ASSOCIATION, LONG_STRINGS, "cpu"),
    (ASSOCIATION, ALONE_STRINGS, "cpu"),
    (AUXILIARY, auxiliary.DELAYED["both"], "cpu"),
    (AUXILIARY, auxiliary.END_TO_END["running sum"], "cpu"),
]


@pytest.mark.parametrize(("study", "arm", "size"), TRAINED, ids=[f"{arm}, {size}" for _, arm, size in TRAINED])
def test_an_arm_learns_and_is_measured_at_its_longest_length(study: Study, arm: Arm, size: str) -> None:
    run = study.run(arm, size)
    own = study.size_of(arm, study.size(size))
    assert own
    state = TrainState(replace(run, batch=4), CPU)
    assert isfinite(state.advance())
    count = accuracy(state.network, run.task, own.lengths[-1:], samples=2)[-1]
    assert (count.length, count.question, count.total) == (own.lengths[-1], "all", 2)


@every_size
def test_its_page_has_every_part_from_made_up_rows(study: Study, size: Size) -> None:
    shown = {question for section in study.sections_at(size) for question in section.questions}
    rows = [
        Row(
            length=length,
            question=question,
            correct=900,
            total=1000,
            experiment=study.name,
            arm=arm.name,
            size=size.name,
            model=arm.model,
            task=arm.task,
            training=arm.training,
            seed=seed,
            run=f"{number:011x}{seed}",
        )
        for number, arm in enumerate(study.arms)
        if (own := study.size_of(arm, size))
        for seed in (0, 1)
        for length in own.lengths
        for question in shown
    ]
    text = markdown(study_page(gather(study, size, study.sections_at(size), Evidence(tuple(rows)))))
    assert all(f"## {section.title}" in text for section in study.sections_at(size))
    assert "| missing |" not in text


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_python_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(blocks("python")) >= 2
    for block in blocks("python"):
        exec(compile(block.replace("3_000", "2").replace("1_000", "2").replace("batch=64", "batch=8"), str(PAGE), "exec"), {})


def test_the_files_of_the_page_are_runs(tmp_path: Path) -> None:
    (tmp_path / "my_task.py").write_text((PAGE.parents[1] / "examples" / "parity_task.py").read_text())
    assert len(blocks("toml")) >= 2
    for number, block in enumerate(blocks("toml")):
        path = tmp_path / f"{number}.toml"
        path.write_text(block)
        for run in ll.read_plan(path):
            assert isinstance(run.task, Mixture)
            assert Run.from_json(run.to_json()) == run
