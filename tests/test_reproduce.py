"""`lengthlab reproduce dat`, from training to files. Table 2 is trained once, at a tiny size, as a user would."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

import pytest

import lengthlab.cli.work
from command import Call, Done
from lengthlab import registry
from lengthlab.cli import main
from lengthlab.experiments.dat import DAT
from lengthlab.experiments.dat.arms import NOTATION, arm_of
from lengthlab.experiments.dat.profile import PROFILES, Profile, Recipe
from lengthlab.experiments.dat.runs import run_of
from lengthlab.experiments.far import FAR, SCALES
from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, Study
from lengthlab.report.evidence import Wanted, rows_at_hand
from lengthlab.report.provenance import as_text, read_origins
from lengthlab.report.publication import read_results
from lengthlab.software import COMMIT, commit_of_package
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import delayed, end_to_end
from lengthlab.store import Store
from lengthlab.store.rows import Row, as_jsonl, read_rows
from lengthlab.training.forecast import forecast, side_by_side
from lengthlab.training.pace import Pace
from paper_rows import origin, rows_of

ROOT = Path(__file__).parents[1]
PUBLISHED = PROFILES["short"]
TINY = Profile(
    "short",
    {("end-to-end",): Recipe(end_to_end(3), batch=4), ("delayed",): Recipe(delayed(2, 2, 2), batch=4)},
    **{"keys": 16, "width": 8, "blocks": 1, "heads": 2, "mlp": 1, "lengths": (1, 4)},  # type: ignore[arg-type]
)
STUDY = replace(DAT, sizes=(Size("short", (1, 4), (5, 10)), Size("paper", (1, 4), (5, 10))), claims=())
FILES = {"results.jsonl", "provenance.json", "traces.jsonl", "dat.md", "table2.svg", "table2.png"}


@pytest.fixture(scope="module", autouse=True)
def _tiny() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROFILES, "short", TINY)
        yield


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._MAKERS[Study], "dat", lambda: STUDY)


small = pytest.mark.usefixtures("_small")


def table2() -> list[tuple[Arm, Run]]:
    return STUDY.runs("short", [0], [STUDY.section("table2")])


@dataclass(frozen=True)
class Trained:
    store: Path
    done: Done

    @property
    def out(self) -> Path:
        return self.store / "dat-short-table2"

    @property
    def rows(self) -> list[Row]:
        return read_rows(self.out / "results.jsonl")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, _tiny: None) -> Trained:
    store, out, err = tmp_path_factory.mktemp("reproduced") / "runs", StringIO(), StringIO()
    words = ["lengthlab", "reproduce", "dat", "--part", "table2", "--store", str(store), "--device", "cpu"]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", words)
        patch.setitem(registry._MAKERS[Study], "dat", lambda: STUDY)
        with pytest.raises(SystemExit) as left:
            main()
    return Trained(store, Done(int(left.value.code or 0), out.getvalue(), err.getvalue()))


@pytest.fixture
def copied(trained: Trained, tmp_path: Path, _small: None) -> Trained:
    """The same in a folder that a test may change."""
    shutil.copytree(trained.store, tmp_path / "runs")
    return Trained(tmp_path / "runs", trained.done)


def test_it_says_first_how_long_it_will_take_and_then_shows_progress(trained: Trained) -> None:
    assert trained.done.code == 0, trained.done.err
    first, second, third, *progress = trained.done.err.splitlines()
    assert (first, second) == ("7 runs, 0 of them finished.", "Timing a few steps of each kind.")
    assert third.startswith("The other 7 take about ")
    assert re.search(r" on cpu, \d+ threads?\.$", third)
    assert sum("finished  step 3/3" in line for line in progress) == 7


def test_it_shows_every_cell_beside_the_papers(trained: Trained) -> None:
    out = trained.done.out
    assert "Table 2: modulo\nEvery arm: task modulo.\n14 values: " in out
    assert "Table 1" not in out
    for model, notation in NOTATION.items():
        assert f"{model}, {notation}, end-to-end: " in out
    assert "missing," not in out


def test_it_leaves_page_figures_rows_and_provenance(trained: Trained) -> None:
    assert {path.name for path in trained.out.iterdir()} == FILES
    assert all(f"wrote {trained.out / name}" in trained.done.out for name in FILES)
    assert {(row.experiment, row.arm, row.size, row.training) for row in trained.rows} == {
        ("dat", "table2", "short", "end-to-end")
    }
    assert {row.run for row in trained.rows} == {run.id for _, run in table2()}
    (entry,) = json.loads((trained.out / "provenance.json").read_text())
    assert set(entry) == {"command", "commit", "hardware", "versions", "precision", "date", "seconds", "size", "runs"}
    assert entry["command"] == "lengthlab reproduce dat --part table2 --device cpu"
    assert set(entry["runs"]) == {row.run for row in trained.rows}
    assert "](table2.svg)" in (trained.out / "dat.md").read_text()


def test_the_same_command_again_trains_nothing(call: Call, copied: Trained) -> None:
    shutil.rmtree(copied.out)
    done = call("reproduce", "dat", "--part", "table2", "--store", copied.store, "--device", "cpu")
    assert "7 runs, 7 of them finished." in done.err
    assert "take about" not in done.err
    assert copied.rows == trained_rows(copied)


def trained_rows(trained: Trained) -> list[Row]:
    return [row for row in read_results(STUDY, (str(trained.store),)).rows if row.arm == "table2"]


@pytest.fixture
def looks_again() -> Iterator[Callable[[], None]]:
    """A process looks for its commit once; a test that moves it does so again, and so does who comes after it."""
    yield commit_of_package.cache_clear
    commit_of_package.cache_clear()


def test_provenance_names_the_commit_that_trained_a_run_not_the_one_that_found_it(
    call: Call, copied: Trained, monkeypatch: pytest.MonkeyPatch, looks_again: Callable[[], None]
) -> None:
    runs = [run.id for _, run in table2()]
    results = [Store(copied.store).folder(run).path / "result.json" for run in runs]
    before = json.loads(results[0].read_text())["commit"]
    assert before == commit_of_package()
    results[0].unlink()
    results[1].write_text(
        json.dumps({key: value for key, value in json.loads(results[1].read_text()).items() if key != "commit"})
    )
    monkeypatch.setenv(COMMIT, "fedcba9876543210")
    looks_again()
    done = call("reproduce", "dat", "--part", "table2", "--store", copied.store, "--device", "cpu")
    assert "7 runs, 6 of them finished." in done.err
    made = {origin.commit: set(origin.runs) for origin in read_origins(copied.out / "provenance.json")}
    assert made == {"fedcba987654": {runs[0]}, "not recorded": {runs[1]}, before: set(runs[2:])}


def test_a_store_is_read_without_training_and_what_is_not_finished_is_missing(call: Call, copied: Trained) -> None:
    arm, gone = table2()[1]
    assert arm.model == "lstm"
    (Store(copied.store).folder(gone.id).path / "result.json").unlink()
    done = call("reproduce", "dat", "--from", copied.store, "--store", copied.store)
    assert (done.code, done.err) == (0, "")
    assert done.out.count("lstm, LSTM, end-to-end: 2 missing") == 3  # in each of the three parts
    assert "transformer, Transformer, end-to-end: 2 differs" in done.out
    assert not (copied.store / "result.json").exists()


@small
def test_only_what_the_rows_at_hand_lack_is_trained(call: Call, trained: Trained, tmp_path: Path) -> None:
    lacking = table2()[1][1].id
    have, made = [row for row in trained.rows if row.run != lacking], read_origins(trained.out / "provenance.json")
    published(tmp_path / "here", have)
    (tmp_path / "here" / "provenance.json").write_text(as_text(made))
    words = ("reproduce", "dat", "--part", "table2", "--device", "cpu", "--have", tmp_path / "here")
    done = call(*words, "--store", tmp_path / "runs", "--out", tmp_path / "out")
    assert "1 runs, 0 of them finished." in done.err
    assert [path.name for path in (tmp_path / "runs").iterdir() if path.is_dir()] == [lacking]
    assert read_rows(tmp_path / "out" / "results.jsonl") == trained.rows
    assert len(read_origins(tmp_path / "out" / "provenance.json")) == 2
    again = call(*words, "--have", tmp_path / "out", "--store", tmp_path / "other", "--out", tmp_path / "again")
    assert "0 runs, 0 of them finished." in again.err
    assert read_rows(tmp_path / "again" / "results.jsonl") == trained.rows


def test_rows_at_hand_serve_every_cell_of_their_run_and_no_other(call: Call, copied: Trained, tmp_path: Path) -> None:
    """Rows of an older recipe, rows that lack a length, and a folder with nothing of it: none of them is an error, or used."""
    first, second, *others = [run.id for _, run in table2()]
    rows = [row for row in copied.rows if not (row.run == first and row.length == 5)]
    stale = [replace(row, run="0123456789ab") for row in rows if row.run == second]
    named_otherwise = [replace(row, arm="elsewhere") for row in rows if row.run in others]
    have = [row for row in rows if row.run == first] + stale + named_otherwise
    published(tmp_path / "here", have)
    (tmp_path / "empty").mkdir()
    wanted = Wanted(STUDY, STUDY.size("short"), (STUDY.section("table2"),))
    found = rows_at_hand([str(tmp_path / "here"), str(tmp_path / "empty")], wanted, [0])
    assert {row.run for row in found.rows} == set(others)
    assert set(found.rows) == {row for row in copied.rows if row.run not in (first, second)}
    done = call("reproduce", "dat", "--part", "table2", "--store", copied.store, "--device", "cpu", "--have", tmp_path / "here")
    assert "2 runs, 2 of them finished." in done.err
    assert copied.rows == trained_rows(copied)


def test_what_is_finished_is_kept_when_it_is_stopped(call: Call, copied: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    shutil.rmtree(copied.out)
    (Store(copied.store).folder(table2()[0][1].id).path / "result.json").unlink()
    monkeypatch.setattr(lengthlab.cli.work, "work", stopped)
    done = call("reproduce", "dat", "--part", "table2", "--store", copied.store, "--device", "cpu")
    assert done.code == 130
    assert f"6 of 7 runs are finished; their rows are in {copied.out}" in done.err
    assert len({row.run for row in copied.rows}) == 6
    assert len(read_results(STUDY, (str(copied.out),)).evidence.origins) == 1


def published(folder: Path, rows: list[Row], **changes: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "results.jsonl").write_text(as_jsonl(rows))
    (folder / "provenance.json").write_text(as_text([origin(rows, **changes)]))
    return folder


def test_what_is_read_leaves_page_and_figures_and_what_was_trained_there_alone(call: Call, copied: Trained) -> None:
    before = {path: path.read_bytes() for path in copied.store.rglob("*") if path.is_file()}
    done = call("reproduce", "dat", "--from", copied.store, "--part", "table2", "--store", copied.store)
    read = copied.store / "dat-short-table2-read"
    assert {path.name for path in read.iterdir()} == FILES
    assert all(f"wrote {read / name}" in done.out for name in FILES)
    assert {path: path.read_bytes() for path in before} == before
    assert call("reproduce", "dat", "--from", read, "--store", copied.store).code == 0


def test_published_rows_need_no_torch(tmp_path: Path) -> None:
    published(tmp_path / "published" / "dat", rows_of(seeds=(0, 1, 2)))
    code = "import sys; sys.modules['torch'] = None; from lengthlab.cli import main; main()"
    words = ("reproduce", "dat", "--from", "published", "--out", "out", "--page", "docs/results.md")
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("84 values: 84 agrees") == 2
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES - {"traces.jsonl"} | {
        f"{part}.{form}" for part in ("table1", "figure1") for form in ("svg", "png")
    }
    assert read_rows(tmp_path / "out" / "results.jsonl") == sorted_rows(tmp_path / "published")
    assert "](results/figure1.svg)" in (tmp_path / "docs" / "results.md").read_text()
    assert sorted(path.name for path in (tmp_path / "docs" / "results").iterdir()) == [
        "figure1.svg",
        "table1.svg",
        "table2.svg",
    ]


def test_without_matplotlib_there_is_no_figure_and_all_the_rest(tmp_path: Path) -> None:
    published(tmp_path / "here", rows_of())
    code = "import sys; sys.modules['matplotlib'] = None; from lengthlab.cli import main; main()"
    words = ("reproduce", "dat", "--from", "here", "--out", "out", "--page", "page.md")
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "no figure: figures need matplotlib: pip install 'lengthlab[report]'\n")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["dat.md", "provenance.json", "results.jsonl"]
    assert (tmp_path / "page.md").exists()


def sorted_rows(folder: Path) -> list[Row]:
    return list(read_results(DAT, (str(folder),)).rows)


def test_several_sources_are_one(call: Call, tmp_path: Path) -> None:
    here, there = rows_of(seeds=(0,)), rows_of(seeds=(0, 1))
    published(tmp_path / "here", here)
    published(tmp_path / "there", there, hardware="another slide rule")
    done = call("reproduce", "dat", "--from", tmp_path / "here", "--from", tmp_path / "there", "--out", tmp_path / "both")
    assert done.code == 0
    assert set(read_rows(tmp_path / "both" / "results.jsonl")) == set(there)
    assert len(json.loads((tmp_path / "both" / "provenance.json").read_text())) == 2
    assert "seed 1" in done.out


def test_seeds_and_part_choose_among_published_rows(call: Call, tmp_path: Path) -> None:
    published(tmp_path / "here", rows_of(seeds=(0, 1, 2)))
    done = call("reproduce", "dat", "--from", tmp_path / "here", "--part", "table1", "--seeds", 2, "--out", tmp_path / "out")
    rows = read_rows(tmp_path / "out" / "results.jsonl")
    assert {(row.arm, row.seed) for row in rows} == {("table1", 0), ("table1", 1)}
    assert "Table 2" not in done.out


def test_several_parts_are_shown_in_the_papers_order_and_once(call: Call, tmp_path: Path) -> None:
    published(tmp_path / "here", rows_of())
    asked = [word for part in ("figure1", "table1", "figure1") for word in ("--part", part)]
    done = call("reproduce", "dat", "--from", tmp_path / "here", *asked, "--out", tmp_path / "out")
    shown = [line.split(":")[0] for line in done.out.splitlines() if line.startswith(("Table", "Figure"))]
    assert shown == ["Table 1", "Figure 1"]
    assert {row.arm for row in read_rows(tmp_path / "out" / "results.jsonl")} == {"table1", "figure1"}


@pytest.mark.parametrize("size", ["", "paper"])
def test_rows_of_the_other_size_are_left_out(call: Call, tmp_path: Path, size: str) -> None:
    """Rows of version 0.1 do not say their size; the entry that made them does."""
    published(tmp_path / "here", [replace(row, size=size) for row in rows_of()], size="paper")
    done = call("reproduce", "dat", "--from", tmp_path / "here", "--size", "short")
    done.refused("no rows of experiment 'dat', size 'short'")
    assert call("reproduce", "dat", "--from", tmp_path / "here", "--size", "paper", "--out", tmp_path / "out").code == 0
    assert {row.size for row in read_rows(tmp_path / "out" / "results.jsonl")} == {"paper"}


def test_conflicting_counts_are_refused_by_both_names(call: Call, tmp_path: Path) -> None:
    published(tmp_path / "here", rows_of())
    published(tmp_path / "there", rows_of(accuracy=lambda *_: 0.5))
    done = call("reproduce", "dat", "--from", tmp_path / "here", "--from", tmp_path / "there", "--out", tmp_path / "out")
    done.refused("n=5", str(tmp_path / "here"), str(tmp_path / "there"))
    assert not (tmp_path / "out").exists()


@small
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "nowhere"), "there is no folder 'nowhere'"),
        (("--from", "."), "'.' holds neither dat/results.jsonl nor results.jsonl nor run folders"),
        (("--from", ".", "--device", "cpu"), "--from trains nothing"),
        (("--part", "table3"), "table3"),
        (("--size", "long"), "long"),
        (("--seeds", "0"), "seeds"),
        (("--part", "table2", "--device", "abacus"), "device 'abacus' is not available here"),
        (("--part", "table2", "--store", "/proc/runs"), "store '/proc/runs' is not writable"),
    ],
)
def test_bad_input_is_one_line(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    call("reproduce", "dat", *words).refused(said)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def delayed_run(*lengths: int) -> Run:
    recipes = {("figure1",): Recipe(delayed(*lengths), batch=4)}
    return run_of(arm_of("figure1", "parallel", "delayed"), replace(TINY, recipes=recipes))


def test_the_forecast_grows_with_the_steps_and_shrinks_with_those_done() -> None:
    short, long = delayed_run(2, 2, 2), delayed_run(20_000, 20_000, 20_000)
    seconds = forecast([long], "cpu").seconds
    assert 0 < 100 * forecast([short], "cpu").seconds < seconds
    assert forecast([long], "cpu", {long.id: 59_999}).seconds < seconds / 100
    assert forecast([], "cpu").seconds == 0


def test_the_forecast_knows_that_the_last_runs_have_the_machine_to_themselves() -> None:
    pace = Pace(alone=2.0, among=1.0)
    assert side_by_side([]) == 0
    assert side_by_side([[(10, pace)]]) == 20
    assert side_by_side([[(10, pace)]] * 4) == 40
    # Four to step 10 in 40 seconds, then one alone for 10 steps more.
    assert side_by_side([[(10, pace)]] * 3 + [[(10, pace), (10, pace)]]) == pytest.approx(60)
    # A slow one beside a quick one sets its own pace.
    assert side_by_side([[(10, Pace(5.0, 1.0))], [(10, pace)]]) == pytest.approx(50)


def test_the_forecast_counts_on_a_run_for_every_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lengthlab.training.pace._seconds_per_step", lambda state: 0.25)
    run, cores = delayed_run(1_000, 1_000), os.cpu_count() or 1
    once = forecast([run], "cpu").seconds
    assert once == pytest.approx(0.25 * run.steps)
    assert forecast([run] * 10 * cores, "cpu").seconds == pytest.approx(10 * once)


def test_the_commit_is_the_environments_or_else_the_checkouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks_again: Callable[[], None]
) -> None:
    looks_again()
    monkeypatch.setenv(COMMIT, "fedcba9876543210")
    assert commit_of_package() == "fedcba987654"
    monkeypatch.delenv(COMMIT)
    assert commit_of_package() == "fedcba987654"  # what is loaded stays loaded
    looks_again()
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    if head.returncode == 0:
        assert head.stdout.startswith(commit_of_package().split()[0])
    (tmp_path / "__init__.py").write_text("")
    monkeypatch.setattr(lengthlab, "__file__", str(tmp_path / "__init__.py"))
    looks_again()
    assert commit_of_package() == f"version {lengthlab.__version__}"


def test_the_committed_pages_are_what_the_published_rows_come_to(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROFILES, "short", PUBLISHED)
    monkeypatch.chdir(tmp_path)
    done = call("reproduce", "--check")
    assert (done.code, done.err) == (0, ""), done.out


def test_a_committed_page_that_differs_is_named_with_the_command_that_mends_it(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("published/far", "published/dat", "docs/far"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.setattr(lengthlab, "__file__", str(tmp_path / "src" / "lengthlab" / "__init__.py"))
    assert call("reproduce", "far", "--check").code == 0
    page, figure = tmp_path / "docs" / "far" / "far.md", tmp_path / "docs" / "far" / "far" / "far.svg"
    page.write_text(page.read_text().replace("0.994", "0.999"))
    figure.unlink()
    (tmp_path / "docs" / "far" / "far-cpu.md").unlink()
    done = call("reproduce", "far", "--check")
    assert done.code == 1
    command = "run: lengthlab reproduce far --from published --size gpu --page docs/far/far.md"
    assert done.out.splitlines() == [
        f"docs/far/far.md differs; {command}",
        f"docs/far/far/far.svg is missing; {command}",
        f"docs/far/far-cpu.md is missing; {command.replace('gpu', 'cpu').replace('far.md', 'far-cpu.md')}",
    ]
    rows = tmp_path / "published" / "far" / "results.jsonl"
    rows.write_text("".join(line for line in rows.read_text().splitlines(True) if '"gpu"' not in line))
    assert "docs/far/far.md has no published rows; delete it and its figures" in call("reproduce", "far", "--check").out


def test_published_rows_of_another_recipe_than_the_study_has_now_are_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("reproduce", "far", "--check").code == 0
    monkeypatch.setitem(SCALES, "gpu", replace(SCALES["gpu"], joint=10_000))
    done = call("reproduce", "far", "--check")
    assert done.code == 1
    arms = [line.split(": ")[1] for line in done.out.splitlines()]
    assert sorted(arms) == sorted(map(str, FAR.arms))
    what = "rows of seeds 0, 1, 2 are of another recipe than it has now"
    again = "train: lengthlab reproduce far --part far --size gpu --seeds 3 --have published"
    assert all(f"{what}; {again}" in line for line in done.out.splitlines())


def test_a_study_without_rows_or_page_is_not_checked_and_a_page_without_rows_is(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "docs" / "far", tmp_path / "docs" / "far")
    monkeypatch.setattr(lengthlab, "__file__", str(tmp_path / "src" / "lengthlab" / "__init__.py"))
    call("reproduce", "--check").refused("published/far is not here")


@pytest.mark.parametrize("name", ["dat", "plateau"])
def test_published_rows_are_shown_without_torch_from_any_folder(name: str, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom lengthlab.cli import main\ntry:\n    main()\nexcept SystemExit as left:\n"
        "    assert not left.code, left.code\nassert 'torch' not in sys.modules"
    )
    words = ("reproduce", name, "--from", "published", "--out", "out")
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Claims: " in done.stdout
    assert (tmp_path / "out" / f"{name}.md").exists()
