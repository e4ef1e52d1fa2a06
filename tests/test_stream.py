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
from lengthlab.evaluation.stream import is_streamed, say_in_pieces
from lengthlab.models import Layout, hybrid_block, lstm, lstm_hsa
from lengthlab.tasks import Copy, ModuloRecall

HSA: dict[str, Any] = {"width": 8, "heads": 2, "chunk": 4, "chunks": 2}
MODELS = {"lstm": lstm(width=8), "lstm-hsa": lstm_hsa(**HSA), "two layers": lstm_hsa(**HSA, blocks=2, pre_norm=True)}
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


@given(st.integers(1, 12), st.lists(st.integers(0, 22), min_size=1, max_size=6))
@settings(max_examples=10, deadline=None)
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
