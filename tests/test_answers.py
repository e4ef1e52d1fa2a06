"""Answers of any number of tokens: where they are asked, what is learned from them, how they are counted and generated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lengthlab.errors import LabError
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.evaluation.generation import generate
from lengthlab.models import Lstm, Model, chain, hybrid_block, lstm, lstm_hsa, parallel, residual
from lengthlab.models.attention.positions import is_biased
from lengthlab.models.layout import Layout
from lengthlab.models.mixer import Mixer
from lengthlab.models.model import position_limit
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Phase, Schedule, end_to_end
from lengthlab.spec.seeds import seed_for
from lengthlab.spec.source import load_reference
from lengthlab.tasks import IGNORE, Batch, ModuloRecall, Task
from lengthlab.tasks.batch import join
from lengthlab.tasks.card import card
from lengthlab.tasks.lengths import spread
from lengthlab.training import train
from lengthlab.training.data import BLOCK
from lengthlab.training.state import TrainState
from small_runs import CPU

EXAMPLES = Path(__file__).parent.parent / "examples"
quick = settings(max_examples=25)


def example(reference: str, **given: Any) -> Any:
    made: Any = load_reference(reference, EXAMPLES)
    return made(**given)


TASKS: dict[str, Task] = {"copy": example("copy_task.py:Copy", letters=5), "addition": example("addition_task.py:Addition")}


def run_of(task: Task, model: Any = None, **changes: Any) -> Run:
    small = hybrid_block(width=16, blocks=1, heads=2, mlp=1)
    rest: dict[str, Any] = {"lengths": (1, 4), "batch": 8, "evaluate": (4,)}
    return Run(task, model or small, changes.pop("schedule", end_to_end(6, lr=1e-2)), **rest | changes)


def written_answers(task: Task, batch: Batch, row: int) -> list[str]:
    (question,) = task.questions
    return [task.words[token] for token in batch.target[question][row].tolist() if token != IGNORE]


# Tasks


@pytest.mark.parametrize("name", TASKS)
@given(seed=st.integers(0, 2**31), lengths=st.tuples(st.integers(1, 5), st.integers(0, 5)))
@quick
def test_a_long_answer_is_what_plain_python_makes_of_the_question(name: str, seed: int, lengths: tuple[int, int]) -> None:
    task = TASKS[name]
    batch = task.sample(6, (lengths[0], sum(lengths)), torch.Generator().manual_seed(seed))
    for row, (tokens_T, length) in enumerate(zip(batch.tokens_BT, batch.length_B.tolist(), strict=True)):
        words = task.decode(tokens_T)
        assert len(words) == length
        answer = written_answers(task, batch, row)
        assert words[-len(answer) :] == answer
        blind = [*words[: -len(answer)], *["<pad>"] * len(answer)]  # a solver that copies what is written would fail
        assert list(task.solve(blind)[task.questions[0]]) == answer


def test_digits_of_one_significance_share_a_position_id() -> None:
    task = TASKS["addition"]
    batch = task.sample(1, (3, 3), torch.Generator().manual_seed(1))
    assert batch.position_BT is not None
    ids = batch.position_BT[0].tolist()
    plus = ids[4]
    assert ids == [0, plus + 3, plus + 2, plus + 1, plus, plus + 3, plus + 2, plus + 1, plus, *range(plus + 1, plus + 5), 0]


def test_the_card_marks_every_token_of_a_long_answer_and_has_the_docstring() -> None:
    made = card(TASKS["copy"], sample_length=3)
    assert made.scored == {"copy": (5, 6, 7, 8)}
    assert [made.sample[place] for place in made.scored["copy"]] == [*made.sample[1:4], "<end>"]
    assert made.about.startswith("The letters of a sequence, once more")
    assert made.chance["copy"] == pytest.approx(5.0**-made.trivial_length)


# Batches


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    size, tokens = draw(st.integers(1, 4)), draw(st.integers(2, 9))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    tokens_BT = torch.randint(1, 9, (size, tokens), generator=generator)
    asked = {q: torch.rand(size, tokens, generator=generator) < 0.4 for q in ("one", "two")}
    for asked_BT in asked.values():
        asked_BT[:, -1] = False
        asked_BT[0, 0] = True
    return Batch.asking(tokens_BT, asked, torch.full((size,), tokens))


@given(batches(), st.sampled_from([("one",), ("two",), ("one", "two")]))
@quick
def test_queries_are_the_positions_asked_in_order(batch: Batch, questions: tuple[str, ...]) -> None:
    most = batch.most_asked(questions)
    query_BQ, wanted = batch.queries(questions, most)
    for row in range(len(batch.tokens_BT)):
        asked = [t for t in range(batch.tokens_BT.shape[1]) if any(int(batch.target[q][row, t]) != IGNORE for q in questions)]
        assert len(asked) <= most
        assert query_BQ[row].tolist() == [*asked, *[0] * (most - len(asked))]
        for question in questions:
            expected = [int(batch.target[question][row, t]) for t in asked]
            assert wanted[question][row].tolist() == [*expected, *[IGNORE] * (most - len(asked))]


@given(st.lists(batches(), min_size=1, max_size=3))
@quick
def test_joined_batches_keep_every_sample(pieces: list[Batch]) -> None:
    whole, first = join(pieces), 0
    for piece in pieces:
        rows, tokens = piece.tokens_BT.shape
        part = whole.rows(slice(first, first + rows))
        assert torch.equal(part.tokens_BT[:, :tokens], piece.tokens_BT)
        assert torch.equal(part.target["one"][:, :tokens], piece.target["one"])
        assert (part.target["one"][:, tokens:] == IGNORE).all()
        assert torch.equal(part.length_B, piece.length_B)
        first += rows


# Training


@pytest.mark.parametrize("name", TASKS)
def test_long_answers_in_a_row_are_learned_from_as_in_a_padded_batch(name: str) -> None:
    row, padded = (TrainState(run_of(TASKS[name]), CPU, padded=padded) for padded in (False, True))
    assert row.data.documents is not None
    for _ in range(6):
        assert row.advance() == pytest.approx(padded.advance(), abs=1e-4)


@dataclass(frozen=True)
class Uneven(ModuloRecall):
    """Asked about its first pairs as well, more often the longer a sequence is; it does not know its tokens."""

    def draw(self, n_B: Tensor, generator: torch.Generator) -> Batch:
        batch = super().draw(n_B, generator)
        early_BT = torch.arange(batch.tokens_BT.shape[1]) < n_B[:, None] // 2
        next_BT = F.pad(batch.tokens_BT[:, 1:], (0, 1), value=IGNORE)
        return replace(batch, target=batch.target | {"recall": next_BT.where(early_BT, batch.target["recall"])})

    def tokens(self, length: int) -> None:  # type: ignore[override]
        return None


def test_the_loss_of_uneven_answers_is_the_mean_over_their_tokens() -> None:
    run = run_of(Uneven(2, 4, 12), lengths=(1, 8), batch=6)
    state = TrainState(run, CPU)
    data = state.step_data(0)
    assert data.query_BQ is not None
    logits_BTV = state.network(data.tokens_BT).detach()
    losses = []
    for row, (query, target) in enumerate(zip(data.query_BQ.tolist(), data.target_BQ.tolist(), strict=True)):
        asked = [(t, token) for t, token in zip(query, target, strict=True) if token != IGNORE]
        losses += [float(F.cross_entropy(logits_BTV[row, t][None], torch.tensor([token]))) for t, token in asked]
    assert len(losses) > 2 * run.batch
    assert float(state.backward(data)) == pytest.approx(sum(losses) / len(losses), rel=1e-4)


@dataclass(frozen=True)
class Moody(Uneven):
    """Knows its tokens, and asks at random nevertheless: no question may be left out because the first block had fewer."""

    def draw(self, n_B: Tensor, generator: torch.Generator) -> Batch:
        batch = ModuloRecall.draw(self, n_B, generator)
        asked_BT = torch.rand(batch.tokens_BT.shape, generator=generator) < 0.3
        next_BT = F.pad(batch.tokens_BT[:, 1:], (0, 1), value=IGNORE)
        inside_BT = torch.arange(batch.tokens_BT.shape[1]) < batch.length_B[:, None] - 1
        return replace(batch, target=batch.target | {"recall": next_BT.where(asked_BT & inside_BT, IGNORE)})

    def tokens(self, length: int) -> int:  # type: ignore[override]
        return ModuloRecall.tokens(self, length)


def test_no_answer_is_left_out_where_a_task_asks_otherwise_at_every_step() -> None:
    data = TrainState(run_of(Moody(2, 4, 12), lengths=(1, 8), batch=8), CPU).data
    assert data.documents is not None
    for number in range(4):
        generator = torch.Generator().manual_seed(seed_for("data", 0) + number)
        n_B = torch.cat([spread(8, (1, 8), generator) for _ in range(BLOCK)])
        wanted = data.run.task.draw(n_B, generator).asked(("modulo", "recall")).sum()
        assert (data.block(number).steps.target_BQ != IGNORE).sum() == wanted


def test_a_position_id_without_a_vector_is_refused() -> None:
    with pytest.raises(LabError, match=r"position id \d+ is too large for a table of 12"):
        TrainState(run_of(TASKS["addition"], example("addition_task.py:coupled", width=8, heads=2, ids=12)), CPU).advance()
    short = example("addition_task.py:coupled", width=8, heads=2, ids=12).build(TASKS["addition"].vocabulary)
    with pytest.raises(LabError, match=r"position id \d+ is too large for a table of 12"):
        accuracy(short, TASKS["addition"], [4], samples=50)
    with pytest.raises(LabError, match="randomized positions are drawn"):
        TrainState(run_of(TASKS["addition"], hybrid_block(16, heads=2, positions="randomized")), CPU).advance()


@pytest.mark.parametrize("positions", ["rope", "alibi", "learned", "none"])
def test_attention_sees_position_ids_and_not_the_place_in_the_row(positions: str) -> None:
    torch.manual_seed(0)
    network = hybrid_block(16, blocks=1, heads=2, positions=positions).build(12).eval()
    tokens_BT = torch.randint(1, 12, (2, 7), generator=torch.Generator().manual_seed(1))
    index_BT = torch.arange(7).expand(2, -1)
    plain, same = network(tokens_BT), network(tokens_BT, Layout(index_BT))
    torch.testing.assert_close(plain, same, rtol=1e-4, atol=1e-5)
    other = network(tokens_BT, Layout(index_BT.flip(1)))
    assert torch.allclose(plain, other, atol=1e-5) == (positions == "none")


def test_a_phase_may_have_lengths_of_its_own() -> None:
    schedule = Schedule("growing", (Phase(3, 1e-2, lengths=(1, 2)), Phase(3, 1e-2)))
    state, seen = TrainState(run_of(TASKS["copy"], schedule=schedule), CPU), []
    for _ in range(6):
        state.enter_phase()
        assert state.data.documents is not None
        seen.append(state.data.documents.longest)
        state.advance()
    assert seen == [6] * 3 + [10] * 3  # 2n + 3 tokens, the last of which is not read


# Counting


class Copier(nn.Module):
    """Knows the answers of the copy task, but for the tokens that it gets wrong."""

    def __init__(self, task: Task, wrong: Sequence[int] = ()) -> None:
        super().__init__()
        self.task, self.wrong = task, wrong

    def forward(self, tokens_BT: Tensor) -> Tensor:
        logits_BTV = torch.zeros(*tokens_BT.shape, self.task.vocabulary)
        for row, tokens_T in enumerate(tokens_BT):
            words = self.task.decode(tokens_T)
            start = words.index("<copy>")
            for place, word in enumerate(self.task.solve(words)["copy"]):
                said = 1 if place in self.wrong else self.task.words.index(word)
                if start + place < tokens_BT.shape[1]:
                    logits_BTV[row, start + place, said] = 1.0
        return logits_BTV


@pytest.mark.parametrize("free_running", [False, True])
def test_an_answer_is_right_if_every_token_is_and_right_tokens_are_counted_beside(
    free_running: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = TASKS["copy"]
    monkeypatch.setattr(type(task), "free_running", free_running)
    (all_right, _), (one_wrong, _) = (accuracy(Copier(task, wrong), task, [4], samples=20) for wrong in ((), (2,)))
    assert (all_right.correct, all_right.right_tokens, all_right.tokens) == (20, 100, 100)
    assert (one_wrong.correct, one_wrong.right_tokens, one_wrong.tokens) == (0, 80, 100)
    assert (one_wrong.accuracy, one_wrong.token_accuracy) == (0.0, 0.8)


def test_one_token_an_answer_has_no_count_of_tokens() -> None:
    counts = accuracy(lstm(8).build(20), ModuloRecall(2, 4, 8), [3], samples=5)
    assert all(count.tokens is None and "tokens" not in count.to_json() for count in counts)
    assert all(count.token_accuracy == count.accuracy for count in counts)


def test_chance_by_length_is_kept_with_the_result(tmp_path: Path) -> None:
    result = train(run_of(TASKS["copy"], evaluate=(1, 2)), tmp_path)
    kept = result.folder.read_json("result.json")["chance"]
    assert kept == {question: {"1": pytest.approx(1 / 5), "2": pytest.approx(1 / 25)} for question in ("copy", "all")}


# Generating


def by_hand(network: nn.Module, batch: Batch, question: str) -> Tensor:
    """Token by token, every beginning read anew, each sample alone."""
    said_BT = torch.full_like(batch.tokens_BT, IGNORE)
    for row, tokens_T in enumerate(batch.tokens_BT.clone()):
        for t in range(len(tokens_T) - 1):
            if batch.target[question][row, t] != IGNORE:
                tokens_T[t + 1] = said_BT[row, t] = network(tokens_T[None, : t + 1])[0, -1].argmax()
    return said_BT


BODIES = {
    "with a state": chain(residual(Lstm()), parallel(Lstm(layers=2), Lstm())),
    "with a memory of chunks": lstm_hsa(16, heads=2, chunk=2, chunks=2).body,
    "with keys and values": hybrid_block(16, blocks=1, heads=2).body,
    "with a look back": hybrid_block(16, blocks=1, heads=2, local=2).body,
    "without one": hybrid_block(16, blocks=1, heads=2, positions="randomized").body,  # these go by the length of the whole
}


@pytest.mark.parametrize("body", BODIES)
def test_a_network_that_reads_its_own_answers_says_what_it_says_token_by_token(body: str) -> None:
    torch.manual_seed(0)
    task = TASKS["copy"]
    network = Model("own", 16, BODIES[body]).build(task.vocabulary).eval()
    assert network.has_state == (body != "without one")
    batch = task.sample(5, (1, 6), torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(generate(network, batch), by_hand(network, batch, "copy"))


def test_reading_in_pieces_gives_what_reading_at_once_gives() -> None:
    torch.manual_seed(0)
    network = Model("own", 16, BODIES["with a state"]).build(12).eval()
    tokens_BT = torch.randint(12, (3, 9))
    state, pieces = None, []
    for piece in tokens_BT.split((4, 1, 4), dim=1):
        logits_BTV, state = network.read(piece, state)
        pieces.append(logits_BTV)
    torch.testing.assert_close(torch.cat(pieces, dim=1), network(tokens_BT))


def test_a_mixer_without_its_method_says_so() -> None:
    with pytest.raises(NotImplementedError, match="without the method 'mix'"):
        Mixer()(torch.zeros(1, 2, 3))


@dataclass(frozen=True)
class Rarely(ModuloRecall):
    """Asks a sample in a thousand once more, at its first token."""

    def draw(self, n_B: Tensor, generator: torch.Generator) -> Batch:
        batch = super().draw(n_B, generator)
        often_B = torch.rand(len(n_B), generator=generator) < 0.001
        target_BT = batch.target["modulo"].clone()
        target_BT[:, 0] = torch.where(often_B, 5, target_BT[:, 0])
        return replace(batch, target=batch.target | {"modulo": target_BT})


def test_no_answer_is_lost_where_some_are_asked_more() -> None:
    run = Run(Rarely(modulus=2, keys=8), lstm(8), end_to_end(5), lengths=(1, 3), batch=8)
    data = TrainState(run, CPU).data
    asked = trained = 0
    for number in range(6):
        generator = torch.Generator().manual_seed(seed_for("data", 0) + number)
        n_B = torch.cat([spread(8, (1, 3), generator) for _ in range(BLOCK)])
        drawn = run.task.draw(n_B, generator)
        asked += sum(int((target_BT != IGNORE).sum()) for target_BT in drawn.target.values())
        trained += int((data.block(number).steps.target_BQ != IGNORE).sum())
    assert trained == asked > 6 * BLOCK * 8 * 2


@dataclass(frozen=True)
class Miscounted(ModuloRecall):
    def tokens(self, length: int) -> int:
        return super().tokens(length) + (length == 1)


def test_a_task_that_miscounts_the_tokens_of_one_length_is_refused() -> None:
    run = Run(Miscounted(modulus=2, keys=8), lstm(8), end_to_end(5), lengths=(1, 3), batch=6)
    with pytest.raises(LabError, match=r"drew 8 tokens where its `tokens` says 9"):
        TrainState(run, CPU).advance()


class OwnForward(nn.Module):
    """As hooks and compilers do it: a forward on the module object."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.GRU(width, width, batch_first=True)
        self.forward = self.fast  # type: ignore[method-assign]

    def fast(self, x_BTD: Tensor) -> Tensor:
        out: Tensor = self.cell(x_BTD)[0]
        return out


