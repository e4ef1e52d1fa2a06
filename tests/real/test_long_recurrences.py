"""Chunks against the walk where a mistake that grows with the length would show. Some seconds each: the walk is slow."""

from __future__ import annotations

import pytest
import torch

from small_recurrences import LINEAR, built, same, stream


@pytest.mark.parametrize("name", LINEAR)
@torch.no_grad()
def test_chunks_equal_the_walk_over_sixteen_thousand_tokens(name: str) -> None:
    made, x_BTD = built(name, torch.float32), stream(2**14, size=1, dtype=torch.float32)
    (slow_BTD, _), (fast_BTD, _) = made.walk(x_BTD, None), made.read(x_BTD, None)
    assert same(slow_BTD, fast_BTD, 1e-3)


@pytest.mark.parametrize("name", ["mamba2", "gated-deltanet", "mlstm", "deltaproduct", "lstm", "gru", "rnn"])
@torch.no_grad()
def test_what_is_read_at_once_equals_the_walk_where_sixteen_bits_of_an_index_end(name: str) -> None:
    made, x_BTD = built(name, torch.float32), stream(2**17, size=1, dtype=torch.float32)
    state = None
    for piece_BTD, fast_BTD in zip(x_BTD.split(2**14, dim=1), made(x_BTD).split(2**14, dim=1), strict=True):
        slow_BTD, state = made.walk(piece_BTD, state)
        assert same(slow_BTD, fast_BTD, 1e-3)
    assert same(made.read(x_BTD, None)[0], made(x_BTD), 1e-3)
