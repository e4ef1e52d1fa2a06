"""What the runs of a study on modulo and recall have in common at one size: numbers, and the parts made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lengthlab.experiments.size import Size
from lengthlab.store.rows import ALL

if TYPE_CHECKING:
    from lengthlab.models import AnyModel, Model
    from lengthlab.spec.run import Run
    from lengthlab.spec.schedule import Schedule
    from lengthlab.tasks import ModuloRecall


@dataclass(frozen=True)
class Scale:
    """`times`: where runs are measured, in training lengths. Torch is needed only for what is made of the numbers."""

    keys: int
    width: int
    longest: int
    batch: int
    lr: float
    first: int
    joint: int
    last: int
    times: tuple[float, ...] = (1, 2, 3, 4, 8, 16, 40)
    modulus: int = 10
    values: int = 10
    heads: int = 1
    blocks: int = 1

    def size(self, name: str, gpu: bool = False) -> Size:
        lengths = tuple(round(times * self.longest) for times in self.times)
        chance = {ALL: 1 / self.modulus / self.values, "modulo": 1 / self.modulus, "recall": 1 / self.values}
        return Size(name, (1, self.longest), lengths, gpu, chance)

    @property
    def task(self) -> ModuloRecall:
        from lengthlab.tasks import ModuloRecall

        return ModuloRecall(self.modulus, self.values, self.keys)

    def hybrid(self, positions: str, scores: str) -> Model:
        """An LSTM in the residual stream, then attention made of these."""
        from lengthlab.models import hybrid_block

        return hybrid_block(self.width, blocks=self.blocks, heads=self.heads, positions=positions, scores=scores)

    @property
    def delayed(self) -> Schedule:
        from lengthlab.spec.schedule import delayed

        return delayed(self.first, self.joint, self.last, self.lr)

    @property
    def end_to_end(self) -> Schedule:
        """As many steps as with a delay."""
        from lengthlab.spec.schedule import end_to_end

        return end_to_end(self.first + self.joint, self.last, self.lr)

    def run(self, model: AnyModel, schedule: Schedule | None = None, task: ModuloRecall | None = None) -> Run:
        """A run of this size."""
        from lengthlab.spec.run import Run

        return Run(task or self.task, model, schedule or self.delayed, lengths=(1, self.longest), batch=self.batch)
