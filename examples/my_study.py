"""Does a tiny hybrid need the delay on a tiny task?

Claim: trained on n = 1…4, it keeps modulo to n = 16 only with the delay: right in at least 0.80 of the samples, else in 0.70.

Cost: 2 runs a seed of 400 small steps, some seconds (tiny), or of 2,400, a minute or two (small).
Command: lengthlab reproduce examples/my_study.py:STUDY
"""

from __future__ import annotations  # rows that are there are shown without torch, which `ll.Run` would import

import lengthlab as ll
from lengthlab.experiments import Arm, Check, Claim, Size, Study

STEPS = {"tiny": 400, "small": 2_400}
END_TO_END = Arm("no delay", model="hybrid-block", task="modulo-recall", training="end-to-end")
DELAYED = Arm("delay", model="hybrid-block", task="modulo-recall", training="delayed")


def run(arm: Arm, size: str) -> ll.Run:
    """The same model and as many steps; only the schedule differs."""
    steps = STEPS[size]
    schedule = ll.delayed(steps // 4, steps - steps // 4, lr=1e-2) if arm == DELAYED else ll.end_to_end(steps, lr=1e-2)
    task = ll.tasks.ModuloRecall(modulus=2, values=4, keys=24)
    model = ll.models.hybrid_block(width=16, blocks=1, heads=2, mlp=2, positions="none", scores="log-n")
    return ll.Run(task, model, schedule, lengths=(1, 4), batch=32)


STUDY = Study(
    name="my-study",
    title="A study of my own",
    question="Does a tiny hybrid need the delay on a tiny task?",
    run=run,
    sizes=tuple(Size(name, trained=(1, 4), lengths=(4, 8, 16)) for name in STEPS),
    arms=(END_TO_END, DELAYED),
    claims=(
        Claim(
            "It keeps the state beyond its training length only with the delay.",
            "modulo at n = 16: right in at least 0.80 with the delay, in at most 0.70 without",
            (Check(DELAYED, 16, "≥", 0.80, question="modulo"), Check(END_TO_END, 16, "≤", 0.70, question="modulo")),
        ),
    ),
    about=__doc__,
)
