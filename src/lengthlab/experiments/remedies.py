"""Positions × scores × {end to end, delayed} on one hybrid, measured at 1 to 40 times the training length.

Claim: the delay keeps the state with almost any positions and scores, and these decide how far recall reaches: least far with
rotary ones, furthest with log-n scores and either no positions or learned ones.

Cost: 60 runs a seed, 14,000 steps each (gpu) or 6,000 small ones (cpu: modulus 2, n = 1…10).
Command: lengthlab reproduce remedies
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from lengthlab.experiments.scale import Scale
from lengthlab.experiments.study import Arm, Check, Claim, Study

if TYPE_CHECKING:
    from lengthlab.spec.run import Run

SCALES = {
    "gpu": Scale(keys=1024, width=256, longest=25, batch=256, lr=3e-4, first=4_000, joint=8_000, last=2_000, heads=2),
    "cpu": Scale(keys=400, width=64, longest=10, batch=64, lr=2e-3, first=1_500, joint=4_000, last=500, modulus=2),
}
POSITIONS = ("rope", "none", "alibi", "learned", "randomized")
SCORES = ("none", "log-n", "adaptive-temperature", "entmax", "adaptive-entmax", "stick-breaking")
TRAININGS = ("end-to-end", "delayed")


def arm_of(positions: str, scores: str, training: str = "delayed") -> Arm:
    name = f"{positions}, {scores}"
    return Arm(name, "hybrid-block", "modulo-recall", training, label=f"{name}, {training}")


def run(arm: Arm, size: str) -> Run:
    """The hybrid with attention made of what the arm is named after."""
    scale, (positions, scores) = SCALES[size], arm.name.split(", ")
    schedule = scale.delayed if arm.training == "delayed" else scale.end_to_end
    return scale.run(scale.hybrid(positions, scores), schedule)


def claims(size: str) -> tuple[Claim, ...]:
    """At 40 times the training length of a size."""
    far = 40 * SCALES[size].longest
    delayed = [(positions, arm_of(positions, scores)) for positions, scores in product(POSITIONS, SCORES)]
    furthest = [arm_of(positions, "log-n") for positions in ("none", "learned")]
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
    run=run,
    sizes=(SCALES["gpu"].size("gpu", gpu=True), SCALES["cpu"].size("cpu")),
    arms=tuple(arm_of(*choice) for choice in product(POSITIONS, SCORES, TRAININGS)),
    seeds=1,
    claims=(*claims("gpu"), *claims("cpu")),
    baseline="rope, none",
    note="Adaptive temperatures are fitted to each network after its training, at 1, 2 and 4 times the training length. In "
    "training no arm has seen more than that length; these have seen it afterwards.",
    about=__doc__,
    page="docs/far/remedies.md",
)
