"""Forty times the training length."""

from __future__ import annotations

from collections.abc import Sequence

from lengthlab.experiments.study import Arm, Scale, Study
from lengthlab.run import Run

SIZES = {
    "gpu": Scale(keys=4096, width=256, longest=25, batch=1024, lr=6e-4, first=3_000, joint=9_000, last=4_000, heads=2,
                 times=(1, 2, 3, 4, 8, 16, 40, 80, 160)),
    "cpu": Scale(keys=512, width=128, longest=10, batch=256, lr=2e-3, first=1_000, joint=4_000, last=1_500),
}  # fmt: skip


def arms(size: str) -> list[Arm]:
    """The recipe: an LSTM in the residual stream, one attention block without positions, scores that grow with log n."""
    scale = SIZES[size]
    return [Arm("none, log-n", scale.run(scale.hybrid("none", "log-n")))]


def far(seeds: Sequence[int] = (0, 1, 2), size: str = "gpu") -> list[Run]:
    """One model, both skills, 40 times the training length.

    Claim: trained on n = 1…25 with delayed attention, without positions and with log-n scores, a hybrid has both questions
    right in at least 0.99 of the samples at n = 100 and 400, and in 0.97 at n = 1000.

    Cost: 16,000 steps a seed, 4 minutes for three on one H200 (gpu); 6,500 small ones, half an hour on one slow core (cpu: n =
    1…10, measured to 400).
    Command: lengthlab reproduce far
    """
    return [trial.run for trial in STUDY.trials(size, seeds)]


STUDY = Study(
    name="far",
    title="Far beyond the training length",
    question="How far does one model keep both skills?",
    arms=arms,
    seeds=3,
    beside_paper=True,
)
