"""A decoder of a neighbouring paper and how it is trained, as numbers: absolute, rotary or no positions. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lengthlab.experiments.size import Size

if TYPE_CHECKING:
    from lengthlab.models import Model
    from lengthlab.spec.run import Run
    from lengthlab.tasks import Task

MODELS = {"absolute": "gpt2", "none": "gpt2", "rotary": "llama"}
"""By the positions."""


FACTOR = 64.0
"""By which rotary positions are divided: that of the paper's code. The paper itself says 32, with which retrieval reached less
far: UL, UR and NRFirst of 101…150 were right in 0.38, 0.58 and 0.53 of the samples, and with 64 in 0.43, 1.00 and 0.97 (fp32,
one H200, seed 100, which is not published).
"""


@dataclass(frozen=True)
class Recipe:
    """The rate rises to `peak` over `warm_up` steps, then it falls in a line to 0. Gradients are
    clipped to `clip`, if it is not 0, and to 1 with rotary positions.
    """

    blocks: int
    heads: int
    width: int
    steps: int
    peak: float = 1e-3
    batch: int = 256
    warm_up: int = 500
    decay: float = 0.01
    clip: float = 0.0

    def model(self, positions: str, ids: int) -> Model:
        """`ids`: so many rows the table of absolute positions has."""
        from lengthlab.models import gpt2, llama

        if positions == "rotary":
            return llama(self.width, self.blocks, self.heads, factor=FACTOR)
        return gpt2(self.width, self.blocks, self.heads, position_ids=ids if positions == "absolute" else 0)

    def run(self, task: Task, positions: str, size: Size) -> Run:
        """Training starts a sequence at any row of the table, so that all of them are trained."""
        from lengthlab.spec.optimizer import AdamW
        from lengthlab.spec.rate import Linear
        from lengthlab.spec.run import Run
        from lengthlab.spec.schedule import end_to_end

        rate, model = Linear(self.peak, self.warm_up), self.model(positions, rows_for(task, size))
        optimizer = AdamW(decay=self.decay, clip=1.0 if positions == "rotary" else self.clip)
        return Run(task, model, end_to_end(self.steps, lr=rate), size.trained, self.batch, optimizer=optimizer)


def rows_for(task: Task, size: Size) -> int:
    """So many rows a table of positions needs for the longest sequence that is measured, a multiple of ten. An answer of
    unknown length is no longer than what was read.
    """
    return -(-(task.tokens(size.longest) or 2 * size.longest + 3) // 10) * 10


def task_named(name: str, parameters: Mapping[str, Any]) -> Task:
    """A task of ours by its name."""
    from lengthlab.registry import registered
    from lengthlab.tasks import Task

    made: Task = registered(Task)[name](**parameters)
    return made
