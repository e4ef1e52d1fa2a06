"""The studies of neighbouring papers: every arm builds, says what theory says, and has the paper's numbers beside it."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from pathlib import Path

import pytest
import torch

from command import Call
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.experiments import Arm, Size, Study, born, coupling, crasp
from lengthlab.experiments.born import BORN
from lengthlab.experiments.coupling import COUPLING
from lengthlab.experiments.crasp import CRASP
from lengthlab.experiments.decoder import Recipe
from lengthlab.report.evidence import Evidence
from lengthlab.report.figure import pictures
from lengthlab.report.markdown import markdown
from lengthlab.report.results import gather
from lengthlab.report.study_page import study_page
from lengthlab.spec.run import Run
from lengthlab.store.rows import ALL, Row, read_rows
from lengthlab.tasks import IGNORE
from lengthlab.theory import verdict
from lengthlab.theory.guarantee import uses_positions
from lengthlab.training.state import TrainState
from small_runs import CPU

STUDIES = (BORN, CRASP, COUPLING)
SIZES = [(study, size) for study in STUDIES for size in study.sizes]
WITHOUT = {f"{name}, none" for name in crasp.PLACED}
every_size = pytest.mark.parametrize(("study", "size"), SIZES, ids=[f"{study.name}, {size.name}" for study, size in SIZES])


@every_size
def test_every_arm_is_the_run_it_is_named_after_with_the_verdict_of_theory(study: Study, size: Size) -> None:
    runs = study.runs(size.name, [0, 1])
    assert len({(arm, run.seed) for arm, run in runs}) == len({run.id for _, run in runs}) == len(runs)
    for arm, run in runs[: len(runs) // 2]:
        assert (arm.model, arm.task, arm.training) == (run.model.name, run.task.name, run.schedule.name)
        about = dict(study_arm(study, size, arm).about)
        assert about["theory"] == str(verdict(run.task)) + " with positions" * (arm.name in WITHOUT)
        assert study is COUPLING or about["alphabet"].split()[0] == str(letters_of(run))
        assert Run.from_json(run.to_json()) == run
        assert run.evaluate[-1] >= 1.5 * run.lengths[1]


def test_without_positions_only_programs_that_do_without_them_are_promises() -> None:
    programs = {name: verdict(kind.made()).program for name, kind in crasp.KIND.items()}
    assert {name for name, program in programs.items() if program and uses_positions(program)} == set(crasp.PLACED)


def study_arm(study: Study, size: Size, arm: Arm) -> Arm:
    """As its part at that size has it: alphabets differ between sizes."""
    return next(own for section in study.sections_at(size) for own in section.arms if own == arm)


def letters_of(run: Run) -> int:
    task = run.task
    return next((getattr(task, name) for name in ("alphabet", "numbers") if hasattr(task, name)), 2)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_table_of_positions_serves_the_longest_sequence_that_is_measured(study: Study) -> None:
    for arm, run in study.runs("gpu", [0]):
        ids = getattr(run.model, "position_ids", 0)
        if not ids:
            continue
        batch = run.task.as_measured.sample(2, (run.evaluate[-1],) * 2, torch.Generator().manual_seed(0))
        reached = batch.tokens_BT.shape[1] - 1 if batch.position_BT is None else int(batch.position_BT.max())
        assert reached < ids.number, arm
        assert all((target_BT != IGNORE).any() for target_BT in batch.target.values())


def test_the_paper_has_a_number_for_every_decoder_and_bin() -> None:
    for study, positions in ((BORN, ("absolute", "rotary")), (CRASP, ("absolute", "none"))):
        assert study.reference
        arms = [arm for name in positions for arm in study.section(name).arms]
        assert set(study.reference.values) == {(arm, ALL, end) for arm in arms for end in (50, 100, 150)}
        assert all(0 <= accuracy <= 1 for accuracy in study.reference.values.values())


def test_ten_tasks_six_of_them_promised_and_what_the_paper_did_not_train_is_marked() -> None:
    assert [kind.promised for kind in born.KINDS].count("promised") == 6
    assert len(born.KINDS) == 10
    assert {dict(arm.about)["code"] for arm in BORN.section("rotary").arms} >= {"UF †", "UB †"}
    assert not any("†" in dict(arm.about)["code"] for arm in BORN.section("absolute").arms)
    assert len(BORN.section("hybrids").arms) == 20
    assert not BORN.section("hybrids").usual


def test_delayed_hybrids_have_as_many_steps_as_those_end_to_end() -> None:
    runs = BORN.runs("gpu", [0], [BORN.section("hybrids")])
    assert {run.steps for _, run in runs} == {14_000}
    assert {run.schedule.phases[0].off for arm, run in runs if arm.training == "delayed"} == {("attention",)}


def test_eight_tasks_and_the_bar_is_about_the_cheap_four() -> None:
    assert len(crasp.KINDS) == 8
    claim = CRASP.claims[0]
    assert {check.arm.name.split(", ")[0] for check in claim.checks} == set(crasp.CHEAP)


def test_coupling_is_judged_by_the_median_and_digits_reach_two_hundred() -> None:
    claim = COUPLING.claims[0]
    assert (claim.by, claim.checks[0].length, claim.checks[0].bound) == ("median", 200, 0.95)
    arms = [dict(arm.about) for arm in COUPLING.section("addition").arms]
    assert [(arm["positions"], arm["scores"]) for arm in arms] == list(coupling.WAYS.values())
    assert {size.trained for section in COUPLING.sections for size in section.sizes} == {(1, 40), (5, 9), (1, 12)}


@every_size
def test_its_page_has_every_part_from_made_up_rows(study: Study, size: Size) -> None:
    rows = [
        Row(
            *(length, question, 900 + 100 * (length <= own.trained[1]), 1000),
            **{"experiment": study.name, "arm": arm.name, "size": size.name, "model": arm.model, "task": arm.task},
            **{"training": arm.training, "seed": seed, "run": f"{number:011x}{seed}"},  # type: ignore[arg-type]
        )
        for number, arm in enumerate(study.arms)
        if (own := study.size_of(arm, size))
        for seed in (0, 1)
        for length in own.lengths
        for question in (ALL, arm.task)  # the one question of its task, which the tasks beside it have not
    ]
    page = study_page(gather(study, size, study.sections_at(size), Evidence(tuple(rows))))
    text = markdown(page)
    assert all(f"## {section.title}" in text for section in study.sections_at(size))
    assert ("| 2 of 2 |" in text) == (study.success is not None)
    assert ("stands for all samples of the lengths measured" in text) == bool(size.bins)
    assert "| missing |" not in text
    if size.name == "cpu":
        assert len(pictures(page, ["svg"])) == len(study.sections_at(size))


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_without_rows_it_says_so_in_one_line(study: Study, call: Call, tmp_path: Path) -> None:
    done = call("reproduce", study.name, "--from", str(tmp_path))
    assert done.code == 2
    assert f"holds neither {study.name}/results.jsonl" in done.err
    assert len(done.err.splitlines()) == 1


def test_a_part_that_a_size_has_not_is_named_before_anything_is_trained(call: Call) -> None:
    done = call("reproduce", "born", "--part", "hybrids", "--size", "cpu")
    assert done.code == 2
    assert "has part 'hybrids' at size gpu alone, not at 'cpu'" in done.err


TRAINED = [
    (BORN, "UL, absolute"),
    (BORN, "UB, rotary"),
    (BORN, "NF, hybrid"),
    (CRASP, "binary addition, none"),
    (CRASP, "binary majority, absolute"),
    (COUPLING, "addition, hints"),
    (COUPLING, "reverse, coupled"),
    (COUPLING, "minesweeper, coupled"),
]


@pytest.mark.parametrize(("study", "name"), TRAINED, ids=[f"{study.name}, {name}" for study, name in TRAINED])
def test_an_arm_learns_and_is_measured_at_its_longest_length(study: Study, name: str) -> None:
    arm = next(arm for arm in study.arms if arm.name == name)
    run = study.run(arm, "gpu")
    size = study.size_of(arm, study.size("gpu"))
    assert size
    state = TrainState(replace(run, batch=2), CPU)
    assert isfinite(state.advance())
    count = accuracy(state.network, run.task.as_measured, size.lengths[-1:], samples=2)[-1]
    assert (count.length, count.total) == (size.lengths[-1], 2)


def test_it_is_trained_and_shown_in_bins_and_its_rows_are_one_a_length(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(born, "ON_TWO_CORES", Recipe(1, 1, 8, 60, batch=4, warm_up=5))
    words = ("reproduce", "born", "--size", "cpu", "--seeds", "1", "--store", tmp_path / "runs", "--out", tmp_path / "out")
    done = call(*words, "--device", "cpu")
    assert done.code == 0, done.err
    assert "Claims: 1 × does not hold." in done.out
    assert {row.length for row in read_rows(tmp_path / "out" / "results.jsonl")} == set(born.CPU.lengths)
    page = (tmp_path / "out" / "born.md").read_text()
    assert "n=20 (1×) | n=40 (2×)" in page
    assert "| 0 of 1 |" in page
