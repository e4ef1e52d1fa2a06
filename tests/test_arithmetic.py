"""Arithmetic tasks: what they draw is right, has the ids that position coupling gives it, and is trained and measured so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import arithmetic_oracle as oracle
from command import Call
from lengthlab.errors import LabError
from lengthlab.evaluation.accuracy import evaluation_set
from lengthlab.inspection.task_check import check_task
from lengthlab.launch import train_all
from lengthlab.models import AnyModel, Learned, hybrid_block, llama, t5_decoder
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import end_to_end
from lengthlab.tasks import (
    IGNORE,
    Addition,
    Batch,
    Minesweeper,
    Mixture,
    Multiplication,
    ParityScratchpad,
    Task,
    multi_addition,
)
from lengthlab.tasks.digits import carry
from lengthlab.training import train
from lengthlab.training.state import TrainState

CPU = torch.device("cpu")
COUPLED: dict[str, Any] = {"positions": "coupled", "ids": 24}


def drawn(task: Task, lengths: Sequence[int], seed: int = 0) -> Batch:
    return task.draw(torch.tensor(lengths), torch.Generator().manual_seed(seed))


def answers(task: Task, batch: Batch, row: int) -> list[str]:
    (target_BT,) = batch.target.values()
    return [task.words[token] for token in target_BT[row].tolist() if token != IGNORE]


def positions(batch: Batch, row: int) -> list[Any]:
    assert batch.position_BT is not None
    return batch.position_BT[row, : int(batch.length_B[row])].tolist()


lengths_of = st.lists(st.integers(1, 12), min_size=1, max_size=5)


@given(lengths_of, st.integers(2, 12), st.booleans(), st.booleans(), st.integers(0, 99))
@settings(max_examples=40)
def test_sums_and_their_ids_are_those_of_the_oracle(
    lengths: list[int], operands: int, reverse: bool, shorter: bool, seed: int
) -> None:
    task = Addition(operands=operands, reverse=reverse, shorter=shorter, **COUPLED)
    batch = drawn(task, lengths, seed)
    for row, n in enumerate(lengths):
        words, ids = task.decode(batch.tokens_BT[row]), positions(batch, row)
        right, placed = oracle.addition(words, reverse, start=ids[1 + n])
        assert words[-len(right) :] == answers(task, batch, row) == list(task.solve(words)["sum"]) == right
        assert ids == placed
        assert words.index("+") == 1 + n
        assert len(words) == task.tokens(n)


@given(lengths_of, st.integers(1, 4), st.booleans(), st.integers(0, 99))
@settings(max_examples=30)
def test_products_and_their_ids_are_those_of_the_oracle(lengths: list[int], digits: int, reverse: bool, seed: int) -> None:
    task = Multiplication(digits=digits, reverse=reverse, **COUPLED)
    batch = drawn(task, lengths, seed)
    for row, n in enumerate(lengths):
        words, ids = task.decode(batch.tokens_BT[row]), positions(batch, row)
        right, placed = oracle.multiplication(words, reverse, start=ids[1 + n])
        assert words[-len(right) :] == answers(task, batch, row) == list(task.solve(words)["product"]) == right
        assert ids == placed
        assert (words.index("×"), words.index("=")) == (1 + n, 2 + n + digits)


@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.floats(0.05, 0.95), st.integers(0, 99))
@settings(max_examples=30)
def test_boards_and_their_two_ids_are_those_of_the_oracle(sides: list[int], mines: float, seed: int) -> None:
    task = Minesweeper(mines=mines, **COUPLED)
    batch = drawn(task, sides, seed)
    for row, n in enumerate(sides):
        words, ids = task.decode(batch.tokens_BT[row]), [tuple(pair) for pair in positions(batch, row)]
        right, placed = oracle.minesweeper(words, start=ids[1 + n * n])
        assert words[-len(right) :] == answers(task, batch, row) == list(task.solve(words)["board"]) == right
        assert ids == placed
        assert len(words) == task.tokens(n)


@given(lengths_of, st.integers(0, 99))
@settings(max_examples=20)
def test_parities_and_their_ids_are_those_of_the_oracle(lengths: list[int], seed: int) -> None:
    task = ParityScratchpad(**COUPLED)
    batch = drawn(task, lengths, seed)
    for row, n in enumerate(lengths):
        words, ids = task.decode(batch.tokens_BT[row]), positions(batch, row)
        right, placed = oracle.parity_scratchpad(words, start=ids[1 + n])
        assert words[-len(right) :] == answers(task, batch, row) == list(task.solve(words)["parity"]) == right
        assert ids == placed


def test_the_papers_example_has_the_papers_ids() -> None:
    words = ["<bos>", *"653+049=2070", "<end>"]
    assert oracle.addition(words, True, 6)[1] == [0, 9, 8, 7, 6, 9, 8, 7, 6, 7, 8, 9, 10, 0]
    assert Addition().solve(words)["sum"] == (*"2070", "<end>")


@given(st.lists(st.lists(st.integers(0, 900), min_size=9, max_size=9), min_size=1, max_size=3))
@settings(max_examples=50)
def test_carrying_keeps_the_number(columns: list[list[int]]) -> None:
    table = torch.nn.functional.pad(torch.tensor(columns), (0, 3))
    for row, digits in zip(columns, carry(table, largest=900).tolist(), strict=True):
        assert all(0 <= digit <= 9 for digit in digits)
        assert sum(digit * 10**place for place, digit in enumerate(digits)) == sum(c * 10**p for p, c in enumerate(row))


def test_a_carry_runs_through_as_many_nines_as_there_are() -> None:
    assert carry(torch.tensor([[10] + [9] * 498 + [0]]), largest=18).tolist() == [[0] * 499 + [1]]


@pytest.mark.parametrize("reverse", [True, False])
def test_hints_name_the_significance_of_every_digit(reverse: bool) -> None:
    task = Addition(hints=True, ids=12, reverse=reverse)
    batch = drawn(task, [1, 4, 3])
    for row, n in enumerate((1, 4, 3)):
        words = task.decode(batch.tokens_BT[row])
        assert answers(task, batch, row) == list(task.solve(words)["sum"])
        bare = [word for word in words if not word.startswith("i")]
        right, ids = oracle.addition(bare, reverse, start=int(words[2 * n - 1].removeprefix("i")) - 1)
        assert bare[-len(right) :] == right
        hints = [word for word in words if word.startswith("i")]
        assert hints == [f"i{place}" for place, word in zip(ids, bare, strict=True) if word.isdigit()]
    assert task.longest == 9
    with pytest.raises(LabError, match="hints stand in for ids"):
        Addition(hints=True, positions="coupled")


TASKS: dict[str, Task] = {
    "addition": Addition(**COUPLED),
    "plain addition": Addition(),
    "hints": Addition(hints=True),
    "multi-addition": multi_addition(operands=4, **COUPLED),
    "multiplication": Multiplication(**COUPLED),
    "minesweeper": Minesweeper(**COUPLED),
    "parity-scratchpad": ParityScratchpad(**COUPLED),
}


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_what_it_says_of_itself(name: str) -> None:
    report = check_task(TASKS[name], longest=6)
    assert report.holds, report


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.longest is not None])
def test_a_task_reaches_as_far_as_its_ids_and_uses_every_one(name: str) -> None:
    task = TASKS[name]
    assert task.longest is not None
    with pytest.raises(LabError, match=rf"length {task.longest + 1}: task .* reaches {task.longest} at most \(ids = "):
        task.check_length(task.longest + 1)
    for n in (task.longest, 1):
        batch = drawn(task, [n] * 400)
        if batch.position_BT is not None:
            used = set(batch.position_BT.flatten().tolist())
            assert (min(used), max(used)) == (0, 23)
            assert n > 1 or used == set(range(24))


@pytest.mark.parametrize("name", [name for name in TASKS if name not in ("plain addition", "hints")])
def test_ids_start_at_random_in_training_and_where_it_is_said_when_measured(name: str) -> None:
    task: Any = TASKS[name]

    def starts(batches: Sequence[Batch]) -> set[int]:
        ids = torch.cat([batch.position_BT.flatten(1) for batch in batches if batch.position_BT is not None])
        return set(ids.masked_fill(ids == 0, 99).min(dim=1).values.tolist())

    assert len(starts([drawn(task, [2] * 60)])) > 5
    assert starts(list(evaluation_set(task, 2, 60))) == {1}
    assert starts(list(evaluation_set(replace(task, start=7), 2, 60))) == {7}
    assert len(starts(list(evaluation_set(replace(task, start=0), 2, 60)))) > 5
    mixed = Mixture((task, ParityScratchpad(**COUPLED) if name != "parity-scratchpad" else Addition(**COUPLED)))
    if isinstance(task, Minesweeper):
        with pytest.raises(LabError, match="do not mix"):
            drawn(mixed, [2] * 60)
    else:
        assert starts(list(evaluation_set(mixed, 2, 60))) == {1}


def test_when_measured_all_operands_have_all_digits() -> None:
    task = Addition()
    firsts = [task.decode(row)[1] == "0" for batch in evaluation_set(task, 5, 100) for row in batch.tokens_BT]
    assert not any(firsts)
    padded = [task.decode(row)[1] == "0" for row in drawn(task, [5] * 100).tokens_BT]
    assert 20 < sum(padded) < 60  # in training, the first of two is the short one half of the time, and then 4 times in 5


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Addition(operands=1), "task.operands must be at least 2, not 1"),
        (lambda: Addition(positions="couple"), "task.positions must be 'plain' or 'coupled', not 'couple'"),  # type: ignore[arg-type]
        (lambda: Addition(positions="coupled", ids=3), "task.ids = 3: ids from 1 on take 4 at length 1 already; raise it"),
        (lambda: Addition(positions="coupled", ids=9, start=7), "task.ids = 9: ids from 7 on take 10 at length 1"),
        (lambda: Addition().check_length(0), "length 0: a sequence of task 'addition' has at least 1"),
        (lambda: Multiplication(digits=0), "task.digits must be at least 1, not 0"),
        (lambda: Minesweeper(mines=1.0), "task.mines must be"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(make: Callable[[], object], told: str) -> None:
    with pytest.raises(LabError, match=r"^[^\n]*$") as raised:
        make()
    assert told in str(raised.value)


def run_of(task: Task, model: Any, **changes: Any) -> Run:
    rest: dict[str, Any] = {"schedule": end_to_end(60, lr=1e-2), "lengths": (1, 3), "batch": 6, "evaluate": (3,)}
    return Run(task=task, model=model, **rest | changes)


def test_a_length_beyond_the_ids_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="length 40: task 'addition' reaches 21 at most"):
        train(run_of(Addition(**COUPLED), t5_decoder(8, heads=2, position_ids=24), evaluate=(40,)), tmp_path)
    assert not list(tmp_path.rglob("*"))


SIZES: dict[str, Any] = {"width": 8, "blocks": 1, "heads": 2}
BOARD, SUM = Minesweeper(**COUPLED), Addition(**COUPLED)


@pytest.mark.parametrize(
    ("task", "model", "told"),
    [
        (SUM, t5_decoder(**SIZES, position_ids=10),
         "model 't5-decoder': its table has 10 position ids, and task 'addition', measured to length 3, takes id 23: raise "
         "model.position_ids to 24"),
        (SUM, t5_decoder(**SIZES, position_ids=23), "has 23 position ids, and task 'addition', .* takes id 23"),
        (SUM, hybrid_block(**SIZES, positions=Learned(limit=9)), "has 9 position ids, .* its positions to 24"),
        (SUM, hybrid_block(**SIZES, positions="randomized"), "randomized positions .* 'addition' has ids of its own"),
        (Addition(), t5_decoder(**SIZES, position_ids=24, tables=2),
         r"model 't5-decoder' has 2 tables of positions \(model.position_ids\), and .* 'addition' has 1 position id: give it"),
        (BOARD, t5_decoder(**SIZES, position_ids=24, tables=3),
         r"has 3 tables of positions \(model.position_ids\), and a token of task 'minesweeper' has 2 .*: give it tables = 2"),
        (BOARD, llama(**SIZES), "model 'llama': a token of task 'minesweeper' has 2 position ids, .*: give it positions none"),
        *((BOARD, hybrid_block(**SIZES, positions=positions, position_ids=24), "has 2 position ids, .* positions none")
          for positions in ("rope", "alibi", "learned")),
    ],
)  # fmt: skip
def test_a_model_that_cannot_place_the_tokens_is_refused_before_training(
    tmp_path: Path, task: Task, model: AnyModel, told: str
) -> None:
    for trained in (train, lambda run, store: train_all([run], store)):
        with pytest.raises(LabError, match=rf"^[^\n]*{told}[^\n]*$"):
            trained(run_of(task, model), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_the_command_refuses_three_tables_for_two_ids_a_token(call: Call, tmp_path: Path) -> None:
    plan = tmp_path / "run.toml"
    plan.write_text(
        '[[run]]\ntask = { name = "minesweeper", positions = "coupled", ids = 24 }\n'
        'model = { name = "t5-decoder", width = 8, heads = 2, position_ids = 24, tables = 3 }\n'
        'schedule = { name = "end-to-end", joint = 3 }\nlengths = [1, 3]\nbatch = 4\nevaluate = [3]\n'
    )
    call("train", plan, "--store", tmp_path / "runs").refused("has 3 tables", "model.position_ids", "task 'minesweeper'")
    assert not (tmp_path / "runs").exists()


def test_attention_itself_refuses_several_ids_of_a_token() -> None:
    model = hybrid_block(**SIZES, positions="rope", position_ids=24)
    with pytest.raises(LabError, match=r"several position ids.*give it positions none"):
        TrainState(run_of(BOARD, model), CPU).advance()


@pytest.mark.parametrize("name", ["addition", "minesweeper"])
def test_rows_of_documents_lose_what_padded_batches_lose(name: str) -> None:
    run = run_of(TASKS[name], t5_decoder(8, heads=2, position_ids=24, tables=1 + (name == "minesweeper")))
    row, padded = TrainState(run, CPU), TrainState(run, CPU, padded=True)
    assert row.data.documents is not None
    assert padded.data.documents is None
    for _ in range(3):
        assert row.advance() == pytest.approx(padded.advance(), abs=1e-5)


def test_drawing_long_sums_is_quick() -> None:
    task, generator = Addition(positions="coupled"), torch.Generator()
    seconds = []
    for _ in range(5):
        begun = perf_counter()
        task.draw(torch.full((256,), 200), generator)
        seconds.append(perf_counter() - begun)
    assert min(seconds) < 0.5  # some hundredths on a machine that has nothing else to do
