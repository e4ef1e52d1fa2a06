"""Leave-Square-Out on this machine: one small transformer, a square of the plane held out, and as many pairs at random.

Claim: none. Whether a model adds by cases or by a rule is what `lengthlab rules square` shows; docs/rules.md has what we saw.

Cost: 4 runs a seed of 2,000 steps, about 3 minutes on two slow cores.
Command: lengthlab rules square
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lengthlab.spec.run import Run
    from lengthlab.tasks.plane import Numbers

NUMBERS: tuple[Numbers, ...] = ("whole", "digits")
STEPS, BATCH, PEAK = 2_000, 256, 5e-3


def square_runs(
    half: int = 8, centre: tuple[int, int] = (50, 50), seeds: Sequence[int] = (0,), steps: int = STEPS
) -> list[Run]:
    """Numbers as one token and as digits, with the square held out and with as many pairs at random."""
    from lengthlab.models import gpt2
    from lengthlab.rules.plane import HELD
    from lengthlab.spec.optimizer import AdamW
    from lengthlab.spec.rate import Cosine
    from lengthlab.spec.run import Run
    from lengthlab.spec.schedule import end_to_end
    from lengthlab.tasks import AdditionPlane

    schedule, optimizer = end_to_end(steps, lr=Cosine(PEAK, steps // 30)), AdamW(decay=0.1, clip=1.0)
    runs = []
    for seed in seeds:
        for task in (AdditionPlane(held, half, centre, numbers) for numbers in NUMBERS for held in HELD):
            model = gpt2(width=64, blocks=1, heads=4, position_ids=task.tokens(2) - 1)
            runs.append(Run(task, model, schedule, (2, 2), BATCH, seed, evaluate=(2,), optimizer=optimizer))
    return runs
