"""The 26 cells: which architecture is trained on which task, and how."""

from __future__ import annotations

from dataclasses import dataclass

LENGTHS = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 75, 100)
"""Where the paper measures."""
TRAINED = (1, 25)
"""The lengths it trains on."""
WIDTH = 256
GREEN = 0.90
"""Accuracy above this is green in its Figure 1."""

NOTATION = {
    "transformer": "Transformer",
    "lstm": "LSTM",
    "lstm-on-attention": "LSTM ∘ Attn",
    "attention-on-lstm": "Attn ∘ LSTM",
    "hybrid-block": "Hybrid Block",
    "sandwich": "LSTM ∘ Attn ∘ LSTM",
    "parallel": "LSTM + Attn",
}
"""Our names of the architectures, and the paper's; in the order of its tables."""
HYBRIDS = tuple(name for name in NOTATION if name not in ("transformer", "lstm"))

PARTS = {"table1": "recall", "table2": "modulo", "figure1": "modulo-recall"}
"""The parts of the paper that hold numbers, and the task of each."""
EVERY_PART = (*PARTS, "readings")
"""With the study of how else it can be read."""
TITLES = {"table1": "Table 1", "table2": "Table 2", "figure1": "Figure 1"}


@dataclass(frozen=True)
class Cell:
    """One line of a table of the paper; it is measured at every one of `LENGTHS`.

    >>> [cell.training for cell in CELLS if (cell.part, cell.model) == ("figure1", "sandwich")]
    ['end-to-end', 'delayed']
    """

    part: str
    task: str
    model: str
    training: str

    @property
    def label(self) -> str:
        return f"{self.model}, {self.training}"


def _cells() -> tuple[Cell, ...]:
    whole = [Cell(part, task, model, "end-to-end") for part, task in PARTS.items() for model in NOTATION]
    return (*whole, *(Cell("figure1", PARTS["figure1"], model, "delayed") for model in HYBRIDS))


CELLS = _cells()
"""7 of Table 1, 7 of Table 2, 7 + 5 of Figure 1."""
