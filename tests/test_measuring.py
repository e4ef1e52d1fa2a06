"""How long measuring takes is said first, and how far it is; of a moment's work nothing is said."""

from __future__ import annotations

from io import StringIO

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from lengthlab.evaluation import stream
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.evaluation.pace import ENOUGH, Pace, PieceRead
from lengthlab.launch import measuring
from lengthlab.launch.measuring import Measuring
from lengthlab.models import lstm
from lengthlab.tasks import ModuloRecall


def reads(
    pieces: int, fixed: float, growing: float, samples: int = 10, threads: int = 1, noise: tuple[float, ...] = (0.0,)
) -> list[PieceRead]:
    """The pieces of one batch, each with its time."""
    return [
        PieceRead(10**6, samples, 1, 10**6, piece, pieces, fixed + growing * piece + noise[piece % len(noise)], threads)
        for piece in range(pieces)
    ]


def pace_of(told: list[PieceRead]) -> Pace:
    pace = Pace()
    for read in told:
        pace.add(read)
    return pace


@given(st.integers(20, 300), st.floats(0.01, 5), st.floats(0, 1), st.integers(1, 30), st.integers(1, 4))
@settings(max_examples=30)
def test_the_first_pieces_tell_how_long_all_will_take(
    pieces: int, fixed: float, growing: float, samples: int, threads: int
) -> None:
    told = reads(pieces, fixed, growing, samples, threads)
    rounds = -(-samples // threads)
    wanted = rounds * sum(fixed + growing * piece for piece in range(pieces))
    assert pace_of(told[:ENOUGH]).seconds == pytest.approx(wanted, rel=0.05)
    assert pace_of(told).share == pytest.approx(1 / samples)


def test_chance_alone_is_no_growth() -> None:
    pace = pace_of(reads(244, 1.0, 0.0, samples=1, noise=(0.1, -0.1, 0.05, -0.05))[:ENOUGH])
    assert not pace.is_quadratic
    assert pace.seconds == pytest.approx(244, rel=0.1)


def test_nothing_is_known_before_enough_is_read() -> None:
    told = reads(40, 1.0, 0.0)
    assert [pace_of(told[:number]).knows for number in (0, 1, ENOUGH - 1, ENOUGH)] == [False, False, False, True]
    assert pace_of(reads(1, 1.0, 0.0)).knows


def said_of(told: list[PieceRead], terminal: bool = False) -> str:
    out = StringIO()
    with Measuring(Console(file=out, force_terminal=terminal, width=200, highlight=False)) as watch:
        for read in told:
            watch(read)
    return out.getvalue()


def test_the_time_is_said_once_and_first() -> None:
    said = said_of(reads(244, 1.0, 0.5, samples=2))
    assert said.startswith("length 1,000,000: 2 samples of 1,000,000 tokens will take about 8 h 22 min, going by the first 12 ")
    assert "twice the length takes four times as long" in said
    assert said.count("\n") == 1
    assert "four times" not in said_of(reads(244, 1.0, 0.0))


def test_now_and_then_a_line_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "PLAIN_SECONDS", -1.0)
    assert "length 1,000,000: 50% read, about 20 s left" in said_of(reads(20, 1.0, 0.0, samples=2)).splitlines()


def test_a_terminal_has_a_bar() -> None:
    said = said_of(reads(40, 1.0, 0.0, samples=1), terminal=True)
    assert "will take about 40 s" in said
    assert "━" in said
    assert "100%" in said


def test_of_what_takes_a_moment_nothing_is_said() -> None:
    assert said_of(reads(20, 0.001, 0.0)) == said_of(reads(20, 0.001, 0.0), terminal=True) == ""


def test_a_console_that_fails_stops_no_measurement() -> None:
    out = StringIO()
    out.close()
    watch = Measuring(Console(file=out))
    for read in reads(20, 1.0, 0.0):
        watch(read)


def test_every_piece_and_every_batch_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    task = ModuloRecall(modulus=2, keys=40)
    network, told = lstm(width=8).build(task.vocabulary), list[PieceRead]()
    accuracy(network, task, [3], samples=60, watch=told.append)
    assert [(read.length, read.samples, read.rows, read.piece, read.pieces) for read in told] == [(3, 60, 60, 0, 1)]
    told.clear()
    monkeypatch.setattr(stream, "LONG", 10)
    monkeypatch.setitem(stream.PIECE, "cpu", (7, 7))
    accuracy(network, task, [9], samples=4, watch=told.append)
    assert [(read.rows, read.piece, read.pieces) for read in told] == [(4, piece, len(told)) for piece in range(len(told))]
    assert all(read.seconds > 0 for read in told)
