"""One model, both skills, 40 times the training length.

Claim: trained on n = 1…25 with delayed attention, without positions and with log-n scores, a hybrid has both questions right in
at least 0.99 of the samples at n = 100 and 400, and in 0.97 at n = 1000. A smaller one, trained on n = 1…10 on two cores, has
them right in 0.90 at n = 400.

Cost: 4 arms, 16,000 steps a seed each, 562 seconds for three seeds on one H200 (gpu); 6,500 small ones, half an hour a run on
one slow core (cpu: n = 1…10, measured to 400).
Command: lengthlab reproduce far
"""

from __future__ import annotations

from functools import partial

from lengthlab.experiments.hybrid import hybrid_arm, hybrid_run
from lengthlab.experiments.scale import Scale
from lengthlab.experiments.study import Check, Claim, Study

SCALES = {
    "gpu": Scale(keys=4096, width=256, longest=25, batch=1024, lr=6e-4, first=3_000, joint=9_000, last=4_000, heads=2,
                 times=(0.2, 0.6, 1, 2, 3, 4, 8, 16, 40, 80, 160)),
    "cpu": Scale(keys=512, width=128, longest=10, batch=256, lr=2e-3, first=1_000, joint=4_000, last=1_500),
}  # fmt: skip


ARM = hybrid_arm("none", "log-n")
ROTARY = hybrid_arm("rope", "none")
END_TO_END = hybrid_arm("none", "log-n", "end-to-end")
ROTARY_END_TO_END = hybrid_arm("rope", "none", "end-to-end")


FAR = Study(
    name="far",
    title="Far beyond the training length",
    question="How far does one model keep both skills?",
    run=partial(hybrid_run, scales=SCALES),
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
