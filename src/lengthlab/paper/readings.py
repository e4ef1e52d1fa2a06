"""What the paper's text allows to be read in more than one way, for two of its hybrids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lengthlab.paper.cells import PARTS, Cell


@dataclass(frozen=True)
class Reading:
    """One way to read delayed training on modulo-recall.

    `lstms`: the hybrid block has one LSTM in the residual stream before its attention blocks, or one in each block. `covers`:
    what "deactivate the attention modules" switches off: the whole part (attention, MLPs and norms), its sublayers (attention
    and MLPs), or the attention function alone. `asks`: what the recurrence is asked while attention is off.

    >>> Reading("hybrid-block", "each block", "function", "both").cell
    Cell(part='readings', task='modulo-recall', model='hybrid-block-lstm-in-each', training='delayed-function-both')
    """

    model: str
    lstms: Literal["one", "each block"]
    covers: Literal["part", "sublayers", "function"]
    asks: Literal["modulo", "both"]

    @property
    def cell(self) -> Cell:
        """The names under which its rows are kept apart from those of the other readings."""
        model = self.model if self.lstms == "one" else f"{self.model}-lstm-in-each"
        return Cell("readings", PARTS["figure1"], model, f"delayed-{self.covers}-{self.asks}")


WAYS: tuple[tuple[Literal["part", "sublayers", "function"], Literal["modulo", "both"]], ...] = (
    ("part", "modulo"),
    ("part", "both"),
    ("function", "modulo"),
    ("function", "both"),
)

READINGS = (
    Reading("attention-on-lstm", "one", "sublayers", "modulo"),
    Reading("attention-on-lstm", "one", "sublayers", "both"),
    *(Reading("attention-on-lstm", "one", *way) for way in WAYS),
    *(Reading("hybrid-block", "one", *way) for way in WAYS),
    *(Reading("hybrid-block", "each block", *way) for way in WAYS),
)
"""The first of each model is how the 26 cells read the paper in profile short."""
