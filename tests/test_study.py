"""Our own questions: every arm is the run it is named after, and a study is trained, stopped, read and shown like the paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from types import ModuleType

import pytest

from command import Call
from lengthlab import experiments
from lengthlab.cli.publication import show_study, study_files
from lengthlab.cli.sources import Found, read_sources
from lengthlab.cli.study import ABOUT, findings_of, read_study, wanted_of_study
from lengthlab.errors import LabError
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.experiments import EXPERIMENTS, STUDIES, far, plateau, remedies
from lengthlab.experiments.study import Arm, Scale, Study
from lengthlab.report.courses import Course, course_of, read_courses
from lengthlab.report.study import QUESTIONS, Findings
from lengthlab.report.study_figure import study_pictures
from lengthlab.report.study_table import study_page
from lengthlab.rows import Row, read_rows
from lengthlab.training.trainee import Trainee
from paper_rows import texts
from small_runs import CPU

ROOT = Path(__file__).parent.parent
TINY = Scale(keys=8, width=8, longest=3, batch=6, lr=1e-3, first=2, joint=3, last=1, times=(1, 2), modulus=2)
NONE = ({"none": "no-positions"}, {"none": "plain-scores"})
every_study = pytest.mark.parametrize("name", STUDIES)
every_size = pytest.mark.parametrize("size", ["gpu", "cpu"])


def tiny_arms(size: str) -> list[Arm]:
    model = TINY.hybrid("none", "log-n")
    return [Arm("none, log-n", TINY.run(model, schedule)) for schedule in (TINY.end_to_end, TINY.delayed)]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Study:
    study = replace(STUDIES["far"], arms=tiny_arms, seeds=2)
    monkeypatch.setitem(experiments.STUDIES, "far", study)
    return study


def rows_of(name: str, size: str, seeds: Sequence[int] = (0, 1)) -> list[Row]:
    wanted = wanted_of_study(name, size)
    return [
        Row(name, cell.part, cell.model, cell.task, cell.training, run.seed, length, question, 950, 1000, run.id)
        for cell, run in ((trial.cell, trial.run) for trial in wanted.trials(seeds))
        for length in wanted.lengths
        for question in QUESTIONS
    ]


def findings(name: str, size: str = "gpu", rows: Sequence[Row] | None = None) -> Findings:
    return findings_of(name, wanted_of_study(name, size), Found(tuple(rows_of(name, size) if rows is None else rows), ()))


@every_study
@every_size
def test_every_arm_has_a_name_of_its_own_and_a_run_that_can_be_measured(name: str, size: str) -> None:
    trials = STUDIES[name].trials(size, [0, 1])
    assert len({(trial.cell, trial.run.seed) for trial in trials}) == len({trial.run.id for trial in trials}) == len(trials)
    for trial in trials:
        assert trial.run.evaluate[0] == trial.run.lengths[1]
        assert trial.run.evaluate[-1] >= 8 * trial.run.lengths[1]
        assert type(trial.run).from_json(trial.run.to_json()) == trial.run


@every_study
def test_a_study_is_an_experiment_with_a_command(name: str) -> None:
    assert set(STUDIES) == set(ABOUT)
    text = EXPERIMENTS[name].__doc__ or ""
    assert all(word in text for word in ("Claim:", "Cost:", f"Command: lengthlab reproduce {name}"))
    assert [run.seed for run in EXPERIMENTS[name]((3,))] == [3] * len(STUDIES[name].arms("gpu"))


def test_a_remedy_is_what_its_name_says() -> None:
    arms = STUDIES["remedies"].arms("cpu")
    assert len(arms) == 5 * 6 * 2
    for arm in arms:
        text = str(arm.run.to_json()["model"])
        positions, scores = (kinds.get(word, word) for word, kinds in zip(arm.name.split(", "), NONE, strict=True))
        assert f"'kind': '{positions}'" in text
        assert f"'kind': '{scores}'" in text


@pytest.mark.parametrize("module", [far, remedies, plateau])
def test_every_arm_learns_and_is_measured(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.SIZES, "cpu", replace(TINY, keys=40, first=100, longest=3, times=(1, 2)))
    for arm in module.STUDY.arms("cpu"):
        trainee = Trainee(arm.run, CPU)
        assert all(isfinite(trainee.advance()) for _ in range(2)), arm.name
        assert len(accuracy(trainee.network, arm.run.task, arm.run.evaluate, samples=5)) == 6


def test_a_study_is_trained_once_and_read_from_its_store_and_from_its_rows(tiny: Study, call: Call, tmp_path: Path) -> None:
    words = ("reproduce", "far", "--size", "cpu", "--device", "cpu", "--store", tmp_path / "runs")
    done = call(*words, "--out", tmp_path / "out", "--page", tmp_path / "docs" / "far.md")
    assert "4 runs, 0 of them finished" in done.err
    rows = read_rows(tmp_path / "out" / "results.jsonl")
    assert len(rows) == 2 * 2 * 2 * 3
    assert {row.experiment for row in rows} == {"far"}
    assert (tmp_path / "docs" / "far" / "far.svg").exists()
    courses = read_courses(tmp_path / "out" / "courses.jsonl")
    assert sorted((course.steps, course.opened) for course in courses) == [(6, 0), (6, 0), (6, 2), (6, 2)]
    assert "4 runs, 4 of them finished" in call(*words).err
    for folder in (tmp_path / "runs", tmp_path / "out"):
        found = read_sources([str(folder)], wanted_of_study("far", "cpu"), "")
        assert sorted(map(str, found.rows)) == sorted(map(str, rows))
        assert {replace(course, step_seconds=None) for course in found.courses} == {
            replace(course, step_seconds=None) for course in courses
        }
    both = read_sources([str(tmp_path / "out"), str(tmp_path / "runs")], wanted_of_study("far", "cpu"), "")
    assert set(both.courses) == set(courses)  # with the seconds that one of the two knows
    call("reproduce", "far", "--from", tmp_path / "out", "--size", "gpu").refused("profile 'gpu'")
    read = call("reproduce", "far", "--from", tmp_path / "out", "--store", tmp_path / "read")  # the only size there is
    assert f"wrote {tmp_path / 'read' / 'far-cpu-read' / 'far.svg'}" in read.out
    call("reproduce", "far", "--from", tmp_path / "out", "--device", "cpu").refused("--from trains nothing")


@every_study
def test_the_page_has_every_number_with_its_seeds_and_says_what_is_missing(name: str) -> None:
    rows = rows_of(name, "gpu")
    gone = rows[0].part, rows[0].training
    study = findings(name, rows=[row for row in rows if (row.part, row.training) != gone])
    text = study_page(study)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1
    assert text.count("missing") == len(study.lengths)
    assert text.count("0: 0.950, 1: 0.950") == (len(study.cells) - 1) * len(study.lengths) * len(QUESTIONS)


def test_the_page_tells_how_training_went() -> None:
    rows = rows_of("far", "cpu")
    runs = sorted({(row.seed, row.run) for row in rows})
    courses = [Course(run, 1_000, 300, [800, None][seed]) for seed, run in runs]
    study = replace(findings("far", "cpu", rows), courses=tuple(courses))
    assert "| 1,000 | 300 | 500; 1 of 2 to the end | – |" in study_page(study)
    timed = replace(study, reference="", courses=tuple(replace(course, step_seconds=0.002) for course in courses))
    assert "| 500; 1 of 2 to the end | 2.00 |" in study_page(timed)


def test_the_page_tells_what_a_step_costs_in_steps_of_the_reference() -> None:
    rows = rows_of("remedies", "cpu")
    costs = {row.run: 0.004 if row.part == "rope, none" else 0.006 for row in rows}
    study = replace(findings("remedies", "cpu", rows), courses=tuple(Course(run, 9, 0, 5, cost) for run, cost in costs.items()))
    assert study_page(study).count("| 4.00 (×1.00) |") == 2
    assert study_page(study).count("| 6.00 (×1.50) |") == 58


def test_what_a_step_costs_is_kept_when_only_the_rest_is_trained(tiny: Study, call: Call, tmp_path: Path) -> None:
    words = ("reproduce", "far", "--size", "cpu", "--device", "cpu", "--store", tmp_path / "runs", "--out", tmp_path / "out")
    call(*words, "--seeds", "1")
    first = {course.run: course.step_seconds for course in read_courses(tmp_path / "out" / "courses.jsonl")}
    call(*words, "--seeds", "2")
    second = {course.run: course.step_seconds for course in read_courses(tmp_path / "out" / "courses.jsonl")}
    assert len(second) == 4
    assert all(second.values())
    assert first.items() <= second.items()


def test_a_run_wakes_when_its_loss_stays_low_with_everything_on() -> None:
    losses = [0.01] * 20 + [2.0] * 10 + [0.05, 3.0] * 5 + [0.09] * 10
    log = [{"step": 50 * place, "loss": loss} for place, loss in enumerate(losses, start=1)]
    assert course_of("a run", log, (1_000, 2_500), phases_off=1) == Course("a run", 2_500, 1_000, 50 * 45)
    assert course_of("a run", log[:44], (1_000, 2_200), phases_off=1).woke is None
    assert course_of("a run", log, (2_500,), phases_off=0) == Course("a run", 2_500, 0, 250)


def test_a_foreign_file_of_courses_is_named(tmp_path: Path) -> None:
    (tmp_path / "courses.jsonl").write_text('{"run": "a"}\n')
    with pytest.raises(LabError, match="not a file of courses"):
        read_courses(tmp_path / "courses.jsonl")


@every_study
def test_the_terminal_shows_all_arms_and_seeds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    study = findings(name)
    courses = [Course(run, 10_000, 5_000, None, 0.002) for run in dict.fromkeys(row.run for row in study.rows)]
    show_study(replace(study, courses=tuple(courses)))
    shown = capsys.readouterr().out
    assert shown.count("2 of 2 to the end") == shown.count("2.00") == len(study.cells)
    assert all(cell.part in shown for cell in study.cells)
    assert shown.count("0.95") == len(study.cells) * (len(QUESTIONS) + 2) * len(study.lengths)


@every_study
def test_the_figure_is_the_same_every_time(name: str) -> None:
    study = findings(name)
    pictures = study_pictures(study)
    assert list(pictures) == [f"{name}.svg", f"{name}.png"]
    assert pictures == study_pictures(study)
    assert study_pictures(findings(name, rows=[])) == {}


@pytest.mark.parametrize("name", [name for name in STUDIES if (ROOT / "published" / name).exists()])
def test_the_committed_page_is_what_the_published_rows_come_to(name: str) -> None:
    page = ROOT / "docs" / "far" / f"{name}.md"
    sources = (str(ROOT / "published"),)
    study = findings_of(name, *read_study(name, None, sources, None), sources)
    files = study_files(study, page, study_pictures(study))
    command = f"lengthlab reproduce {name} --from published --page docs/far/{name}.md"
    assert page.read_bytes() == files.pop(page.name), f"run: {command}"
    for file, data in files.items():  # by what they say: how they are drawn may change with matplotlib
        assert texts((page.parent / file).read_bytes()) == texts(data), f"run: {command}"


def test_the_papers_hybrids_are_drawn_beside_where_their_rows_are_at_hand() -> None:
    published = ROOT / "published"
    for source, there in ((published, True), (published / "far", False)):
        study = findings_of("far", *read_study("far", "gpu", (str(source),), None), (str(source),))
        assert (b"the paper's hybrids, delayed" in study_pictures(study)["far.svg"]) is there
        assert ("as `lengthlab reproduce dat` has them" in study_page(study)) is there


def test_other_training_ranges_than_the_papers_stand_alone() -> None:
    study = findings_of("far", wanted_of_study("far", "cpu"), Found((), ()), (str(ROOT / "published"),))
    assert study.longest != 25
    assert study.beside == ()
