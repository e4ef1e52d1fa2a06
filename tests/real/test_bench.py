"""The bench compares like with like, counts what it says it counts, and shows what it measured. Nothing here is timed."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from command import Call
from lengthlab.bench import parts
from lengthlab.bench.case import Case, Shape, first, joint, shape_of
from lengthlab.bench.floor import flops, needed, padded
from lengthlab.bench.gpu import SideBySide
from lengthlab.bench.guard import guard_costs
from lengthlab.bench.loop import SILENT, Loop, draw, loss_of
from lengthlab.bench.measurement import GUARD, PARTS, STEP, TEXTBOOK, TUNED, Findings, Measurement, Origin
from lengthlab.bench.page import bench_page
from lengthlab.bench.reading import readers, reading_costs
from lengthlab.bench.stopwatch import Patience
from lengthlab.cli import timing
from lengthlab.errors import LabError
from lengthlab.models import MODELS, hybrid_block
from lengthlab.report.markdown import markdown
from lengthlab.report.page import Heading, Table
from lengthlab.report.terminal import show
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import delayed, end_to_end
from lengthlab.tasks import ModuloRecall
from lengthlab.training.data import StepData
from lengthlab.training.state import TrainState, answer_loss
from small_runs import CPU, TASK

HYBRIDS = ("attention-on-lstm", "lstm-on-attention", "parallel", "hybrid-block", "sandwich")
RENAMED = {
    r"body\.(residual\.)?lstm\.cell\.": "lstm.",
    r"body\.lstm-2\.cell\.": "last.",
    r"body\.residual\.norm\.": "norm.",
    r"body\.attention\.(\d+)\.residual\.attend\.": r"attention.\1.attend.",
    r"body\.attention\.(\d+)\.residual\.norm\.": r"attention.\1.norm_1.",
    r"body\.attention\.(\d+)\.residual-2\.mlp\.": r"attention.\1.mlp.",
    r"body\.attention\.(\d+)\.residual-2\.norm\.": r"attention.\1.norm_2.",
}


def run_of(name: str, **changes: Any) -> Run:
    model = MODELS[name](16) if name == "lstm" else MODELS[name](16, blocks=2, heads=2, mlp=3)
    schedule = delayed(50, 50, lr=1e-3) if name in HYBRIDS else end_to_end(50, lr=1e-3)
    rest: dict[str, Any] = {"task": ModuloRecall(modulus=3, values=5, keys=9), "lengths": (1, 6), "batch": 7}
    return Run(model=model, **{"schedule": schedule} | rest | changes)


def as_textbook(ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors under our names, under the textbook's."""
    found: dict[str, Tensor] = {}
    for name, tensor in ours.items():
        for pattern, new in RENAMED.items():
            name = re.sub(f"^{pattern}", new, name)
        found[name] = tensor
    for name in [name for name in found if ".attend.q." in name]:
        kv = name.replace(".attend.q.", ".attend.kv.")
        found[name.replace(".attend.q.", ".attend.qkv.")] = torch.cat((found.pop(name), found.pop(kv)))
    return found


def targets_of(data: StepData) -> Tensor:
    if data.query_BQ is None:
        return data.target_BQ
    return torch.full_like(data.tokens_BT, SILENT).scatter(1, data.query_BQ, data.target_BQ)


