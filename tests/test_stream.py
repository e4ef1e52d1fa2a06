"""Long sequences in pieces: what is measured in a stream is what is measured at once."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from lengthlab.evaluation import accuracy as accuracy_file
from lengthlab.evaluation import stream
from lengthlab.evaluation.accuracy import accuracy, drawn_together, evaluation_set
from lengthlab.evaluation.samples import USUAL, Samples
from lengthlab.evaluation.stream import is_streamed, say_in_pieces
from lengthlab.models import Layout, hybrid_block, lstm, lstm_hsa
from lengthlab.tasks import Copy, ModuloRecall, Passkey

HSA: dict[str, Any] = {"width": 8, "heads": 2, "chunk": 4, "chunks": 2}
MODELS = {
    "lstm": lstm(width=8),
    "lstm-hsa": lstm_hsa(**HSA),
    "two layers": lstm_hsa(**HSA, blocks=2, pre_norm=True),
    "looking back": lstm_hsa(**HSA, local=3),
}
TASKS = {"asked at the end": ModuloRecall(modulus=2, keys=40), "asked at half of it": Copy()}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", MODELS)
def test_what_is_measured_in_a_stream_is_what_is_measured_at_once(
    name: str, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    network = MODELS[name].build(TASKS[task].vocabulary)
    at_once = accuracy(network, TASKS[task], [3, 16], samples=60)
    monkeypatch.setattr(stream, "LONG", 10)
    monkeypatch.setattr(accuracy_file, "say_in_pieces", lambda *read: say_in_pieces(*read, piece=7))
    assert accuracy(network, TASKS[task], [3, 16], samples=60) == at_once


@pytest.mark.parametrize("name", MODELS)
def test_few_samples_are_read_in_larger_pieces_and_say_what_they_say_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    task, seen = TASKS["asked at the end"], set[tuple[int, int]]()
    network = MODELS[name].build(task.vocabulary)
    at_once = accuracy(network, task, [16], samples=30)
    network.embedding.register_forward_hook(lambda module, given, out: seen.add((out.shape[0], out.shape[1])))
    monkeypatch.setattr(stream, "LONG", 10)
    monkeypatch.setattr(stream, "TOKENS", 32)
    monkeypatch.setitem(stream.PIECE, "cpu", (4, 16))
    for rows, piece in ((1, 16), (2, 16), (3, 8), (4, 8), (10, 4)):
        seen.clear()
        monkeypatch.setitem(stream.SIDE_BY_SIDE, "cpu", rows)
        assert accuracy(network, task, [16], samples=30) == at_once
        assert max(seen) == (rows, piece)


@given(st.integers(1, 12), st.lists(st.integers(0, 22), min_size=1, max_size=6))
@settings(max_examples=10)
def test_pieces_of_any_size_say_the_same_wherever_they_are_asked(piece: int, asked: list[int]) -> None:
    torch.manual_seed(0)
    network, tokens_BT = MODELS["lstm-hsa"].build(12).double(), torch.randint(12, (2, 23))
    whole_BT = network(tokens_BT).argmax(dim=-1)
    query_BQ = torch.tensor([asked, asked[::-1]])
    assert torch.equal(say_in_pieces(network, tokens_BT, Layout(query_BQ=query_BQ), piece=piece), whole_BT.gather(1, query_BQ))
    assert torch.equal(say_in_pieces(network, tokens_BT, piece=piece), whole_BT)


def test_only_long_sequences_of_networks_that_read_pieces_are_streamed() -> None:
    long = stream.LONG + 1
    for model in (lstm(width=8), hybrid_block(width=8, heads=2)):
        assert is_streamed(model.build(5), long)
        assert not is_streamed(model.build(5), long - 1)
    assert not is_streamed(nn.Embedding(5, 5), long)


def test_fewer_samples_are_drawn_at_a_time_where_they_are_long_and_never_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [drawn_together(length) for length in (1, 40_000, 10**6, 10**9)] == [50, 50, 2, 1]
    monkeypatch.setattr(accuracy_file, "DRAWN_LENGTH", 20)
    assert [len(batch.length_B) for batch in evaluation_set(ModuloRecall(keys=40), 10, samples=3)] == [2, 1]


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_longer_sequences_are_never_measured_on_more_samples_nor_on_none(one: int, other: int) -> None:
    few, many = USUAL.of(max(one, other)), USUAL.of(min(one, other))
    assert 1 <= few <= many <= 1000
    assert max(one, other) > 2**22 or few >= 20


def test_the_rule_of_samples_goes_by_tokens_and_counts_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rule, network = Samples(most=30, long=20, tokens=64, least=2), lstm(width=8).build(Passkey(noise=3).vocabulary)
    counts = accuracy(network, Passkey(noise=3), [20, 21, 32, 60, 130], rule)
    assert [(count.length, count.total) for count in counts if count.question == "all"] == [
        *((20, 30), (21, 3), (32, 2), (60, 2), (130, 1)),
    ]


def test_streams_are_read_side_by_side_and_what_is_asked_at_their_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    task, seen = Passkey(noise=3, digits=2), []
    network = lstm_hsa(**HSA).build(task.vocabulary)
    network.embedding.register_forward_hook(lambda module, given, out: seen.append(out.shape[:2]))
    monkeypatch.setattr(stream, "LONG", 10)
    monkeypatch.setattr(accuracy_file, "say_in_pieces", lambda *read: say_in_pieces(*read, piece=20))
    monkeypatch.setattr(accuracy_file, "drawn_together", lambda length: 1)
    accuracy(network, task, [31], samples=6)
    assert seen == [(4, 20), (4, 10), (2, 20), (2, 10)]


def test_as_many_streams_are_read_side_by_side_as_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens, cpu, cuda = 10**6, torch.device("cpu"), torch.device("cuda")
    hsa, softmax = lstm_hsa(**HSA).build(5), hybrid_block(width=8, heads=2, blocks=1).build(5)
    assert stream.stream_bytes(hsa, tokens) == 4 * (tokens // 4 * 8 + tokens * 8)
    monkeypatch.setattr(stream, "memory_of", lambda device: 10**12)
    assert [stream.side_by_side(hsa, tokens, device) for device in (cpu, cuda)] == [4, 64]
    assert stream.side_by_side(softmax, tokens, cuda) == 2**31 // (2 * 8 * 4 * tokens)  # all of it is read again
    each = stream.stream_bytes(hsa, tokens) + 32 * tokens
    monkeypatch.setattr(stream, "memory_of", lambda device: 4 * 6 * each)
    assert [stream.side_by_side(hsa, tokens, cuda, copies) for copies in (1, 2, 9)] == [6, 3, 1]
