"""The paper's numbers, and where they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lengthlab.experiments.dat.arms import LENGTHS, TABLE1, TABLE2
from lengthlab.experiments.study import Arm, Reference, Source
from lengthlab.store.rows import ALL

SOURCE = Source(
    title="Delayed Attention Training Improves Length Generalization in Transformer–RNN Hybrids",
    authors="Phan, Ebrahimi, Haresh & Memisevic",
    address="arXiv 2510.00258",
)

Values = Mapping[str, tuple[float, ...]]

RECALL: Values = {
    "transformer": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 0.99, 0.99, 0.90, 0.80),
    "lstm": (1.00, 0.98, 0.95, 0.89, 0.83, 0.76, 0.70, 0.64, 0.59, 0.53, 0.37, 0.28),
    "lstm-on-attention": (1.00, 1.00, 1.00, 1.00, 1.00, 0.99, 0.99, 0.99, 0.99, 0.99, 0.90, 0.76),
    "attention-on-lstm": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 0.99, 0.99, 0.99, 0.99, 0.96, 0.89),
    "hybrid-block": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 0.99, 0.99, 0.98, 0.92),
    "sandwich": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 0.99, 0.99, 0.99, 0.97, 0.90),
    "parallel": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 0.99, 0.99, 0.92, 0.82),
}
"""Appendix B, "Table 1: Results on the Recall-Only setting"."""

MODULO: Values = {
    "transformer": (1.00, 1.00, 1.00, 0.99, 0.98, 0.51, 0.11, 0.10, 0.10, 0.10, 0.10, 0.10),
    "lstm": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00),
    "lstm-on-attention": (1.00, 1.00, 1.00, 1.00, 1.00, 0.20, 0.10, 0.10, 0.10, 0.10, 0.10, 0.10),
    "attention-on-lstm": (1.00, 1.00, 1.00, 1.00, 1.00, 0.63, 0.10, 0.10, 0.10, 0.10, 0.10, 0.10),
    "hybrid-block": (1.00, 1.00, 1.00, 1.00, 1.00, 0.45, 0.22, 0.13, 0.10, 0.10, 0.10, 0.10),
    "sandwich": (1.00, 1.00, 1.00, 1.00, 1.00, 0.73, 0.16, 0.08, 0.09, 0.10, 0.10, 0.10),
    "parallel": (1.00, 1.00, 1.00, 1.00, 0.99, 0.11, 0.11, 0.10, 0.10, 0.10, 0.10, 0.10),
}
"""Appendix B, "Table 2: Results on the Modulo-Only setting"."""


def _values(arms: tuple[Arm, ...], values: Values) -> Iterator[tuple[tuple[Arm, str, int], float]]:
    for arm in arms:
        for length, value in zip(LENGTHS, values[arm.model], strict=True):
            yield (arm, ALL, length), value


REFERENCE = Reference("the paper", SOURCE, {**dict(_values(TABLE1, RECALL)), **dict(_values(TABLE2, MODULO))})
"""Figure 1 is a picture; its numbers are not in the text, so the paper is silent there (but see claims.py)."""
