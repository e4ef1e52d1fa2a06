"""A question of our own: runs that differ in what is asked about, at a size for a GPU and at one for two cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lengthlab.experiments.trial import Trial
from lengthlab.models import AnyModel, Model, hybrid_block
from lengthlab.paper.cells import Cell
from lengthlab.run import Run
from lengthlab.schedule import Schedule, delayed, end_to_end
from lengthlab.tasks import ModuloRecall


@dataclass(frozen=True)
class Scale:
    """What the runs of a study have in common at one size. `times`: where they are measured, in training lengths."""

    keys: int
    width: int
    longest: int
    batch: int
    lr: float
    first: int
    joint: int
    last: int
    times: tuple[int, ...] = (1, 2, 3, 4, 8, 16, 40)
    modulus: int = 10
    heads: int = 1
    blocks: int = 1

    @property
    def task(self) -> ModuloRecall:
        return ModuloRecall(self.modulus, values=10, keys=self.keys)

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(times * self.longest for times in self.times)

    def hybrid(self, positions: str, scores: str) -> Model:
        """An LSTM in the residual stream, then attention made of these."""
        return hybrid_block(self.width, blocks=self.blocks, heads=self.heads, positions=positions, scores=scores)

    @property
    def delayed(self) -> Schedule:
        return delayed(self.first, self.joint, self.last, self.lr)

    @property
    def end_to_end(self) -> Schedule:
        """As many steps as with a delay."""
        return end_to_end(self.first + self.joint, self.last, self.lr)

    def run(self, model: AnyModel, schedule: Schedule | None = None, task: ModuloRecall | None = None) -> Run:
        """A run of this size, seed 0."""
        asked, how = task or self.task, schedule or self.delayed
        return Run(asked, model, how, lengths=(1, self.longest), batch=self.batch, evaluate=self.lengths)


@dataclass(frozen=True)
class Arm:
    """One line of a study: its name, and what is trained for it, whatever the seed."""

    name: str
    run: Run


@dataclass(frozen=True)
class Study:
    """`arms` are those of a size; `seeds` are how many are published; costs are told in multiples of the arm `reference`.

    `note`: what a reader of its page has to know. `beside_paper`: its figure shows the paper's hybrids as well, where their
    rows are at hand and were trained on as much.
    """

    name: str
    title: str
    question: str
    arms: Callable[[str], list[Arm]]
    seeds: int
    reference: str = ""
    note: str = ""
    beside_paper: bool = False

    def trials(self, size: str, seeds: Sequence[int]) -> list[Trial]:
        return [
            Trial(Cell(arm.name, arm.run.task.name, arm.run.model.name, arm.run.schedule.name), replace(arm.run, seed=seed))
            for seed in seeds
            for arm in self.arms(size)
        ]
