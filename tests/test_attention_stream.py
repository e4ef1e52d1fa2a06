"""Softmax attention in pieces: every kind of positions and scores, every architecture says what it says at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lengthlab.errors import LabError
from lengthlab.evaluation import accuracy as accuracy_file
from lengthlab.evaluation import stream
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.evaluation.generation import generate
from lengthlab.evaluation.stream import say_in_pieces
from lengthlab.inspection.draws import tokens_of
from lengthlab.inspection.state import numbers_in
from lengthlab.models import (
    AdaptiveTemperature,
    Attention,
    Layout,
    Learned,
    Model,
    Network,
    NoPositions,
    PositionIds,
    Randomized,
    attention_on_lstm,
    gpt2,
    hybrid_block,
    llama,
    lstm_on_attention,
    parallel_branches,
    sandwich,
    sharpened,
    t5_decoder,
    transformer,
)
from lengthlab.models.attention import key_values
from lengthlab.models.layout import Piece
from lengthlab.models.mixer import read
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import end_to_end
from lengthlab.switch import by_window, delay
from lengthlab.tasks import Addition, Copy, ModuloRecall
from lengthlab.training import footprint
from operations import Operations

TOKENS, VOCABULARY = 23, 11
POSITIONS: dict[str, Any] = {
    **{name: name for name in ("rope", "slow-rope", "none", "alibi")},
    "learned": Learned(limit=30),
    "randomized": Randomized(limit=60),
}
SCORES: dict[str, Any] = {
    **{name: name for name in ("none", "log-n", "entmax", "adaptive-entmax", "stick-breaking")},
    "adaptive-temperature": AdaptiveTemperature((0.5, 1.0)),
}
SOFTMAX = ("none", "log-n")
"""The others have weights in fp32, whatever they are given."""
SMALL: dict[str, Any] = {"width": 8, "heads": 2}
MODELS: dict[str, Model] = {
    **{make.__name__: make(**SMALL, blocks=2) for make in (transformer, hybrid_block, sandwich, parallel_branches)},
    **{make.__name__: make(**SMALL, blocks=1, scores="log-n") for make in (attention_on_lstm, lstm_on_attention)},
    "pre-norm": hybrid_block(**SMALL, blocks=2, pre_norm=True, norm="rms-norm", positions="none"),
    "position ids": hybrid_block(**SMALL, blocks=1, position_ids=30),
    "gpt2": gpt2(**SMALL, blocks=2, position_ids=30),
    "llama": llama(**SMALL, blocks=2),
    "t5-decoder": t5_decoder(**SMALL, blocks=2, position_ids=30),
}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a short sequence has several pages, and queries come in several blocks."""
    monkeypatch.setattr(key_values, "PAGE", 5)
    monkeypatch.setitem(key_values.SCORES, "cpu", 120)


def network_of(model: Model) -> Network:
    torch.manual_seed(0)
    return model.build(VOCABULARY).double().eval()


def tokens(size: int = 2, length: int = TOKENS) -> Tensor:
    return torch.randint(VOCABULARY, (size, length), generator=torch.Generator().manual_seed(1))


def pieces(cuts: Sequence[int], length: int = TOKENS) -> Iterator[tuple[int, int]]:
    edges = sorted({0, length, *cuts})
    return pairwise(edges)


def in_pieces(network: Network, tokens_BT: Tensor, cuts: Sequence[int], position_BT: Tensor | None = None) -> Tensor:
    state, found, whole = None, [], Piece(whole=tokens_BT.shape[1])
    for start, end in pieces(cuts, tokens_BT.shape[1]):
        own = None if position_BT is None else position_BT[:, start:end]
        logits_BTV, state = network.read(tokens_BT[:, start:end], state, Layout(own, piece=whole))
        found.append(logits_BTV)
    return torch.cat(found, dim=1)


def alike(found: Tensor, wanted: Tensor, atol: float = 1e-12) -> None:
    torch.testing.assert_close(found, wanted, rtol=0, atol=atol)


CUTS = st.lists(st.integers(1, TOKENS - 1), min_size=2, max_size=6)
VARIANTS = [(positions, scores) for positions, scores in product(POSITIONS, SCORES)]


