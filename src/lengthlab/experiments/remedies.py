"""Positions × scores × {end to end, delayed} on one hybrid, measured at 1 to 40 times the training length.

Claim: the delay keeps the state with almost any positions and scores, and these decide how far recall reaches: least far with
rotary ones, furthest with log-n scores and either no positions or learned ones.

Cost: 60 runs a seed, 14,000 steps each (gpu) or 6,000 small ones (cpu: modulus 2, n = 1…10).
Command: lengthlab reproduce remedies
"""

from __future__ import annotations

from functools import partial
from itertools import product

from lengthlab.experiments.drawing import Grid
from lengthlab.experiments.hybrid import POSITIONS, SCORES, TRAININGS, hybrid_arm, hybrid_run
from lengthlab.experiments.scale import Scale
from lengthlab.experiments.study import Check, Claim, Section, Study

SCALES = {
    "gpu": Scale(keys=1024, width=256, longest=25, batch=256, lr=3e-4, first=4_000, joint=8_000, last=2_000, heads=2),
    "cpu": Scale(keys=400, width=64, longest=10, batch=64, lr=2e-3, first=1_500, joint=4_000, last=500, modulus=2),
}
ARMS = tuple(hybrid_arm(*choice) for choice in product(POSITIONS, SCORES, TRAININGS))


def claims(size: str) -> tuple[Claim, ...]:
    """At 40 times the training length of a size."""
    far = 40 * SCALES[size].longest
    delayed = [(positions, hybrid_arm(positions, scores)) for positions, scores in product(POSITIONS, SCORES)]
    furthest = [hybrid_arm(positions, "log-n") for positions in ("none", "learned")]
    return (
        Claim(
            "The delay keeps the state with almost any positions and scores.",
            "every delayed arm but one at most has modulo right in at least 0.90 at 40 times",
            tuple(Check(arm, far, "≥", 0.90, "modulo") for _, arm in delayed),
            size=size,
            exceptions=1,
        ),
        Claim(
            "Recall reaches least far with rotary positions.",
            "delayed, recall at 40 times is at most 0.30 with rotary positions and at least 0.30 with all others",
            tuple(Check(arm, far, "≤" if positions == "rope" else "≥", 0.30, "recall") for positions, arm in delayed),
            size=size,
        ),
        Claim(
            "It reaches furthest with log-n scores and either no positions or learned ones.",
            "delayed, recall at 40 times is at least 0.99 with these",
            tuple(Check(arm, far, "≥", 0.99, "recall") for arm in furthest),
            size=size,
        ),
    )


REMEDIES = Study(
    name="remedies",
    title="Remedies",
    question="Which positions and scores keep recall, and does the delay keep the state whatever they are?",
    run=partial(hybrid_run, scales=SCALES),
    sizes=(SCALES["gpu"].size("gpu", gpu=True), SCALES["cpu"].size("cpu")),
    sections=(Section("remedies", "Accuracy by length", ARMS, figure=Grid(down="scores", across="positions", times=(4, 40))),),
    seeds=3,
    claims=(*claims("gpu"), *claims("cpu")),
    baseline="rope, none",
    note="Adaptive temperatures are fitted to each network after its training, at 1, 2 and 4 times the training length. In "
    "training no arm has seen more than that length; these have seen it afterwards.",
    about=__doc__,
    page="docs/far/remedies.md",
)
