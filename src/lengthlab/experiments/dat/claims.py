"""The paper's claims in words, and what we check of each.

Where the text gives no number the bound is ours: 0.90 is its own mark of success (its green), 0.50 is far from that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lengthlab.experiments.dat.arms import GREEN, HYBRIDS, LENGTHS, NOTATION, TRAINED, arm_of
from lengthlab.experiments.study import At, Check, Claim, Sign

INSIDE = tuple(length for length in LENGTHS if length <= TRAINED[1])
TITLES = {"table1": "Table 1", "table2": "Table 2", "figure1": "Figure 1"}


def _claim(section: str, words: str, checked: str, checks: tuple[Check, ...]) -> Claim:
    return Claim(f"{TITLES[section]}: “{words}”", checked, checks, section)


def _each(
    section: str,
    models: Sequence[str],
    lengths: Sequence[int],
    sign: Sign,
    bound: float | At,
    training: str = "end-to-end",
) -> Iterator[Check]:
    for model in models:
        for length in lengths:
            yield Check(arm_of(section, model, training), length, sign, bound)


def _but(name: str) -> tuple[str, ...]:
    return tuple(model for model in NOTATION if model != name)


CLAIMS = (
    _claim(
        "table1",
        "the transformer component enables all hybrid models to excel at the recall task",
        "transformer and every hybrid at least 0.99 at n ≤ 25",
        tuple(_each("table1", _but("lstm"), INSIDE, "≥", 0.99)),
    ),
    _claim(
        "table2",
        "an LSTM model exhibits perfect length generalization",
        "lstm at least 0.99 at every length to 100",
        tuple(_each("table2", ["lstm"], LENGTHS, "≥", 0.99)),
    ),
    _claim(
        "table2",
        "augmenting it with an additional attention layer immediately forfeits this capability",
        "every other architecture at least 0.95 at n ≤ 25 and at most 0.30 at n ≥ 50",
        (*_each("table2", _but("lstm"), INSIDE, "≥", 0.95), *_each("table2", _but("lstm"), (50, 75, 100), "≤", 0.30)),
    ),
    _claim(
        "figure1",
        "LSTM underperforms even in-distribution",
        "lstm below 0.90 at n = 25",
        tuple(_each("figure1", ["lstm"], (25,), "<", GREEN)),
    ),
    _claim(
        "figure1",
        "Transformers performs relatively well in-distribution but […] do not length generalize",
        "transformer at least 0.90 at n ≤ 20 and at most 0.50 at n = 50",
        (*_each("figure1", ["transformer"], INSIDE[:-1], "≥", GREEN), *_each("figure1", ["transformer"], (50,), "≤", 0.50)),
    ),
    _claim(
        "figure1",
        "Hybrid architectures also achieve high accuracy in-distribution, but their ability to generalize degrades with "
        "increasing sequence length",
        "every hybrid, end to end, at least 0.90 at n ≤ 25 and at most 0.50 at n = 50",
        (*_each("figure1", HYBRIDS, INSIDE, "≥", GREEN), *_each("figure1", HYBRIDS, (50,), "≤", 0.50)),
    ),
    _claim(
        "figure1",
        "near-perfect accuracy (>90%) on hybrid sequences three times longer than those used during training",
        "every delayed hybrid above 0.90 at n = 75",
        tuple(_each("figure1", HYBRIDS, (75,), ">", GREEN, "delayed")),
    ),
    _claim(
        "figure1",
        "the accuracy drop at sequence length 100",
        "every delayed hybrid lower at n = 100 than at n = 75",
        tuple(_each("figure1", HYBRIDS, (100,), "<", At(75), "delayed")),
    ),
)