@pytest.mark.parametrize(("positions", "scores"), VARIANTS)
def test_every_kind_of_attention_reads_pieces_as_it_reads_the_whole(positions: str, scores: str) -> None:
    network = network_of(transformer(**SMALL, blocks=2, positions=POSITIONS[positions], scores=SCORES[scores]))
    tokens_BT = tokens()
    with torch.no_grad():
        wanted = network(tokens_BT)

        @given(CUTS)
        @example([1, 6, 15])
        @settings(max_examples=2)
        def at(cuts: list[int]) -> None:
            alike(in_pieces(network, tokens_BT, cuts), wanted, 1e-12 if scores in SOFTMAX else 2e-6)

        at()


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_every_architecture_says_in_pieces_what_it_says_at_once_wherever_it_is_asked(name: str) -> None:
    network, tokens_BT = network_of(MODELS[name]), tokens()
    assert network.has_state
    wanted_BTV = network(tokens_BT)
    alike(in_pieces(network, tokens_BT, (1, 7, 16)), wanted_BTV)
    query_BQ = torch.tensor([[22, 0, 9], [3, 3, 21]])
    for piece in (1, 4, 9, 30):
        said_BQ = say_in_pieces(network, tokens_BT, Layout(query_BQ=query_BQ), piece=piece)
        assert torch.equal(said_BQ, wanted_BTV.argmax(dim=-1).gather(1, query_BQ))


@given(CUTS)
@settings(max_examples=4)
@torch.no_grad()
def test_ids_of_the_task_place_tokens_in_pieces_as_at_once(cuts: list[int]) -> None:
    position_BT = torch.randint(30, (2, TOKENS), generator=torch.Generator().manual_seed(2))
    for positions in ("rope", "alibi", Learned(limit=30)):
        network = network_of(transformer(**SMALL, blocks=2, positions=positions))
        alike(in_pieces(network, tokens(), cuts, position_BT), network(tokens(), Layout(position_BT)))
    two_BTK = torch.stack((position_BT, position_BT.flip(1)), dim=2)
    network = network_of(t5_decoder(**SMALL, position_ids=30, tables=2))
    alike(in_pieces(network, tokens(), cuts, two_BTK), network(tokens(), Layout(two_BTK)))


