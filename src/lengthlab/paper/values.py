"""The paper's numbers, and where they stand."""

from __future__ import annotations

from dataclasses import dataclass

from lengthlab.paper.cells import LENGTHS, Cell


@dataclass(frozen=True)
class Source:
    title: str
    authors: str
    address: str

    def __str__(self) -> str:
        return f"{self.authors}, *{self.title}*, {self.address}"


SOURCE = Source(
    title="Delayed Attention Training Improves Length Generalization in Transformer–RNN Hybrids",
    authors="Phan, Ebrahimi, Haresh & Memisevic",
    address="arXiv 2510.00258",
)

Values = dict[str, tuple[float, ...]]

TABLE1: Values = {
    "transformer": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 0.99, 0.99, 0.90, 0.80),
    "lstm": (1.00, 0.98, 0.95, 0.89, 0.83, 0.76, 0.70, 0.64, 0.59, 0.53, 0.37, 0.28),
    "lstm-on-attention": (1.00, 1.00, 1.00, 1.00, 1.00, 0.99, 0.99, 0.99, 0.99, 0.99, 0.90, 0.76),
    "attention-on-lstm": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 0.99, 0.99, 0.99, 0.99, 0.96, 0.89),
    "hybrid-block": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 0.99, 0.99, 0.98, 0.92),
    "sandwich": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 0.99, 0.99, 0.99, 0.97, 0.90),
    "parallel": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 0.99, 0.99, 0.92, 0.82),
}
"""Appendix B, "Table 1: Results on the Recall-Only setting"."""

TABLE2: Values = {
    "transformer": (1.00, 1.00, 1.00, 0.99, 0.98, 0.51, 0.11, 0.10, 0.10, 0.10, 0.10, 0.10),
    "lstm": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00),
    "lstm-on-attention": (1.00, 1.00, 1.00, 1.00, 1.00, 0.20, 0.10, 0.10, 0.10, 0.10, 0.10, 0.10),
    "attention-on-lstm": (1.00, 1.00, 1.00, 1.00, 1.00, 0.63, 0.10, 0.10, 0.10, 0.10, 0.10, 0.10),
    "hybrid-block": (1.00, 1.00, 1.00, 1.00, 1.00, 0.45, 0.22, 0.13, 0.10, 0.10, 0.10, 0.10),
    "sandwich": (1.00, 1.00, 1.00, 1.00, 1.00, 0.73, 0.16, 0.08, 0.09, 0.10, 0.10, 0.10),
    "parallel": (1.00, 1.00, 1.00, 1.00, 0.99, 0.11, 0.11, 0.10, 0.10, 0.10, 0.10, 0.10),
}
"""Appendix B, "Table 2: Results on the Modulo-Only setting"."""

VALUES = {"table1": TABLE1, "table2": TABLE2}
"""Figure 1 is a picture; its numbers are not in the text, so the paper is silent there (but see claims.py)."""


def value(cell: Cell, length: int) -> float | None:
    """What the paper reports for a cell at a length; None where its text is silent.

    >>> value(Cell("table1", "recall", "lstm", "end-to-end"), 100)
    0.28
    >>> value(Cell("figure1", "modulo-recall", "lstm", "end-to-end"), 100) is None
    True
    """
    values = VALUES.get(cell.part, {}).get(cell.model)
    return values[LENGTHS.index(length)] if values and length in LENGTHS and cell.training == "end-to-end" else None
