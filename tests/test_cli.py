"""What a user types, and what comes back. Training happens once, in real processes, and most tests only look at it."""

from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import lengthlab
from command import Call, Done
from lengthlab.cli.demo import next_steps, summary
from lengthlab.cli.report import write_report
from lengthlab.cli.work import show, work
from lengthlab.experiments.demo import demo
from lengthlab.launch.progress import Progress
from lengthlab.report.sources import Sources
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Schedule
from lengthlab.store import Store
from scripts import start_command

COMMANDS = (
    *("demo", "train", "launch", "worker", "status", "fetch", "reproduce", "evaluate", "report", "figure", "serve", "delay"),
    *("check", "tasks", "models", "experiments"),
)
EXAMPLES = Path(__file__).parent.parent / "examples"
COLUMNS = (
    *("setting", "task", "model", "training", "seed", "trained_to", "length", "question", "correct", "total"),
    *("accuracy", "low", "high", "chance", "run"),
)
PLAN = """
[[run]]
task = { name = "modulo-recall", modulus = 2, keys = 16 }
model = { name = "lstm", width = 8 }
schedule = { name = "end-to-end", joint = 20, lr = 1e-3 }
lengths = [1, 4]
batch = 4
seeds = [0, 1]
evaluate = [4, 8]

[[run]]
task = { name = "modulo-recall", modulus = 2, keys = 16 }
model = { name = "hybrid-block", width = 8, blocks = 1, heads = 2, mlp = 1 }
schedule = { name = "delayed", first = 60, joint = 40, lr = 1e-3 }
lengths = [1, 4]
batch = 4
seeds = [0, 1]
evaluate = [4, 8]
"""