@pytest.mark.parametrize("task", [ModuloRecall(modulus=2, keys=40), Copy(), Addition(positions="coupled")])
def test_what_attention_measures_in_a_stream_is_what_it_measures_at_once(task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    network = hybrid_block(**SMALL, blocks=2, position_ids=80).build(task.vocabulary)
    at_once = accuracy(network, task, [3, 8], samples=40)
    monkeypatch.setattr(stream, "LONG", 6)
    monkeypatch.setattr(accuracy_file, "say_in_pieces", lambda *given: say_in_pieces(*given, piece=7))
    assert accuracy(network, task, [3, 8], samples=40) == at_once


def test_answers_are_generated_from_keys_and_values_as_by_reading_the_beginning_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Addition(positions="coupled")
    torch.manual_seed(0)
    network = transformer(**SMALL, blocks=2).build(task.vocabulary).double().eval()
    batch = task.sample(4, (2, 5), torch.Generator().manual_seed(0))
    found = generate(network, batch)
    monkeypatch.setattr(Network, "has_state", False)
    assert torch.equal(generate(network, batch), found)


def test_a_sharpened_network_is_read_in_pieces_too() -> None:
    network = sharpened(network_of(transformer(**SMALL, blocks=1, scores="log-n")), AdaptiveTemperature((0.5, 1.0)))
    assert isinstance(network, Network)
    alike(in_pieces(network, tokens(), (4, 11)), network(tokens()), 2e-6)


def test_a_state_can_be_read_on_from_twice() -> None:
    network, tokens_BT = network_of(MODELS["transformer"]), tokens()
    _, state = network.read(tokens_BT[:, :13], None)
    first, _ = network.read(tokens_BT[:, 13:], state)
    again, _ = network.read(tokens_BT[:, 13:], state)
    assert torch.equal(first, again)


def test_gradients_through_pieces_are_those_of_the_whole() -> None:
    module = Attention(heads=2, scores="log-n").build(8).double()
    x_BTD = torch.randn(2, 12, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    state, outs = None, []
    for start, end in pieces((5, 6), 12):
        out_BTD, state = read(module, x_BTD[:, start:end], state)
        outs.append(out_BTD)
    (found,) = torch.autograd.grad(torch.cat(outs, dim=1).square().sum(), x_BTD)
    (wanted,) = torch.autograd.grad(module(x_BTD).square().sum(), x_BTD)
    torch.testing.assert_close(found, wanted)


# What it costs


@torch.no_grad()
def test_a_state_is_the_keys_and_values_and_nothing_made_on_the_way_grows_with_the_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_values, "PAGE", 64)
    monkeypatch.setitem(key_values.SCORES, "cpu", 2**12)
    network, length, piece = network_of(transformer(**SMALL, blocks=2, mlp=1)), 256, 64
    tokens_BT, state = tokens(1, length), None
    with Operations() as made:
        for start in range(0, length, piece):
            _, state = network.read(tokens_BT[:, start : start + piece], state)
    assert numbers_in(state) == 2 * length * 2 * 8  # layers, tokens, keys and values, width
    assert made.largest <= 2**12


def test_as_many_samples_are_read_side_by_side_as_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(ModuloRecall(modulus=2, keys=8), hybrid_block(**SMALL, blocks=1), end_to_end(1), lengths=(1, 3))
    length, tokens_read = 10**6, tokens_of(run.task, 10**6)
    assert stream.stream_bytes(run.blueprint, tokens_read) == tokens_read * 2 * 8 * 4
    assert stream.stream_bytes(run.blueprint, stream.LONG) == 0
    for room, wanted in ((1, 1), (2 * tokens_read * 64, 1), (7 * tokens_read * 64, 3), (10**15, 8)):
        monkeypatch.setattr(footprint, "memory_of", lambda device, room=room: room)
        assert footprint.streams_at_once(run, [3, length], most=8) == wanted
    monkeypatch.setattr(footprint, "memory_of", lambda device: 10**6)
    with pytest.raises(LabError, match="would need at least"):
        footprint.require_room_to_measure(run, [length])


@torch.no_grad()
def test_a_last_attention_has_queries_only_where_something_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    network, asked = network_of(hybrid_block(**SMALL, blocks=1)), []
    made = next(module for name, module in network.named_modules() if name.endswith("attention.q") or name.endswith(".q"))
    made.register_forward_hook(lambda module, given, out: asked.append(out.shape[1]))
    say_in_pieces(network, tokens(), Layout(query_BQ=torch.tensor([[22, 1], [22, 8]])), piece=8)
    assert asked == [1, 1, 1]
    asked.clear()
    say_in_pieces(network, tokens(), Layout(query_BQ=torch.tensor([[22], [22]])), piece=8)
    assert asked == [0, 0, 1]


# What is not read in pieces


class Places(nn.Module):
    """Positions of one's own that count the tokens they are given, and know nothing of pieces."""

    def forward(self, q_BHQC: Tensor, k_BHTC: Tensor, layout: Layout = Layout()) -> tuple[Tensor, Tensor]:
        return q_BHQC, k_BHTC + torch.arange(k_BHTC.shape[2])[:, None]


class Own(NoPositions):
    def build(self, channels: int) -> nn.Module:
        return Places()


def test_positions_of_ones_own_are_read_at_once_unless_they_say_that_they_know_pieces() -> None:
    assert not network_of(transformer(**SMALL, blocks=1, positions=Own())).in_pieces


def test_a_window_on_attention_is_not_read_past() -> None:
    network = network_of(hybrid_block(**SMALL, blocks=1))
    windows = by_window(network, 3, batch=tokens())
    assert not network.in_pieces
    windows.open()
    assert network.in_pieces


def test_attention_that_is_off_is_off_in_pieces() -> None:
    network = network_of(hybrid_block(**SMALL, blocks=1))
    on = network(tokens())
    delay(network, "attention")
    assert network.in_pieces
    alike(in_pieces(network, tokens(), (3, 12)), network(tokens()))
    assert not torch.allclose(network(tokens()), on)


def test_positions_that_end_refuse_a_stream_that_is_longer_before_it_is_read() -> None:
    for model in (gpt2(**SMALL, position_ids=8), transformer(**SMALL, positions=Learned(8)), *longest_drawn(8)):
        with pytest.raises(LabError, match="raise"):
            network_of(model).read(tokens()[:, :2], None, Layout(piece=Piece(whole=9)))
    (drawn,) = longest_drawn(40)
    assert not network_of(drawn).has_state
    with pytest.raises(LabError, match="say how long it is"):
        network_of(drawn).read(tokens(), None)


def longest_drawn(limit: int) -> tuple[Model]:
    return (transformer(**SMALL, positions=Randomized(limit)),)


def test_sequences_begin_at_the_first_position_where_they_are_read_in_pieces_even_in_training() -> None:
    for model in (
        transformer(**SMALL, positions=Learned(60)),
        Model("own", 8, transformer(**SMALL).body, PositionIds(60, random_start=True)),
        transformer(**SMALL, positions=Randomized(60)),
    ):
        network = network_of(model)
        wanted = network(tokens())
        alike(in_pieces(network.train(), tokens(), (8,)), wanted)
