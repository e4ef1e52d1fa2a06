"""The paper's claims in words, and what we check of each.

Where the text gives no number the bound is ours: 0.90 is its own mark of success (its green), 0.50 is far from that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from lengthlab.paper.cells import GREEN, HYBRIDS, LENGTHS, NOTATION, PARTS, TRAINED, Cell

INSIDE = tuple(length for length in LENGTHS if length <= TRAINED[1])


@dataclass(frozen=True)
class At:
    """The accuracy of the same cell at another length, as a bound."""

    length: int


@dataclass(frozen=True)
class Check:
    """Accuracy (mean over seeds) of a cell at a length, held against a bound.

    >>> str(Check(Cell("figure1", "modulo-recall", "sandwich", "delayed"), 100, "<", At(75)))
    'sandwich, delayed at n=100 < at n=75'
    """

    cell: Cell
    length: int
    sign: Literal["<", "≤", "≥", ">"]
    bound: float | At

    def __str__(self) -> str:
        bound = f"at n={self.bound.length}" if isinstance(self.bound, At) else f"{self.bound:.2f}"
        return f"{self.cell.label} at n={self.length} {self.sign} {bound}"


@dataclass(frozen=True)
class Claim:
    """`words` are the paper's, `checked` says in ours what `checks` are."""

    part: str
    words: str
    checked: str
    checks: tuple[Check, ...]


def _each(
    part: str,
    models: Sequence[str],
    lengths: Sequence[int],
    sign: Literal["<", "≤", "≥", ">"],
    bound: float | At,
    training: str = "end-to-end",
) -> Iterator[Check]:
    for model in models:
        for length in lengths:
            yield Check(Cell(part, PARTS[part], model, training), length, sign, bound)


def _but(name: str) -> tuple[str, ...]:
    return tuple(model for model in NOTATION if model != name)


CLAIMS = (
    Claim(
        "table1",
        "the transformer component enables all hybrid models to excel at the recall task",
        "transformer and every hybrid at least 0.99 at n ≤ 25",
        tuple(_each("table1", _but("lstm"), INSIDE, "≥", 0.99)),
    ),
    Claim(
        "table2",
        "an LSTM model exhibits perfect length generalization",
        "lstm at least 0.99 at every length to 100",
        tuple(_each("table2", ["lstm"], LENGTHS, "≥", 0.99)),
    ),
    Claim(
        "table2",
        "augmenting it with an additional attention layer immediately forfeits this capability",
        "every other architecture at least 0.95 at n ≤ 25 and at most 0.30 at n ≥ 50",
        (*_each("table2", _but("lstm"), INSIDE, "≥", 0.95), *_each("table2", _but("lstm"), (50, 75, 100), "≤", 0.30)),
    ),
    Claim(
        "figure1",
        "LSTM underperforms even in-distribution",
        "lstm below 0.90 at n = 25",
        tuple(_each("figure1", ["lstm"], (25,), "<", GREEN)),
    ),
    Claim(
        "figure1",
        "Transformers performs relatively well in-distribution but […] do not length generalize",
        "transformer at least 0.90 at n ≤ 20 and at most 0.50 at n = 50",
        (*_each("figure1", ["transformer"], INSIDE[:-1], "≥", GREEN), *_each("figure1", ["transformer"], (50,), "≤", 0.50)),
    ),
    Claim(
        "figure1",
        "Hybrid architectures also achieve high accuracy in-distribution, but their ability to generalize degrades with "
        "increasing sequence length",
        "every hybrid, end to end, at least 0.90 at n ≤ 25 and at most 0.50 at n = 50",
        (*_each("figure1", HYBRIDS, INSIDE, "≥", GREEN), *_each("figure1", HYBRIDS, (50,), "≤", 0.50)),
    ),
    Claim(
        "figure1",
        "near-perfect accuracy (>90%) on hybrid sequences three times longer than those used during training",
        "every delayed hybrid above 0.90 at n = 75",
        tuple(_each("figure1", HYBRIDS, (75,), ">", GREEN, "delayed")),
    ),
    Claim(
        "figure1",
        "the accuracy drop at sequence length 100",
        "every delayed hybrid lower at n = 100 than at n = 75",
        tuple(_each("figure1", HYBRIDS, (100,), "<", At(75), "delayed")),
    ),
)