@dataclass(frozen=True)
class WithOwnForward:
    def build(self, width: int) -> nn.Module:
        return OwnForward(width)


def test_a_forward_on_the_module_object_is_not_a_part_that_is_off() -> None:
    run = Run(ModuloRecall(modulus=2, keys=8), Model("own", 8, chain(WithOwnForward())), end_to_end(5), lengths=(1, 3), batch=6)
    row, padded = TrainState(run, CPU), TrainState(run, CPU, padded=True)
    assert row.data.documents is not None
    assert row.advance() == pytest.approx(padded.advance(), abs=1e-5)


def test_position_ids_are_limited_by_tables_and_by_nothing_else() -> None:
    class Limited(Mixer):
        limit = 4

        def mix(self, x_BTD: Tensor, layout: Layout) -> Tensor:
            return x_BTD

    assert position_limit(nn.Sequential(Limited(), nn.Linear(2, 2))) is None


def test_a_table_of_positions_that_is_too_short_says_so_before_it_is_read() -> None:
    network = Model("small", 8, Lstm(), position_ids=4).build(9)
    with pytest.raises(LabError, match="position id 4 is too large for a table of 4"):
        network(torch.ones(1, 5, dtype=torch.int64))


class Named(nn.Module):
    """A user's positions whose parameter is called as a method of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, q_BHQC: Tensor, k_BHTC: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        return q_BHQC + self.bias, k_BHTC


def test_a_parameter_named_bias_does_not_make_positions_biased() -> None:
    assert not is_biased(Named())
