"""Sequences in one row without padding give what they give padded, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from lengthlab import models
from lengthlab.errors import LabError
from lengthlab.models import Lstm, Mixer, Model, RmsNorm, chain, parallel, residual
from lengthlab.models.layout import Documents, Layout
from lengthlab.models.mixer import padded_parts
from lengthlab.models.model import Network
from lengthlab.tasks import ModuloRecall
from lengthlab.training.data import padding_reason
from lengthlab.training.state import TrainState
from small_runs import CPU, end_to_end_run

TASK = ModuloRecall(modulus=3, values=4, keys=10)
HYBRIDS = {name: make for name, make in models.MODELS.items() if name not in ("lstm", "transformer")}
LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=6).map(sorted)


def gradients(network: nn.Module, logits: Tensor, weight: Tensor) -> list[Tensor]:
    network.zero_grad()
    (logits * weight).sum().backward()
    return [parameter.grad.clone() for parameter in network.parameters() if parameter.grad is not None]


def padded_and_in_a_row(network: Network, seed: int) -> tuple[tuple[Tensor, list[Tensor]], tuple[Tensor, list[Tensor]]]:
    """Logits at both questions and all gradients, each way."""
    batch = TASK.sample(7, (1, 6), torch.Generator().manual_seed(seed))
    tokens_BT = batch.tokens_BT[:, :-1]
    query_BQ, _ = batch.queries(TASK.questions, most=2)
    weight = torch.randn(7, 2, TASK.vocabulary, generator=torch.Generator().manual_seed(seed))
    padded = network(tokens_BT, Layout(query_BQ=query_BQ))
    first = padded.detach(), gradients(network, padded, weight)
    documents = Documents((batch.length_B - 1).tolist())
    layout = Layout(query_BQ=documents.outside(query_BQ).flatten()[None], documents=documents)
    row = network(documents.row(tokens_BT), layout).view_as(padded)
    return first, (row.detach(), gradients(network, row, weight))


def assert_close(one: tuple[Tensor, list[Tensor]], other: tuple[Tensor, list[Tensor]]) -> None:
    torch.testing.assert_close(one[0], other[0], rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(one[1], other[1], strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", sorted(models.MODELS))
@pytest.mark.parametrize("scores", ["none", "log-n"])
def test_a_row_of_documents_gives_what_the_padded_batch_gives(name: str, scores: str) -> None:
    torch.manual_seed(0)
    choices = {} if name == "lstm" else {"blocks": 2, "heads": 2, "scores": scores}
    network = models.MODELS[name](width=16, **choices).build(TASK.vocabulary)
    for seed in range(3):
        assert_close(*padded_and_in_a_row(network, seed))


def test_an_lstm_of_two_layers_keeps_to_documents_too() -> None:
    torch.manual_seed(0)
    network = Model("two", 16, chain(Lstm(layers=2))).build(TASK.vocabulary)
    assert_close(*padded_and_in_a_row(network, 0))


@given(lengths=LENGTHS)
def test_a_row_padded_and_made_a_row_again_is_itself(lengths: list[int]) -> None:
    documents = Documents(lengths)
    row_1N = torch.arange(1, sum(lengths) + 1)[None]
    padded_BT = documents.pad(row_1N)
    assert torch.equal(documents.row(padded_BT), row_1N)
    assert ((padded_BT != 0).sum(dim=1) == torch.tensor(lengths)).all()
    last_BQ = torch.tensor(lengths)[:, None] - 1
    assert torch.equal(documents.inside(documents.outside(last_BQ).flatten()[None]), last_BQ)
    assert row_1N[0, documents.outside(last_BQ).flatten()[None][0]].tolist() == torch.tensor(lengths).cumsum(0).tolist()


@given(lengths=LENGTHS)
def test_tokens_by_time_run_from_the_longest_document_to_the_shortest(lengths: list[int]) -> None:
    documents = Documents(lengths)
    order_N, back_N, documents_T = documents.by_time
    expected = [sum(lengths[:d]) + t for t in range(max(lengths)) for d in reversed(range(len(lengths))) if lengths[d] > t]
    assert order_N.tolist() == expected
    assert order_N[back_N].tolist() == list(range(sum(lengths)))
    assert documents_T.tolist() == [sum(length > t for length in lengths) for t in range(max(lengths))]


class Sums(nn.Module):
    """Somebody's own module that lets tokens see each other and knows nothing of documents, layouts or queries."""

    def forward(self, x_BTD: Tensor) -> Tensor:
        return x_BTD.cumsum(dim=1)