def in_process(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lengthlab", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)  # type: ignore[call-overload]


@dataclass(frozen=True)
class Trained:
    plan: Path
    store: Path
    done: Done

    @property
    def runs(self) -> list[Run]:
        return read_plan(self.plan)

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in self.store.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Two runs of two seeds each, trained by the command line as a user would."""
    folder = tmp_path_factory.mktemp("trained")
    plan = folder / "plan.toml"
    plan.write_text(PLAN)
    process = start_command(folder, "train", str(plan), "--store", str(folder / "runs"))
    process.join(300)
    said = [(folder / name).read_text() for name in ("out.txt", "err.txt")]
    return Trained(plan, folder / "runs", Done(process.exitcode or 0, *said))


@pytest.fixture
def copied(trained: Trained, tmp_path: Path) -> Trained:
    """The same in a folder that a test may change."""
    shutil.copytree(trained.store, tmp_path / "runs")
    return replace(trained, store=tmp_path / "runs")


def test_help_says_what_there_is_and_where_to_start(call: Call) -> None:
    done = call("--help")
    assert done.code == 0
    assert "lengthlab demo" in done.out
    for command in COMMANDS:
        assert f"\n  {command} " in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(call: Call, command: str) -> None:
    done = call(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: lengthlab {command}")
    assert call(command, "-h").out == done.out


def test_help_is_quick_because_torch_and_other_large_libraries_stay_out() -> None:
    large = {"torch", "numpy", "matplotlib", "transformers"}
    code = (
        "import sys; from lengthlab.cli import cli; cli(['--help'], standalone_mode=False); "
        f"sys.exit(bool({large} & {{*sys.modules}}))"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, timeout=60).returncode == 0


def test_the_version_is_the_packages(call: Call) -> None:
    assert lengthlab.__version__ in call("--version").out


def test_training_prints_the_table_and_where_it_comes_from(trained: Trained) -> None:
    assert trained.done.code == 0
    out = trained.done.out
    for word in ("Accuracy by length", "lstm", "end-to-end", "hybrid-block", "delayed", "n=4", "n=8", "modulo", "recall"):
        assert word in out
    assert "n = 1…4. Seeds 0, 1" in out


def test_training_leaves_a_finished_folder_for_every_run_and_nothing_beside(trained: Trained) -> None:
    folders = Store(trained.store).folders()
    assert {folder.id for folder in folders} == {run.id for run in trained.runs}
    assert all(folder.finished for folder in folders)
    kept = {path.name for path in trained.store.rglob("*") if path.is_file()}
    assert kept - {".lock"} == {"run.json", "log.jsonl", "weights.safetensors", "result.json"}


def test_without_a_terminal_progress_is_plain_lines(trained: Trained) -> None:
    lines = trained.done.err.splitlines()
    assert "\x1b" not in trained.done.err
    for run in trained.runs:
        own = [line for line in lines if line.startswith(f"{run.model.name}, ") and f", seed {run.seed}: " in line]
        assert f"finished  step {run.steps}/{run.steps}  loss " in own[-1]
    assert lines[0].startswith("training on ")
    assert len(lines) < 40


def watched(run: Run, store: Path, log: Sequence[dict[str, object]], capsys: pytest.CaptureFixture[str]) -> str:
    """What progress says of a run with that log."""
    folder = Store(store).folder(run.id)
    folder.write_json("run.json", run.to_json())
    for line in log:
        folder.append_log(line)
    with folder.lock() if log else nullcontext(), Progress([run], store, "training"):
        pass
    return capsys.readouterr().err


def test_a_plain_line_tells_run_phase_step_loss_accuracy_and_time_left(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained.runs[2]
    log = {"step": 50, "phase": 1, "loss": 1.25, "lr": 1e-3, "samples_per_second": 10.0, "accuracy": {"4": 0.75, "12": 0.5}}
    said = watched(run, tmp_path, [log], capsys)
    assert said.startswith("training\nhybrid-block, delayed: ")
    # 50 more steps of 4 samples, 10 samples a second
    for word in ("phase 1/2, attention off", "step 50/100", "loss 1.2500", "0.75 n=4", "0.50 n=12", "time left 20 s or more"):
        assert word in said


def test_runs_of_the_first_version_are_watched_under_their_short_names(
    call: Call, copied: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in [path for path in copied.store.iterdir() if (path / "run.json").exists()]:
        path.rename(path.with_name(path.name[:12]))
    with Progress(copied.runs, copied.store, "training"):
        pass
    assert capsys.readouterr().err.count("finished") == len(copied.runs)
    assert call("train", copied.plan, "--store", copied.store).code == 0


def test_a_run_that_has_logged_nothing_waits(trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "waiting" in watched(trained.runs[0], tmp_path, [], capsys)


def test_in_a_terminal_a_live_table_shows_a_row_for_each_run_and_a_line_for_all(trained: Trained, tmp_path: Path) -> None:
    mine, theirs = pty.openpty()
    command = [sys.executable, "-m", "lengthlab", "train", str(trained.plan), "--store", str(tmp_path), "--set", "evaluate=[4]"]
    wide = os.environ | {"COLUMNS": "140", "TERM": "xterm"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=wide)
    os.close(theirs)
    said = read_all(mine)
    assert process.wait(60) == 0
    assert "\x1b[" in said
    labels = [run.label for run in trained.runs]
    for word in ("phase", "step", "loss", "in range", "beyond", "time left", "4 of 4 runs finished", *labels):
        assert word in said
    last = said[said.rindex("time left") :]
    assert sorted(labels, key=last.index) == labels  # rows keep their order


def read_all(terminal: int) -> str:
    """Everything written to a terminal until its other end is closed."""
    pieces = []
    try:
        while piece := os.read(terminal, 4096):
            pieces.append(piece)
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(terminal)
    return b"".join(pieces).decode()


def test_the_same_command_again_only_reads(call: Call, trained: Trained) -> None:
    before = trained.files()
    done = call("train", trained.plan, "--store", trained.store)
    assert (done.code, done.out.split()) == (0, trained.done.out.split())
    assert trained.files() == before


def test_json_rows_have_settings_counts_and_intervals(call: Call, trained: Trained) -> None:
    done = call("train", trained.plan, "--store", trained.store, "--json")
    rows = json.loads(done.out)
    assert all(set(COLUMNS) <= set(row) for row in rows)
    found = {(row["run"], row["length"], row["question"]) for row in rows}
    wanted = {(run.id, n, question) for run in trained.runs for n in (4, 8) for question in ("modulo", "recall", "all")}
    assert found == wanted
    assert len(rows) == len(wanted)


def test_set_changes_every_run_of_the_file(call: Call, trained: Trained) -> None:
    done = call("train", trained.plan, "--store", trained.store, "--json", "--set", "seeds=[1]")
    assert {(row["model"], row["seed"]) for row in json.loads(done.out)} == {("lstm", 1), ("hybrid-block", 1)}


def test_more_lengths_are_measured_without_training_again(call: Call, copied: Trained) -> None:
    weights = {path: path.read_bytes() for path in copied.store.rglob("weights.safetensors")}
    words = ("train", copied.plan, "--store", copied.store, "--json", "--set", "evaluate=[4, 16]", "--set", "seed=0")
    rows = json.loads(call(*words).out)
    assert {row["length"] for row in rows} == {4, 16}
    assert {path: path.read_bytes() for path in copied.store.rglob("weights.safetensors")} == weights


def test_evaluate_by_folder_shows_and_keeps_the_new_length(call: Call, copied: Trained) -> None:
    run = copied.runs[0]
    done = call("evaluate", copied.store / run.id, "--lengths", "2,16", "--samples", "60")
    assert done.code == 0
    assert ["n", "2", "16"] in [line.split() for line in done.out.splitlines()]
    counts = json.loads((copied.store / run.id / "result.json").read_text())["counts"]
    assert {(count["length"], count["total"]) for count in counts} == {(2, 60), (4, 1000), (8, 1000), (16, 60)}


def test_what_is_measured_afterwards_is_shown_where_it_was_asked_for_and_nowhere_else(call: Call, copied: Trained) -> None:
    words = ("train", copied.plan, "--store", copied.store)
    before = call(*words).out
    shown = call("evaluate", copied.runs[0].id, "--store", copied.store, "--lengths", "5").out
    assert ["n", "5"] in [line.split() for line in shown.splitlines()]
    assert call(*words).out == before
    assert "n=5 " in call("report", copied.store).out


def test_evaluate_by_the_start_of_an_id_prints_rows(call: Call, copied: Trained) -> None:
    run = copied.runs[0]
    done = call("evaluate", run.id[:8], "--store", copied.store, "--lengths", "3", "--samples", "10", "--json")
    rows = json.loads(done.out)
    assert all(set(COLUMNS) <= set(row) for row in rows)
    assert {row["run"] for row in rows} == {run.id}
    assert {row["length"] for row in rows} == {3}


def test_evaluate_says_first_how_long_it_will_take_unless_nobody_wants_to_know(
    call: Call, copied: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lengthlab.launch.measuring.QUIET_SECONDS", 0.0)
    words = ("evaluate", copied.runs[0].id, "--store", copied.store, "--samples", "10", "--lengths")
    assert call(*words, "6").err.startswith("length 6: 10 samples of 18 tokens will take about 0 s, going by the first batch")
    assert call(*words, "7", "--no-progress").err == ""


def test_evaluate_from_inside_the_run_folder(call: Call, copied: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copied.store / copied.runs[0].id)
    done = call("evaluate", ".", "--lengths", "3", "--samples", "10")
    assert (done.code, done.err) == (0, "")


def test_a_report_is_tables_and_figures_beside_the_runs(call: Call, copied: Trained) -> None:
    done = call("report", copied.store)
    assert (done.code, done.err) == (0, "")
    assert "Accuracy by length" in done.out
    written = copied.store / "report"
    files = ["accuracy.png", "accuracy.svg", "report.html", "table.csv", "table.json", "table.md"]
    assert sorted(path.name for path in written.iterdir()) == files
    assert all(f"wrote {path}" in done.out for path in written.iterdir())
    assert all(run.id in (written / "table.md").read_text() for run in copied.runs)


def test_a_report_names_unfinished_runs_and_leaves_them_out(call: Call, copied: Trained, tmp_path: Path) -> None:
    begun, *finished = copied.runs
    (copied.store / begun.id / "result.json").unlink()
    done = call("report", copied.store, "--out", tmp_path / "out")
    assert done.code == 0
    assert done.err.splitlines() == [f"lengthlab: left out: run {begun.id} is not finished"]
    text = (tmp_path / "out" / "table.csv").read_text()
    assert begun.id not in text
    assert all(run.id in text for run in finished)


def test_a_report_as_json_writes_nothing(call: Call, copied: Trained) -> None:
    rows = json.loads(call("report", copied.store, "--json").out)
    assert all(set(COLUMNS) <= set(row) for row in rows)
    assert not (copied.store / "report").exists()


def test_the_demo_compares_like_with_like() -> None:
    runs = demo((0, 1))
    assert [(run.seed, run.schedule.name) for run in runs] == [
        *((0, "end-to-end"), (0, "delayed")),
        *((1, "end-to-end"), (1, "delayed")),
    ]
    first = runs[0]
    for run in runs:
        assert (run.task, run.model, run.steps, run.batch) == (first.task, first.model, first.steps, first.batch)
        assert run.lengths == (1, 10)
        assert set(run.evaluate) >= {5, 10, 20, 30, 40, 60}
    whole, delayed = first.schedule.phases, runs[1].schedule.phases
    assert not any(phase.off or phase.asks for phase in whole)
    assert delayed[0].off == ("attention",)
    assert not any(phase.off or phase.asks for phase in delayed[1:])
    assert {tuple(phase.rates) for phase in (*whole, *delayed)} == {("rest",)}


def test_the_demo_at_a_tiny_size_and_what_it_says_to_type_next(
    call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [replace(run, schedule=tiny(run.schedule), batch=4) for run in demo((0,))]
    curves = work(runs, str(tmp_path), "cpu")
    show(curves, as_json=True)
    rows = json.loads(capsys.readouterr().out)
    assert {(row["setting"], row["training"]) for row in rows} == {("end-to-end", "end-to-end"), ("delayed", "delayed")}
    assert {row["length"] for row in rows} == {5, 10, 20, 30, 40, 60}
    said = summary(curves)
    assert all(word in said for word in ("end-to-end", "delayed", "at n=10", "at n=30", "at n=60"))
    _, measure, _, asked, _, report = [shlex.split(line.partition("#")[0]) for line in next_steps(curves, str(tmp_path))]
    assert call(*measure[1:]).code == 0
    assert asked[:2] == ["lengthlab", "why"]
    assert report == ["lengthlab", "report", str(tmp_path)]
    paths = write_report(Sources(tuple(curves)), tmp_path / "demo-seed-0")
    assert {path.name for path in paths} == {
        "report.html",
        "table.md",
        "table.csv",
        "table.json",
        "accuracy.png",
        "accuracy.svg",
    }


def tiny(schedule: Schedule) -> Schedule:
    return replace(schedule, phases=tuple(replace(phase, length=3) for phase in schedule.phases))


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (
            "tasks",
            [
                *("modulo-recall", "modulo", "recall", "mixture", "few"),
                *("addition", "multi-addition", "multiplication", "minesweeper", "addition-plane", "parity-scratchpad"),
                *("passkey", "needles", "variable-tracking", "mqar", "state-recall", "group-recall"),
                *("unique-left", "unique-right", "first-left", "first-right", "last-left", "last-right"),
                *("copy", "reverse", "shifted-reverse"),
                *("majority", "binary-majority", "binary-majority-interleave", "sort", "parity", "binary-addition"),
                *(
                    f"rule-{name}"
                    for name in ("addition", "base-9", "last-letters", "coin-flips", "digit-sum", "programs", "pointers")
                ),
                "rule",
                *("successor", "predecessor", "count", "fill", "place-parity", "subsequence", "repetitive"),
                *("no-carry", "carry-only", "running-sum", "running-product"),
                "language",
                *(*(f"tomita-{number}" for number in range(1, 8)), "D2", "D3", "D4", "D12", "(aa)*", "(aaaa)*", "(abab)*"),
            ],
        ),
        (
            "models",
            [
                *("transformer", "lstm", "attention-on-lstm", "lstm-on-attention", "parallel", "hybrid-block", "sandwich"),
                *("gpt2", "llama", "t5-decoder", "lstm-hsa", "model", "module", "causal-lm"),
                *(f"part={name}" for name in ("chain", "parallel", "residual", "repeat", "named", "silent", "lstm")),
                *(f"part={name}" for name in ("gru", "rnn", "slstm", "mlstm", "mamba2")),
                *(f"part={name}" for name in ("gated-deltanet", "deltaproduct", "bilinear")),
                *(f"part={name}" for name in ("attention", "local-attention", "hierarchical-attention", "chunk-memory")),
                *(f"part={name}" for name in ("mlp", "gated-mlp", "dropout", "relu", "gelu", "silu")),
                *(f"part={name}" for name in ("layer-norm", "rms-norm")),
                *(f"positions={name}" for name in ("rope", "slow-rope", "none", "alibi", "learned", "randomized")),
                *(f"scores={name}" for name in ("none", "log-n", "tempered", "adaptive-temperature", "entmax")),
                *(f"scores={name}" for name in ("adaptive-entmax", "stick-breaking")),
                *(f"chunk-weights={name}" for name in ("stick-breaking", "softmax")),
            ],
        ),
        (
            "experiments",
            [
                *("demo", "dat", "far", "remedies", "plateau", "born", "crasp", "coupling"),
                *("recurrences", "hard-states", "passkey", "needles", "variable-tracking", "long-memory", "rules"),
                *("hints", "association", "auxiliary"),
            ],
        ),
    ],
)
def test_a_catalogue_lists_what_there_is_with_a_line_each(call: Call, command: str, names: list[str]) -> None:
    lines = call(command).out.splitlines()
    assert [line.split()[0] for line in lines] == names
    about = json.loads(call(command, "--json").out)
    assert list(about) == names
    assert all(text for text in about.values())


@pytest.mark.parametrize("name", ["modulo-recall", "modulo", "recall"])
def test_a_task_card_has_a_sample_chance_and_the_scores_of_trivial_answers(call: Call, name: str) -> None:
    text = call("tasks", name).out
    for word in (f"{name}:", "<bos>", "scored", "vocabulary", "chance", "commonest", "last value seen"):
        assert word in text
    card = json.loads(call("tasks", name, "--json").out)
    assert card["name"] == name
    assert set(card["scored"]) == set(name.split("-"))
    assert set(card["chance"]) == {*name.split("-"), "all"}


def test_a_model_card_has_the_composition_the_parameters_and_what_is_off(call: Call) -> None:
    text = call("models", "hybrid-block").out
    (off,) = [line for line in text.splitlines() if "off while delayed" in line]
    assert "attention: 4 times" in off
    lines = json.loads(call("models", "hybrid-block", "--json").out)
    (part,) = [line for line in lines if line["path"] == "body.attention"]
    assert part["off"]
    assert f"{part['parameters']:,} parameters are off" in text
    assert f"{sum(line['parameters'] for line in lines if line['depth'] == 0):,} parameters" in text


def test_a_model_without_attention_says_that_there_is_nothing_to_delay(call: Call) -> None:
    assert "nothing to switch off" in call("models", "lstm").out


def test_an_experiment_card_has_claim_cost_command_and_runs(call: Call) -> None:
    text = call("experiments", "demo").out
    assert all(word in text for word in ("Claim:", "Cost:", "Command: lengthlab demo"))
    runs = json.loads(call("experiments", "demo", "--json").out)
    assert [run["id"] for run in runs] == [run.id for run in demo((0,))]
    assert all(run["id"] in text for run in runs)


def test_cards_of_things_in_ones_own_files(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    assert "<parity>" in call("tasks", "parity_task.py:Parity").out
    text = call("models", "three_lstms.py:three_lstms").out
    assert "three-lstms: width 64" in text
    assert "3 times" in text


def test_a_task_whose_draw_and_solve_disagree_is_refused(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (EXAMPLES / "copy_task.py").read_text()
    (tmp_path / "wrong.py").write_text(
        text + "\nclass Wrong(Copy):\n    def solve(self, words):\n        return {'copy': ()}\n"
    )
    call("tasks", "wrong.py:Wrong").refused("solve answers copy by ()", "one of the two is wrong")


def test_what_users_wrote_moves_no_cursor(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "\x1b[31mred\x07"
    assert "\x1b" not in call("evaluate", name, "--lengths", "3").err
    (tmp_path / "mine.py").write_text(
        f"import lengthlab as ll\nfrom lengthlab.models import *\ndef net():\n    return Model({name!r}, 8, chain(Lstm()))\n"
    )
    shown = call("models", "mine.py:net").out
    assert "\\x1b[31mred\\x07: width 8" in shown
    assert "\x1b[31m" not in shown


def test_a_plain_module_as_json_is_json(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("from torch import nn\ndef net(vocabulary):\n    return nn.Embedding(vocabulary, 4)\n")
    assert json.loads(call("models", "mine.py:net", "--json").out)["network"][0].startswith("Embedding(")


@pytest.mark.parametrize("typed", [["models"], ["reproduce", "far", "--from", "published", "--out", "OUT"]])
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path, typed: list[str]) -> None:
    words = ["lengthlab", *(str(tmp_path) if word == "OUT" else word for word in typed)]
    (tmp_path / "typed.py").write_text(f"import sys\nfrom lengthlab.cli import main\nsys.argv = {words!r}\nmain()\n")
    piped = f"{sys.executable} {tmp_path / 'typed.py'} | head -1"
    done = subprocess.run(["bash", "-c", piped], capture_output=True, text=True, timeout=60)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""
