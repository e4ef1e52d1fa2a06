"""One model, both skills, 40 times the training length.

Claim: trained on n = 1…25 with delayed attention, without positions and with log-n scores, a hybrid has both questions right in
at least 0.99 of the samples at n = 100 and 400, and in 0.97 at n = 1000. A smaller one, trained on n = 1…10 on two cores, has
them right in 0.90 at n = 400.

Cost: 16,000 steps a seed, 4 minutes for three on one H200 (gpu); 6,500 small ones, half an hour on one slow core (cpu: n =
1…10, measured to 400).
Command: lengthlab reproduce far
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lengthlab.experiments.scale import Scale
from lengthlab.experiments.study import Arm, Check, Claim, Study

if TYPE_CHECKING:
    from lengthlab.spec.run import Run

SCALES = {
    "gpu": Scale(keys=4096, width=256, longest=25, batch=1024, lr=6e-4, first=3_000, joint=9_000, last=4_000, heads=2,
                 times=(0.2, 0.6, 1, 2, 3, 4, 8, 16, 40, 80, 160)),
    "cpu": Scale(keys=512, width=128, longest=10, batch=256, lr=2e-3, first=1_000, joint=4_000, last=1_500),
}  # fmt: skip


def _arm(positions: str, scores: str, training: str, label: str) -> Arm:
    return Arm(f"{positions}, {scores}", "hybrid-block", "modulo-recall", training, label=label)


ARM = _arm("none", "log-n", "delayed", "delayed: no positions, log-n scores")
ROTARY = _arm("rope", "none", "delayed", "delayed: rotary positions, plain softmax")
END_TO_END = _arm("none", "log-n", "end-to-end", "end to end: no positions, log-n scores")
ROTARY_END_TO_END = _arm("rope", "none", "end-to-end", "end to end: rotary positions, plain softmax")


def run(arm: Arm, size: str) -> Run:
    """An LSTM in the residual stream, and one attention block made of what the arm is named after."""
    scale, (positions, scores) = SCALES[size], arm.name.split(", ")
    schedule = scale.delayed if arm.training == "delayed" else scale.end_to_end
    return scale.run(scale.hybrid(positions, scores), schedule)


FAR = Study(
    name="far",
    title="Far beyond the training length",
    question="How far does one model keep both skills?",
    run=run,
    sizes=(SCALES["gpu"].size("gpu", gpu=True), SCALES["cpu"].size("cpu")),
    arms=(ARM, ROTARY, END_TO_END, ROTARY_END_TO_END),
    seeds=3,
    claims=(
        Claim(
            "One model keeps both skills to 40 times its training length.",
            "at least 0.99 at n = 100 and 400, at least 0.97 at n = 1000",
            (Check(ARM, 100, "≥", 0.99), Check(ARM, 400, "≥", 0.99), Check(ARM, 1000, "≥", 0.97)),
            size="gpu",
        ),
        Claim(
            "A smaller one, trained on two cores, keeps them to 40 times as well.",
            "at least 0.90 at n = 400",
            (Check(ARM, 400, "≥", 0.90),),
            size="cpu",
        ),
    ),
    about=__doc__,
    page="docs/far/far.md",
)