class MixedSums(Mixer):
    """The same as a mixer with its one plain method."""

    def mix(self, x_BTD: Tensor, layout: Layout) -> Tensor:
        return x_BTD.cumsum(dim=1)


@dataclass(frozen=True)
class Own:
    """A part that builds any module."""

    kind: Callable[[int], nn.Module]

    def build(self, width: int) -> nn.Module:
        return self.kind(width)


OWN = {
    "a module": lambda width: Sums(),
    "a mixer": lambda width: MixedSums(),
    "gelu": lambda width: nn.GELU(),
    "silu": lambda width: nn.SiLU(),
    "an rms norm": nn.RMSNorm,
    "dropout": lambda width: nn.Dropout(0.5).eval(),
    "a chain": lambda width: nn.Sequential(nn.Linear(width, width), Sums()),
}


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("place", ["first", "last", "beside", "around"])
def test_anybodys_module_keeps_to_documents(kind: str, place: str) -> None:
    torch.manual_seed(0)
    own = Own(OWN[kind])
    bodies = {
        "first": chain(own, Lstm()),
        "last": chain(Lstm(), own),
        "beside": parallel(Lstm(), own),
        "around": chain(residual(own), residual(Lstm(), RmsNorm(), pre=True)),
    }
    network = Model("own", 16, bodies[place]).build(TASK.vocabulary)
    assert_close(*padded_and_in_a_row(network, 0))


def test_parts_of_which_nothing_is_known_are_named() -> None:
    known = parallel(Lstm(), residual(Lstm()), Own(OWN["gelu"])).build(8)
    assert padded_parts(known) == []
    known.add_module("own", Sums())
    known.add_module("mixer", MixedSums())
    assert padded_parts(known) == ["Sums", "MixedSums"]


class DoubledIndex(nn.Module):
    """Somebody's own positions: keys grow with the index of their token, which is that in its document."""

    def forward(self, q_BHQC: Tensor, k_BHTC: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        return q_BHQC, k_BHTC * (1 + torch.arange(k_BHTC.shape[2])[:, None] / 10)


@dataclass(frozen=True)
class Doubled:
    def build(self, channels: int) -> nn.Module:
        return DoubledIndex()


def test_attention_with_positions_of_somebody_elses_keeps_to_documents() -> None:
    torch.manual_seed(0)
    network = models.attention_on_lstm(width=16, blocks=2, heads=2, positions=Doubled()).build(TASK.vocabulary)
    assert_close(*padded_and_in_a_row(network, 0))


def _forgetful_tokens(task: ModuloRecall, length: int) -> None:
    return None


@pytest.mark.parametrize(
    ("change", "flat"),
    [
        (lambda patch: None, True),
        (lambda patch: patch.setattr(ModuloRecall, "tokens", _forgetful_tokens), False),
    ],
)
def test_a_task_that_does_not_know_its_tokens_is_read_padded(
    change: Callable[[pytest.MonkeyPatch], None], flat: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(monkeypatch)
    run = end_to_end_run()
    assert (padding_reason(run.task, run.batch, run.lengths, run.network()) == "") == flat


def test_a_task_whose_tokens_are_not_those_it_draws_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    run = end_to_end_run()
    tokens = ModuloRecall.tokens
    monkeypatch.setattr(ModuloRecall, "tokens", lambda task, length: tokens(task, length) - 1)
    with pytest.raises(LabError, match=r"drew 8 tokens where its `tokens` says 7"):
        TrainState(run, CPU).advance()


def test_a_batch_with_fewer_samples_than_lengths_is_read_padded() -> None:
    run = end_to_end_run(batch=2, lengths=(1, 3))
    assert padding_reason(run.task, run.batch, run.lengths, run.network())
