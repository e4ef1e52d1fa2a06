"""Studies, ours and a user's own: every arm is the run it is named after; trained, stopped, read, judged and shown alike."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from types import ModuleType

import pytest

import lengthlab as ll
from command import Call
from lengthlab import registry
from lengthlab.errors import LabError
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.experiments import (
    Arm,
    At,
    Check,
    Claim,
    Reference,
    Section,
    Size,
    Source,
    Study,
    far,
    find_study,
    plateau,
    remedies,
    studies,
)
from lengthlab.experiments.far import FAR
from lengthlab.experiments.scale import Scale
from lengthlab.inspection.subject import count_parameters
from lengthlab.models.attention.positions import Positions
from lengthlab.models.attention.scores import Scores
from lengthlab.registry import registered
from lengthlab.report.evidence import Evidence, Wanted, read_evidence
from lengthlab.report.figure import pictures
from lengthlab.report.markdown import markdown
from lengthlab.report.page import Figure, Page
from lengthlab.report.page import Scores as Shown
from lengthlab.report.publication import read_results
from lengthlab.report.results import Results, gather
from lengthlab.report.study_page import section_blocks, study_page
from lengthlab.report.terminal import console_for, show
from lengthlab.report.traces import TrainingTrace, read_traces, trace_of
from lengthlab.spec.run import Run
from lengthlab.store.ids import SHORT
from lengthlab.store.rows import Row, as_jsonl, read_rows
from lengthlab.training.state import TrainState
from paper_rows import origin
from small_runs import CPU

ROOT = Path(__file__).parent.parent
TINY = Scale(keys=8, width=8, longest=3, batch=6, lr=1e-3, first=2, joint=3, last=1, times=(1, 2), modulus=2)
NONE = ({"none": "no-positions"}, {"none": "plain-scores"})
OURS = ("far", "remedies", "plateau")
QUESTIONS = ("all", "modulo", "recall")
ARM = Arm("none, log-n", "hybrid-block", "modulo-recall", "delayed")
OTHER = replace(ARM, training="end-to-end")
every_study = pytest.mark.parametrize("name", OURS)
every_size = pytest.mark.parametrize("size", ["gpu", "cpu"])


def tiny_run(arm: Arm, size: str) -> Run:
    return TINY.run(TINY.hybrid("none", "log-n"), TINY.delayed if arm == ARM else TINY.end_to_end)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Study:
    sizes = (TINY.size("gpu", gpu=True), TINY.size("cpu"))
    study = Study("far", "Tiny", "How far?", tiny_run, sizes, arms=(OTHER, ARM), seeds=2)
    monkeypatch.setitem(registry._MAKERS[Study], "far", lambda: study)
    return study


def rows_of(name: str, size: str, seeds: Sequence[int] = (0, 1)) -> list[Row]:
    study = find_study(name)
    return [
        Row(
            *(length, question, 950, 1000),
            **{"experiment": name, "arm": arm.name, "size": size, "model": arm.model, "task": arm.task},
            **{"training": arm.training, "seed": seed, "run": f"{number:011x}{seed}"},
        )
        for number, arm in enumerate(study.arms)
        for seed in seeds
        for length in study.size(size).lengths
        for question in QUESTIONS
    ]


def results_of(
    name: str, size: str = "gpu", rows: Sequence[Row] | None = None, traces: Sequence[TrainingTrace] = ()
) -> Results:
    study = find_study(name)
    evidence = Evidence(tuple(rows_of(name, size) if rows is None else rows), (), tuple(traces))
    return gather(study, study.size(size), study.sections, evidence)


def page_of(name: str, size: str = "gpu", rows: Sequence[Row] | None = None, traces: Sequence[TrainingTrace] = ()) -> Page:
    return study_page(results_of(name, size, rows, traces))


@every_study
@every_size
def test_every_arm_is_the_run_it_is_named_after_and_can_be_measured(name: str, size: str) -> None:
    runs = find_study(name).runs(size, [0, 1])
    assert len({(arm, run.seed) for arm, run in runs}) == len({run.id for _, run in runs}) == len(runs)
    for arm, run in runs:
        assert (arm.model, arm.task, arm.training) == (run.model.name, run.task.name, run.schedule.name)
        assert run.lengths[1] in run.evaluate
        assert run.evaluate[-1] >= 8 * run.lengths[1]
        assert Run.from_json(run.to_json()) == run


@pytest.mark.parametrize("name", studies())
def test_a_study_tells_claim_cost_and_command_and_checks_what_it_claims(name: str) -> None:
    study = find_study(name)
    assert all(word in study.about for word in ("Claim:", "Cost:", f"Command: lengthlab reproduce {name}"))
    for size in study.sizes:
        assert any(claim.size in ("", size.name) for claim in study.claims)


@pytest.mark.parametrize("name", [name for name in studies() if (ROOT / "published" / name).is_dir()])
def test_published_runs_are_those_of_the_study(name: str) -> None:
    """The content of a run has not changed, or its id would have."""
    study, folder = find_study(name), ROOT / "published" / name
    runs = {run.id: run for size in study.sizes for _, run in study.runs(size.name, range(5))}
    runs |= {each[:SHORT]: run for each, run in runs.items()}  # as 0.1 wrote them
    assert {row.run for row in read_rows(folder / "results.jsonl")} <= runs.keys()
    for trace in read_traces(folder):
        assert trace.parameters == count_parameters(runs[trace.run].blueprint)


def test_a_remedy_is_what_its_name_says() -> None:
    assert set(registered(Scores)) - set(remedies.SCORES) == {"tempered"}  # which is of `hints`
    assert set(remedies.POSITIONS) < set(registered(Positions))
    runs = find_study("remedies").runs("cpu", [0])
    assert len(runs) == 5 * 6 * 2
    for arm, run in runs:
        text = str(run.to_json()["model"])
        positions, scores = (kinds.get(word, word) for word, kinds in zip(arm.name.split(", "), NONE, strict=True))
        assert f"'kind': '{positions}'" in text
        assert f"'kind': '{scores}'" in text


@pytest.mark.parametrize("module", [far, remedies, plateau])
def test_every_arm_learns_and_is_measured(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.SCALES, "cpu", replace(TINY, keys=40, first=100, longest=3, times=(1, 2)))
    study = find_study(module.__name__.rpartition(".")[2])
    for arm in study.arms:
        run = study.run(arm, "cpu")
        state = TrainState(run, CPU)
        assert all(isfinite(state.advance()) for _ in range(2)), arm.name
        assert len(accuracy(state.network, run.task, (3, 6), samples=5)) == 6


def test_a_study_is_trained_once_and_read_from_its_store_and_from_its_rows(tiny: Study, call: Call, tmp_path: Path) -> None:
    words = ("reproduce", "far", "--size", "cpu", "--device", "cpu", "--store", tmp_path / "runs")
    assert "2 runs, 0 of them finished" in call(*words, "--out", tmp_path / "out", "--seeds", "1").err
    first = {trace.run: trace.step_seconds for trace in read_traces(tmp_path / "out")}
    done = call(*words, "--out", tmp_path / "out", "--page", tmp_path / "docs" / "far.md")
    assert "4 runs, 2 of them finished" in done.err
    second = {trace.run: trace.step_seconds for trace in read_traces(tmp_path / "out")}
    assert all(second.values())
    assert first.items() <= second.items()  # what a step costs is kept when only the rest is trained
    rows = read_rows(tmp_path / "out" / "results.jsonl")
    assert len(rows) == 2 * 2 * 2 * 3
    assert {(row.experiment, row.arm, row.size) for row in rows} == {("far", "none, log-n", "cpu")}
    assert (tmp_path / "docs" / "far" / "far.svg").exists()
    traces = read_traces(tmp_path / "out")
    assert sorted((trace.steps, trace.opened) for trace in traces) == [(6, 0), (6, 0), (6, 2), (6, 2)]
    assert "4 runs, 4 of them finished" in call(*words).err
    wanted = Wanted(tiny, tiny.size("cpu"))
    for folder in (tmp_path / "runs", tmp_path / "out"):
        found = read_evidence([str(folder)], wanted)
        assert sorted(map(str, found.rows)) == sorted(map(str, rows))
        assert {replace(trace, step_seconds=None) for trace in found.traces} == {
            replace(trace, step_seconds=None) for trace in traces
        }
    both = read_evidence([str(tmp_path / "out"), str(tmp_path / "runs")], wanted)
    assert set(both.traces) == set(traces)  # with the seconds that one of the two knows
    call("reproduce", "far", "--from", tmp_path / "out", "--size", "gpu").refused("size 'gpu'")
    read = call("reproduce", "far", "--from", tmp_path / "out", "--store", tmp_path / "read")  # the only size there is
    assert f"wrote {tmp_path / 'read' / 'far-cpu-read' / 'far.svg'}" in read.out
    call("reproduce", "far", "--from", tmp_path / "out", "--device", "cpu").refused("--from trains nothing")


def test_a_study_is_put_into_a_store_for_workers_and_read_from_there(tiny: Study, call: Call, tmp_path: Path) -> None:
    words = ("reproduce", "far", "--size", "cpu", "--device", "cpu", "--store", tmp_path / "runs")
    assert f"4 runs wait in {tmp_path / 'runs'}; on every machine" in call(*words, "--queue").err
    assert not list(tmp_path.glob("runs/*/log.jsonl"))
    assert "4 trained" in call("worker", tmp_path / "runs", "--device", "cpu", "--most", "2").err
    done = call(*words, "--out", tmp_path / "out")
    assert "4 runs, 4 of them finished" in done.err
    assert len(read_rows(tmp_path / "out" / "results.jsonl")) == 2 * 2 * 2 * 3
    assert "nothing is left to do" in call(*words, "--queue").err
    more = call(*words[:-1], tmp_path / "more", "--queue", "--seeds", "3", "--have", tmp_path / "out")
    assert "2 runs wait" in more.err  # the third seed of both arms


def test_what_waits_says_the_precision_that_its_study_asks_for(
    tiny: Study, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = replace(tiny, precision="fp32")
    monkeypatch.setitem(registry._MAKERS[Study], "far", lambda: exact)
    said = {
        size: call("reproduce", "far", "--queue", "--size", size, "--store", tmp_path / size).err for size in ("gpu", "cpu")
    }
    assert {size: "--precision fp32" in words for size, words in said.items()} == {"gpu": True, "cpu": False}


def test_a_users_own_study_is_trained_judged_drawn_and_read_like_ours(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "examples" / "my_study.py").read_text()
    (tmp_path / "my_study.py").write_text(text.replace('"tiny": 400', '"tiny": 8'))
    monkeypatch.chdir(tmp_path)
    words = ("reproduce", "my_study.py:STUDY", "--device", "cpu")
    done = call(*words)
    assert "2 runs, 0 of them finished." in done.err
    assert "It keeps the state beyond its training length only with the delay." in done.out
    assert re.search(r"Claims: 1 × (holds|does not hold)", done.out)
    out = tmp_path / "runs" / "my-study-tiny"
    names = {"results.jsonl", "provenance.json", "traces.jsonl", "my-study.md", "my-study.svg", "my-study.png"}
    assert {path.name for path in out.iterdir()} == names
    assert {(row.experiment, row.arm, row.size) for row in read_rows(out / "results.jsonl")} == {
        ("my-study", "no delay", "tiny"),
        ("my-study", "delay", "tiny"),
    }
    assert call("reproduce", "my_study.py:STUDY", "--from", out, "--out", "read").code == 0
    assert read_rows(Path("read") / "results.jsonl") == read_rows(out / "results.jsonl")
    more = call(*words, "--seeds", 2, "--have", out, "--store", "other")
    assert "2 runs, 0 of them finished." in more.err  # those of the second seed
    call(*words, "--size", "huge").refused("study 'my-study' has no size 'huge'")
    call("reproduce", "my_study.py:STEPS").refused("is a dict, not a Study")
    call("reproduce", "my_study.py:NOTHING").refused("has no 'NOTHING'")
    call("reproduce", "fra").refused("unknown study 'fra'; did you mean 'far'?")
    call("reproduce").refused("name a study")


def test_the_example_study_is_one_of_the_package() -> None:
    study = find_study("examples/my_study.py:STUDY", ROOT)
    assert [arm for arm, _ in study.runs("tiny", [0])] == list(study.arms)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "../far"}, "files are named after '../far'"),
        ({"arms": ()}, "has no arm"),
        ({"sizes": ()}, "has no size"),
        ({"claims": (Claim("words", "checked", ()),)}, "nothing is checked"),
        ({"claims": (Claim("words", "checked", (Check(replace(ARM, name="x"), 3, "<", 1),)),)}, "none of its arms"),
        ({"claims": (Claim("words", "checked", (Check(ARM, 3, "<", At(arm=replace(ARM, name="x"))),)),)}, "none of its arms"),
        ({"claims": (Claim("words", "checked", (Check(ARM, 4, "<", 1),)),)}, "not measured at every size"),
        ({"claims": (Claim("words", "checked", (Check(ARM, 3, "<", 1),), size="x"),)}, "which it has not"),
        ({"claims": (Claim("words", "checked", (Check(ARM, 3, "<", 1),), section="x"),)}, "no part 'x'"),
        ({"claims": (Claim("words", "checked", (Check(ARM, 3, "<", At(4)),)),)}, "not measured at every size"),
        ({"sizes": (Size("cpu", (1, 3), ()),)}, "give it lengths"),
        ({"sizes": (Size("cpu", (1, 3), (3,)),) * 2}, "two sizes have one name"),
        ({"sections": (Section("p", "", (ARM,)), Section("p", "", (ARM,)))}, "two parts have one name"),
        ({"reference": Reference("the paper", Source("", "", ""), {(replace(ARM, name="x"), "all", 3): 1.0})}, "no such arm"),
    ],
)
def test_a_study_that_cannot_be_is_refused(change: dict[str, object], said: str) -> None:
    given: dict[str, object] = {"name": "mine", "arms": (ARM,), "sizes": (Size("cpu", (1, 3), (3, 6)),)}
    with pytest.raises(LabError, match=re.escape(said)):
        Study(**{"title": "", "question": "", "run": tiny_run} | given | change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda arm, size: 1 / 0, "its run cannot be made: ZeroDivisionError"),
        (lambda arm, size: None, "'run' gave None, not a Run"),
        (
            lambda arm, size: replace(tiny_run(arm, size), lengths=(1, 2)),
            "its run trains on lengths [1, 2]",
        ),
    ],
)
def test_a_run_of_a_users_that_cannot_be_is_refused(run: object, said: str) -> None:
    study = Study("mine", "", "", run, (Size("cpu", (1, 3), (3, 6)),), arms=(ARM,))  # type: ignore[arg-type]
    with pytest.raises(LabError, match=re.escape(f"study 'mine', arm 'none, log-n', size 'cpu': {said}")):
        study.runs("cpu", [0])


def test_a_check_is_typed_as_on_any_keyboard_and_compares_in_one_of_four_ways() -> None:
    assert Check(ARM, 3, ">=", 0.5) == Check(ARM, 3, "≥", 0.5)
    with pytest.raises(LabError, match="a check compares by one of"):
        Check(ARM, 3, "=", 0.5)  # type: ignore[arg-type]


def test_rows_that_do_not_tell_their_size_are_of_none(tmp_path: Path) -> None:
    rows = [replace(row, size="") for row in read_results(FAR, (str(ROOT / "published"),), "cpu").rows]
    (tmp_path / "results.jsonl").write_text(as_jsonl(rows))
    with pytest.raises(LabError, match="rows without a size"):
        read_results(FAR, (str(tmp_path),))


def test_published_rows_are_found_beside_a_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "published").mkdir()
    monkeypatch.chdir(tmp_path)
    assert read_results(FAR, ("published",)).rows


def test_a_users_study_is_read_without_torch_and_names_the_command_that_was_typed(tmp_path: Path) -> None:
    (tmp_path / "my_study.py").write_text((ROOT / "examples" / "my_study.py").read_text())
    arm = find_study("examples/my_study.py:STUDY", ROOT).arms[0]
    names = {"model": arm.model, "task": arm.task, "training": arm.training, "run": "0" * 20}
    rows = [Row(n, "all", 5, 10, experiment="my-study", arm=arm.name, size="tiny", **names) for n in (4, 8, 16)]  # type: ignore[arg-type]
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "results.jsonl").write_text(as_jsonl(rows))
    code = (
        "import sys; sys.modules['torch'] = None; from lengthlab.cli import main; "
        "sys.argv[1:] = 'reproduce my_study.py:STUDY --from rows --out out'.split(); main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "`lengthlab reproduce my_study.py:STUDY`" in (tmp_path / "out" / "my-study.md").read_text()


def test_a_page_of_ones_own_is_a_markdown_file(call: Call, tmp_path: Path) -> None:
    call("reproduce", "far", "--from", ROOT / "published", "--page", tmp_path / "far").refused("ends in .md")
    assert not (tmp_path / "far").exists()


def test_rows_of_two_sizes_are_never_mixed(tmp_path: Path) -> None:
    """Both sizes of far are measured at n = 400, with other models: published rows of one are not numbers of the other."""
    sources = (str(ROOT / "published"),)
    sized = {size: read_results(FAR, sources, size) for size in ("gpu", "cpu")}
    runs = {size: {row.run for row in results.rows} for size, results in sized.items()}
    assert {size: len(each) for size, each in runs.items()} == {"gpu": 12, "cpu": 3}
    assert not runs["gpu"] & runs["cpu"]
    for size, results in sized.items():
        score = results.series(FAR.arms[0]).at(400)
        assert len(score.rows) == 3
        assert {row.run for row in score.rows} <= runs[size]
    # Nor are new rows, which say their size themselves, whatever else is in the file.
    (tmp_path / "results.jsonl").write_text(as_jsonl([*sized["gpu"].rows, *sized["cpu"].rows]))
    for size, results in sized.items():
        assert read_results(FAR, (str(tmp_path),), size).rows == results.rows


@every_study
def test_the_page_has_every_number_with_its_seeds_and_says_what_is_missing(name: str) -> None:
    rows = rows_of(name, "gpu")
    gone = rows[0].arm, rows[0].training
    results = results_of(name, rows=[row for row in rows if (row.arm, row.training) != gone])
    text = markdown(study_page(results))
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({re.sub(r"\\\\.", "", line).count("|") for line in table.splitlines()}) == 1
    lengths, questions = len(results.size.lengths), len(QUESTIONS) if len(results.study.arms) > 1 else 1
    overview = text.split("<details>")[0].split("## Accuracy by length")[1]
    assert overview.count("| missing ") == lengths
    assert text.split("<details>")[1].count("| missing ") == lengths * questions
    assert text.count("0: 0.950, 1: 0.950") == (len(results.study.arms) - 1) * lengths * len(QUESTIONS)


def test_the_page_tells_how_training_went() -> None:
    rows = rows_of("far", "cpu")
    runs = sorted({(row.seed, row.run) for row in rows})
    traces = [TrainingTrace(run, 1_000, 300, [800, None][seed]) for seed, run in runs]
    page = markdown(page_of("far", "cpu", rows, traces))
    assert "| steps | opened | plateau | n=10 (1×) |" in page  # what is known of no arm is no column
    assert "| 1,000 | 300 | 500; 1 of 2 to the end | **0.950** |" in page
    timed = markdown(page_of("far", "cpu", rows, [replace(traces[0], step_seconds=0.003), *traces[1:]]))
    assert "| plateau | ms a step |" in timed
    assert ("*Ms a step*" in page, "*Ms a step*" in timed) == (False, True)
    sized = [replace(trace, parameters=1_234) for trace in traces]
    assert "| 1,234 | 1,000 | 300 |" in markdown(page_of("far", "cpu", rows, sized))
    timed = [replace(trace, step_seconds=0.002) for trace in traces]
    assert "| 500; 1 of 2 to the end | 2.00 |" in markdown(page_of("far", "cpu", rows, timed))


def test_the_page_tells_what_a_step_costs_in_steps_of_the_baseline() -> None:
    rows = rows_of("remedies", "cpu")
    costs = {row.run: 0.004 if row.arm == "rope, none" else 0.006 for row in rows}
    text = markdown(page_of("remedies", "cpu", rows, [TrainingTrace(run, 9, 0, 5, cost) for run, cost in costs.items()]))
    assert text.count("| 4.00 (×1.00) |") == 2
    assert text.count("| 6.00 (×1.50) |") == 58


def test_a_step_is_not_compared_with_one_on_another_kind_of_machine() -> None:
    study, rows = find_study("remedies"), rows_of("remedies", "cpu")
    traces = tuple(TrainingTrace(run, 9, 0, 5, 0.004) for run in sorted({row.run for row in rows}))
    moved = [row for row in rows if row.arm == "rope, log-n"]
    origins = (
        origin([row for row in rows if row not in moved], hardware="a slide rule", size="cpu"),
        origin(moved, hardware="an abacus", size="cpu"),
    )
    size = study.size("cpu")
    results = gather(study, size, study.sections_at(size), Evidence(tuple(rows), origins, traces))
    beside = {arm.name: results.beside_baseline(arm) for arm in study.arms}
    assert beside.pop("rope, log-n") is None
    assert set(beside.values()) == {1.0}


def test_a_run_has_learned_when_its_loss_stays_low_with_everything_on() -> None:
    losses = [0.01] * 20 + [2.0] * 10 + [0.05, 3.0] * 5 + [0.09] * 10
    log = [{"step": 50 * place, "loss": loss} for place, loss in enumerate(losses, start=1)]
    assert trace_of("a run", log, (1_000, 2_500), last_off=1) == TrainingTrace("a run", 2_500, 1_000, 50 * 45)
    assert trace_of("a run", log[:44], (1_000, 2_200), last_off=1).learned_at is None
    assert trace_of("a run", log, (2_500,), last_off=0) == TrainingTrace("a run", 2_500, 0, 250)
    assert trace_of("a run", log, (500, 1_000, 2_500), last_off=2).opened == 1_000
    assert trace_of("a run", [{"step": 50}], (100,), last_off=0).learned_at is None


def test_a_foreign_file_of_traces_is_named_and_an_old_one_is_read(tmp_path: Path) -> None:
    assert read_traces(tmp_path) == []
    (tmp_path / "courses.jsonl").write_text('{"run": "a", "steps": 9, "opened": 2, "woke": 5, "step_seconds": null}\n')
    assert read_traces(tmp_path) == [TrainingTrace("a", 9, 2, 5)]
    (tmp_path / "traces.jsonl").write_text('{"run": "a"}\n')
    with pytest.raises(LabError, match="not a file of traces"):
        read_traces(tmp_path)


@every_study
def test_the_terminal_shows_all_arms_and_seeds_in_eighty_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    results = results_of(name)
    traces = [TrainingTrace(run, 10_000, 5_000, None, 0.003) for run in dict.fromkeys(row.run for row in results.rows)]
    show(page_of(name, traces=traces), console_for(80))
    shown = capsys.readouterr().out
    words = " ".join(shown.split())
    assert words.count("2 of 2 to the end") == words.count("ms a step 3.00") == len(results.study.arms)
    assert all(str(arm).split(", ")[0] in words for arm in results.study.arms)
    lines = [line.split() for line in shown.splitlines()]
    for label in ("all", "modulo", "recall", "seed 0", "seed 1"):
        with_it = [line for line in lines if " ".join(line).startswith(f"{label} 0.95 0.95")]
        assert len(with_it) == len(results.study.arms)
    assert max(map(len, shown.splitlines())) <= 80


def test_the_figure_is_the_same_every_time() -> None:
    """Grids and strips, too: those of committed pages are drawn anew and compared in test_reproduce."""
    drawn = pictures(page_of("far"))
    assert list(drawn) == ["far.svg", "far.png"]
    assert drawn == pictures(page_of("far"))
    assert pictures(page_of("far", rows=[])) == {}


def test_what_is_measured_at_one_length_is_a_table_and_no_curve() -> None:
    results = read_results(find_study("passkey"), (str(ROOT / "published"),))
    sections = {section.name: list(section_blocks(results, section)) for section in results.sections}
    drawn = {name for name, blocks in sections.items() if any(isinstance(block, Figure) for block in blocks)}
    assert drawn == set(sections) - {"farther", "farthest"}
    assert all(any(isinstance(block, Shown) for block in blocks) for blocks in sections.values())


def test_a_claim_may_allow_exceptions() -> None:
    results = read_results(find_study("remedies"), (str(ROOT / "published"),))
    kept = results.findings()[0]
    assert (kept.verdict, len(kept.against)) == ("holds", 1)
    assert "29 of 30 checks hold; not rotary, stick-breaking, delayed (0.214 at n=1000)" in kept.evidence


def test_experiments_are_listed_and_shown_with_a_users_own(call: Call) -> None:
    listed = json.loads(call("experiments", "--json").out)
    assert list(listed) == [
        *("demo", "dat", "far", "remedies", "plateau", "born", "crasp", "coupling"),
        *("recurrences", "hard-states", "passkey", "needles", "variable-tracking", "long-memory", "rules"),
        *("hints", "association", "auxiliary"),
    ]
    card = call("experiments", ROOT / "examples" / "my_study.py:STUDY").out
    assert "Claim: trained on n = 1…4" in card
    assert "400 steps of 32 samples" in card


def write_rows(folder: Path, rows: Sequence[Row]) -> str:
    folder.mkdir()
    (folder / "results.jsonl").write_text(as_jsonl(rows))
    return str(folder)


def test_sources_that_contradict_each_other_are_not_passed_over_for_another_size(tmp_path: Path) -> None:
    """Both have rows of the second size as well, which agree."""
    rows = [*rows_of("far", "gpu"), *rows_of("far", "cpu")]
    otherwise = [replace(rows[0], correct=949), *rows[1:]]
    sources = write_rows(tmp_path / "one", rows), write_rows(tmp_path / "two", otherwise)
    with pytest.raises(LabError, match="950 of 1000 are right"):
        read_results(FAR, sources)


def test_a_section_is_shown_for_the_rows_of_its_own_arms(tmp_path: Path) -> None:
    sections = (Section("main", "", (ARM,)), Section("extra", "", (OTHER,), usual=False))
    study = Study("mine", "", "", tiny_run, (Size("cpu", (1, 3), (3,)),), sections=sections)
    kept = {"model": ARM.model, "task": ARM.task, "training": ARM.training, "run": "0" * 20, "experiment": "mine"}
    rows = [Row(3, "all", 5, 10, arm=ARM.name, size="cpu", **kept)]  # type: ignore[arg-type]
    results = read_results(study, (write_rows(tmp_path / "rows", rows),))
    assert [section.name for section in results.sections] == ["main"]


def test_every_line_of_a_section_has_as_many_cells_whatever_is_said_about_its_arms() -> None:
    arms = (replace(ARM, about=(("width", "16"),)), OTHER)
    study = Study("mine", "Mine", "?", tiny_run, (Size("cpu", (1, 3), (3, 6)),), arms=arms)
    page = study_page(gather(study, study.sizes[0], study.sections, Evidence()))
    lines = [line for line in markdown(page).splitlines() if line.startswith("| ")]
    assert len(lines) > 4
    tables = {line.count("|") for line in lines}
    assert tables == {lines[0].count("|"), lines[-1].count("|")}


def test_chance_is_what_the_task_says() -> None:
    size = replace(TINY.size("cpu"), chance={"recall": 0.25})
    study = Study("mine", "", "", tiny_run, (size,), arms=(ARM,))
    with pytest.raises(LabError, match=r"chance is 0\.1 for 'recall', the size says 0\.25"):
        study.runs("cpu", [0])
    assert study.run(ARM, "cpu").task.chances(3) == pytest.approx(TINY.size("cpu").chance)


def test_a_page_says_which_seeds_of_those_wanted_there_are() -> None:
    text = markdown(page_of("remedies"))
    assert "Seeds: 0, 1, of the 3 that the study asks for;" in text
    assert "asks for" not in markdown(page_of("far", rows=rows_of("far", "gpu", (0, 1, 2))))


def test_checking_pages_takes_no_other_option(call: Call) -> None:
    call("reproduce", "--check", "--size", "nonsense", "far").refused("--check compares committed pages")


def test_a_check_of_a_question_that_nobody_asks_is_refused_before_training() -> None:
    arm = Arm("mine", "lstm", "modulo", "end-to-end")
    run = ll.Run(ll.tasks.ModuloRecall(keys=8), ll.models.lstm(8), ll.end_to_end(3), lengths=(1, 2), batch=4)
    claim = Claim("It is right.", "at n = 2", (Check(arm, 2, "≥", 0.5, question="modullo"),))
    study = Study("mine", "Mine", "?", lambda arm, size: run, (Size("tiny", (1, 2), (2,)),), (arm,), claims=(claim,))
    with pytest.raises(LabError, match=r"a check is of 'modullo'; did you mean 'modulo'\?"):
        study.runs("tiny", (0,))


def test_a_mixture_is_shown_beside_arms_that_are_asked_the_same_question_by_itself() -> None:
    study = find_study("hard-states")
    section, size = study.section("a5"), study.size("gpu")
    plain, _, mixed = section.arms
    prefixed = f"{mixed.task.split('+')[0]}/"
    rows = [
        Row(25, f"{prefix}{question}", right, 10, experiment=study.name, size="gpu", run="a" * 20,
            arm=arm.name, model=arm.model, task=arm.task, training=arm.training)
        for arm, prefix in ((plain, ""), (mixed, prefixed))
        for question, right in (("product", 7), ("recall", 9))
    ]  # fmt: skip
    results = gather(study, size, (section,), Evidence(tuple(rows)))
    assert results.questions(section) == ("all", "product", "recall")
    assert [results.series(arm, "product", section).scores[0].mean for arm in (plain, mixed)] == [0.7, 0.7]
    alone = gather(study, size, (section,), Evidence(tuple(row for row in rows if row.arm == mixed.name)))
    assert alone.questions(section) == ("all", f"{prefixed}product", f"{prefixed}recall")
