"""A hybrid, an LSTM in the residual stream and then one block of attention without positions and with log-n scores, and how it
is trained on any task, end to end or delayed, as numbers. No torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lengthlab.experiments.size import Size

if TYPE_CHECKING:
    from lengthlab.spec.run import Run
    from lengthlab.tasks import Task


@dataclass(frozen=True)
class HybridRecipe:
    """As many steps either way; delayed, the recurrence alone is asked for the answer in the `first` of them."""

    size: Size
    width: int
    heads: int
    first: int
    joint: int
    last: int
    lr: float
    batch: int

    def run(self, task: Task, training: str) -> Run:
        from lengthlab.models import hybrid_block
        from lengthlab.spec.run import Run
        from lengthlab.spec.schedule import delayed, end_to_end

        model = hybrid_block(self.width, blocks=1, heads=self.heads, positions="none", scores="log-n")
        if training == "delayed":
            schedule = delayed(self.first, self.joint, self.last, self.lr)
        else:
            schedule = end_to_end(self.first + self.joint, self.last, self.lr)
        return Run(task, model, schedule, self.size.trained, self.batch)