COVERS = [delayed(50, 50, lr=1e-3, covers=covers) for covers in ("part", "sublayers")]
FIRST = [first(run_of(name, schedule=schedule)) for name in HYBRIDS for schedule in COVERS]
CASES = [*(joint(run_of(name)) for name in MODELS), *FIRST]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.shape.kind}, off: {case.off}")
def test_the_textbook_network_is_ours_forward_and_backward(case: Case) -> None:
    state, loop = TrainState(case.run, CPU, padded=True), Loop(case, CPU)
    state.enter_phase()
    weights = as_textbook(dict(state.network.named_parameters()))
    theirs = dict(loop.network.named_parameters())
    loop.network.load_state_dict({name: weights[name] for name in theirs})
    data = state.step_data(0)

    our_loss = answer_loss(state.network, data)
    their_loss = loss_of(loop.network, data.tokens_BT, targets_of(data))
    our_loss.backward()
    their_loss.backward()

    torch.testing.assert_close(their_loss, our_loss)
    ours = {name: weight.grad for name, weight in state.network.named_parameters() if weight.grad is not None}
    gradients = as_textbook(ours)
    assert gradients.keys() == theirs.keys()
    for name, weight in theirs.items():
        assert weight.grad is not None
        torch.testing.assert_close(weight.grad, gradients[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("questions", [("modulo", "recall"), ("modulo",), ("recall",)])
def test_the_textbook_draws_right_answers(questions: tuple[str, ...]) -> None:
    task = ModuloRecall(modulus=3, values=5, keys=9, questions=questions)
    tokens_BT, targets_BT = draw(task, torch.arange(200) % 9 + 1, questions, torch.Generator().manual_seed(1))
    lengths = set()
    for tokens_T, targets_T in zip(tokens_BT, targets_BT, strict=True):
        said = [task.words[token] for token in targets_T.tolist() if token != SILENT]
        words = task.decode(tokens_T)
        lengths.add(sum(word.startswith("k") for word in words) - ("recall" in questions))
        assert said == [word for question in questions for word in task.solve(words)[question]]
    assert lengths == set(range(1, 10))


def test_a_question_that_does_not_count_has_no_target() -> None:
    _, targets_BT = draw(TASK, torch.tensor([1, 1, 2, 2, 3]), ("modulo",), torch.Generator())
    assert (targets_BT != SILENT).sum().item() == 5


def test_the_textbook_loop_learns() -> None:
    case = joint(
        run_of("lstm", task=ModuloRecall(modulus=2, values=2, keys=4, questions=("recall",)), lengths=(1, 1), batch=16)
    )
    loop = Loop(case, CPU)
    loop.go(400)
    assert loop.losses[-1] < loop.losses[0]


@pytest.mark.filterwarnings("ignore:TF32 acceleration")  # setting the flags warns about Intel GPUs, whatever is set
@pytest.mark.parametrize("name", MODELS)
def test_the_formula_counts_what_torch_counts(name: str) -> None:
    case = joint(run_of(name))
    loop, width = Loop(case, CPU), case.shape.width
    tokens_BT, targets_BT = draw(case.task, torch.tensor([1, 2, 3, 4, 5, 6, 6]), case.asks, torch.Generator())
    counter = FlopCounterMode(display=False)
    # Libraries hide their products from the counter; the plain paths show them.
    with torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH), counter:
        loss_of(loop.network, tokens_BT, targets_BT).backward()
    counted = flops(case.shape, case.task.vocabulary, padded(*tokens_BT.shape))
    # Torch multiplies the first token's state, zero, with the weights, and asks for their gradient; the floor does neither.
    lstms = {"transformer": 0, "sandwich": 2}.get(name, 1)
    assert counter.get_total_flops() == counted + lstms * 2 * 8 * width**2 * len(tokens_BT)


def test_the_floor_counts_only_what_answers_depend_on() -> None:
    run = run_of("attention-on-lstm", lengths=(2, 2), batch=1)
    whole, alone = needed(joint(run)), needed(first(run))
    # <bos> k v k v <modulo> m <recall> k: both are asked at the 6th and the 9th token, modulo alone at the 6th.
    assert (whole.tokens, whole.asked, whole.pairs, whole.asked_pairs) == (9, 2, 45, 15)
    assert (alone.tokens, alone.asked) == (6, 1)
    assert flops(joint(run).shape, 20, alone, off="part") < flops(joint(run).shape, 20, alone)


def test_a_shape_is_read_from_the_composition() -> None:
    assert shape_of(MODELS["parallel"](32, blocks=3, heads=4, mlp=2)) == Shape("parallel", 32, 3, 4, 2)
    with pytest.raises(LabError, match="rotary"):
        shape_of(hybrid_block(32, positions="none"))


def test_runs_side_by_side_take_as_many_steps_as_they_are_told() -> None:
    states = [TrainState(joint(run_of("lstm", seed=seed)).run, CPU) for seed in range(2)]
    SideBySide(states).go(100)
    assert [state.step for state in states] == [100, 100]


class Busy:
    """A machine that only counts what it is asked to train."""

    textbooks = (TEXTBOOK, TUNED)
    engine = "engine, bf16"
    exact = ("engine, fp32",)
    turn = 1

    def __init__(self) -> None:
        self.trained: list[tuple[str, int]] = []

    @contextmanager
    def train(self, way: str, cases: Sequence[Case]) -> Iterator[Busy]:
        self.trained.append((way, len(cases)))
        yield self

    def go(self, steps: int) -> None:
        pass

    def memory(self) -> int:
        return 1

    def close(self) -> None:
        pass


def test_the_textbook_has_one_model_at_a_time_and_the_engine_all() -> None:
    runs = [run_of(parts.MODEL), run_of(parts.MODEL, schedule=end_to_end(5)), run_of("lstm")]
    machine, said = Busy(), []
    bench = parts.Bench(machine, runs, Patience(repeats=1, seconds=0), said.append)
    whole, _, ours, *delayed_alone = bench.measure("suite")
    assert (whole.models, whole.samples, ours.models, ours.samples) == (3, 21, 3, 21)
    assert [each.models for each in delayed_alone] == [1, 1, 1]
    # Two of the three cells are of one kind when all parts are on: the textbook times them once.
    assert [models for way, models in machine.trained if way == TEXTBOOK] == [1, 1, 1]
    assert [models for way, models in machine.trained if way == "engine, bf16"] == [3, 1]
    assert len(said) == len(machine.trained)
    three = [TEXTBOOK, TUNED, "engine, bf16"]
    assert [each.way for each in bench.measure("one")] == [*three, "engine, fp32", *three]


def made_up() -> Findings:
    origin = Origin("lengthlab bench", "abc", "a machine", {"torch": "2"}, "2026-01-01", 9.0, 0.1, "demo", "cuda")
    rows = [
        Measurement("one", "lstm", TEXTBOOK, 1, 64, 1e9, (0.011, 0.010, 0.009), 2**20),
        Measurement("one", "lstm", TUNED, 1, 64, 1e9, (0.005, 0.005, 0.005), 2**20),
        Measurement("one", "lstm", "engine, bf16", 1, 64, 1e9, (0.001, 0.002, 0.001), 2**21),
        Measurement("suite", "2 cells", TEXTBOOK, 2, 128, 2e9, (0.02,), 2**20),
        Measurement("suite", "2 cells", "engine, bf16", 2, 128, 2e9, (0.002,), 2**22),
    ]
    return Findings(tuple(rows), {"bf16": 1e13}, origin)


def test_ratios_and_distances_from_made_up_measurements() -> None:
    rows = made_up().to_json()["measurements"]
    ours = rows[2]
    assert ours["ratio"] == pytest.approx({TEXTBOOK: 10, TUNED: 5})
    assert ours["times_the_floor"] == pytest.approx(10)
    assert (ours["median"], ours["steps_per_second"], ours["samples_per_second"]) == pytest.approx((0.001, 1_000, 64_000))
    assert rows[0]["spread"] == pytest.approx(0.1)
    assert rows[4]["ratio"] == pytest.approx({TEXTBOOK: 10})
    assert json.loads(json.dumps(made_up().to_json()))["hardware"] == "a machine"


def test_one_run_of_ours_on_a_cpu_is_held_against_one_core() -> None:
    origin = made_up().origin
    alone, both, theirs = (
        Measurement("one", "lstm", way, models, 64, 1e9, (0.1,), 0)
        for way, models in (("engine, fp32", 1), ("engine, fp32", 2), (TEXTBOOK, 1))
    )
    findings = Findings((alone, both, theirs), {"one core": 1e10, "all cores": 2e10}, origin)
    assert [findings.above_floor(each) for each in (alone, both, theirs)] == pytest.approx([1, 2, 2])


def test_tables_have_a_row_for_each_case() -> None:
    page = bench_page(made_up())
    assert [block.text for block in page.blocks if isinstance(block, Heading)] == [PARTS["one"], PARTS["suite"], PARTS["floor"]]
    tables = [block for block in page.blocks if isinstance(block, Table)]
    assert tables[0].header[1:4] == ("textbook", "tuned", "engine, bf16")
    assert tables[0].rows == (("lstm", "100 ±10%", "200 ±0%", "1,000 ±50%", "64,000", "10.00", "5.00", "1", "2"),)
    assert all(len(row) == len(table.header) for table in tables for row in table.rows)
    assert "| lstm | 100 ±10% |" in markdown(page)
    assert "`lengthlab bench`, commit abc" in markdown(page)


def test_tables_of_the_bench_fit_into_a_terminal_of_80_columns() -> None:
    console = Console(width=80, file=io.StringIO(), highlight=False)
    show(bench_page(made_up()), console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "1,000 ±50%" in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_command_measures_every_part(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [run_of("attention-on-lstm"), run_of("attention-on-lstm", schedule=end_to_end(5))]
    monkeypatch.setattr(timing, "suite_of", lambda size: runs)
    monkeypatch.setattr(timing, "PATIENCE", {"cpu": Patience(repeats=2, seconds=0.0)})
    monkeypatch.setattr(parts, "NUMBERS", (1, 3))
    monkeypatch.setattr(parts, "LENGTHS", (3, 12))
    monkeypatch.setattr("lengthlab.bench.cores.os.cpu_count", lambda: 2)
    monkeypatch.setattr("lengthlab.bench.peak.CPU_SIZE", 32)
    monkeypatch.setattr("lengthlab.bench.reading.LENGTHS", {"cpu": (2**12, 2**13)})
    monkeypatch.setattr("lengthlab.bench.reading.SHORT", {"cpu": (2**11, 2**12)})
    monkeypatch.setattr("lengthlab.bench.reading.WALKED", 2**12)
    done = call("bench", "--device", "cpu", "--out", tmp_path / "bench")
    assert done.code == 0, done.err
    assert "timing textbook: attention-on-lstm" in done.err
    assert "3 runs" in done.out
    assert (tmp_path / "bench" / "bench.md").read_text().count("\n## ") == 7

    data = json.loads((tmp_path / "bench" / "bench.json").read_text())
    measured = [(row["part"], row["case"], row["way"]) for row in data["measurements"]]
    cases = [("one", "attention-on-lstm"), ("suite", "2 cells, all parts on"), ("suite", "1 delayed hybrids, attention off")]
    cases += [("runs", "1 run"), ("runs", "3 runs"), ("lengths", "n = 1…3"), ("lengths", "n = 1…12")]
    guarded = [("guard", "12 layers of width 256", way) for way in (STEP, GUARD)]
    lengths = {"lstm": ("4,096",), "lstm-hsa": ("4,096", "8,192"), "mamba2-hsa": ("4,096", "8,192")}
    lengths["transformer"] = ("2,048", "4,096")
    read = [("reading", f"{tokens} tokens", way) for way in lengths for tokens in lengths[way]]
    assert measured == [(*case, way) for case in cases for way in (TEXTBOOK, "engine, fp32")] + guarded + read
    assert all(len(row["seconds"]) == (1 if row["part"] == "reading" else 2) for row in data["measurements"])
    assert all(min(row["seconds"]) > 0 for row in data["measurements"])
    trained = [row for row in data["measurements"] if row["part"] not in ("guard", "reading")]
    assert all(row["memory"] > 2**20 and row["times_the_floor"] > 0 for row in trained)
    assert set(data["peaks"]) == {"one core", "all cores"}


def test_the_guard_takes_less_than_a_hundredth_of_a_step() -> None:
    step, guard = guard_costs(Patience(repeats=3, seconds=0.2))
    assert (step.way, guard.way, step.case) == (STEP, GUARD, "12 layers of width 256")
    assert min(guard.seconds) < 0.01 * min(step.seconds)
    page = bench_page(Findings((step, guard), {}, made_up().origin))
    table = next(block for block in page.blocks if isinstance(block, Table))
    assert table.rows[0][-1].endswith("%")


def test_the_command_prints_data(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(timing, "find", lambda *words: asked.append(words) or made_up())
    done = call("bench", "--device", "cpu", "--part", "suite,one", "--json")
    assert json.loads(done.out) == json.loads(json.dumps(made_up().to_json()))
    assert asked == [(CPU, "demo", ("one", "suite"))]


def test_the_demos_size_is_the_demos() -> None:
    from lengthlab.experiments.demo import demo

    runs = timing.suite_of("demo")
    assert len(runs) == 26
    models = [run.model for run in runs if run.model.name == "hybrid-block"]
    theirs = demo()[0]
    assert (runs[0].batch, runs[0].lengths) == (theirs.batch, theirs.lengths)
    assert runs[-1].task == theirs.task
    assert set(map(shape_of, models)) == {Shape("hybrid-block", 48, 1, 4, 4)}
    assert theirs.model == hybrid_block(48, blocks=1, heads=4, mlp=4, positions="none", scores="log-n")


def test_bad_words_end_in_one_line(call: Call, tmp_path: Path) -> None:
    call("bench", "--part", "one,suit").refused("unknown part 'suit'", "did you mean 'suite'?")
    call("bench", "--size", "huge").refused("huge")
    call("bench", "--device", "meta").refused("meta")
    call("bench", "--device", "toaster").refused("device 'toaster' is not available")
    (tmp_path / "file").write_text("")
    call("bench", "--device", "cpu", "--out", tmp_path / "file" / "bench").refused("--out", "is not writable")


def costs_of_two_lengths() -> list[Measurement]:
    return list(reading_costs(torch.device("cpu"), lambda text: None, lengths=(2**14, 2**12)))


def test_memory_of_a_sequence_read_in_pieces_grows_where_all_keys_are_kept_and_is_told() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:  # in this one, pages are free that other tests have left
        found = fresh.submit(costs_of_two_lengths).result()
    memory = {(each.way, each.samples): each.memory for each in found}
    keys_and_values = 2 * 2 * 64 * 4 * 2**14  # of two blocks and a width of 64, in fp32
    assert memory["transformer", 2**14] > keys_and_values / 2  # pages that were free before are not counted
    assert memory["lstm", 2**14] < memory["transformer", 2**14]
    page = bench_page(Findings(tuple(found), {}, made_up().origin))
    table = next(block for block in page.blocks if isinstance(block, Table))
    assert table.header == ("one sample of", *(f"{way}, {unit}" for way in readers("cpu") for unit in ("s", "MiB")))
    assert [row[0] for row in table.rows] == ["4,096 tokens", "16,384 tokens"]
