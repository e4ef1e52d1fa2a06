"""Which remedy does what: positions and scores of attention, with and without a delay."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from lengthlab.experiments.study import Arm, Scale, Study
from lengthlab.models.scores import SCORES
from lengthlab.run import Run

SIZES = {
    "gpu": Scale(keys=1024, width=256, longest=25, batch=256, lr=3e-4, first=4_000, joint=8_000, last=2_000, heads=2),
    "cpu": Scale(keys=400, width=64, longest=10, batch=64, lr=2e-3, first=1_500, joint=4_000, last=500, modulus=2),
}

COMPARED = ("rope", "none", "alibi", "learned", "randomized")


def arms(size: str) -> list[Arm]:
    """Five positions with every score, end to end and delayed."""
    scale = SIZES[size]
    found = []
    for positions, scores in product(COMPARED, SCORES):
        model, name = scale.hybrid(positions, scores), f"{positions}, {scores}"
        found += [Arm(name, scale.run(model, schedule)) for schedule in (scale.end_to_end, scale.delayed)]
    return found


def remedies(seeds: Sequence[int] = (0,), size: str = "gpu") -> list[Run]:
    """Positions × scores × {end to end, delayed} on one hybrid, measured at 1 to 40 times the training length.

    Claim: the delay keeps the state with almost any positions and scores, and these decide how far recall reaches: least
    far with rotary ones, furthest with log-n scores and either no positions or learned ones.

    Cost: 60 runs a seed, 14,000 steps each (gpu) or 6,000 small ones (cpu: modulus 2, n = 1…10).
    Command: lengthlab reproduce remedies
    """
    return [trial.run for trial in STUDY.trials(size, seeds)]


STUDY = Study(
    name="remedies",
    title="Remedies",
    question="Which positions and scores keep recall, and does the delay keep the state whatever they are?",
    arms=arms,
    seeds=1,
    reference="rope, none",
    note="Adaptive temperatures are fitted to each network after its training, at 1, 2 and 4 times the training length. In "
    "training no arm has seen more than that length; these have seen it afterwards.",
)
