"""What is timed: a run at one moment of its training, and the numbers that its architecture is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

from lengthlab.errors import LabError, require
from lengthlab.models import MODELS, Attention, Mlp, Model, PlainScores, Rope
from lengthlab.models.compose import Repeat
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import OFF, Covers, Phase
from lengthlab.tasks import ModuloRecall
from lengthlab.training.pace import forever


@dataclass(frozen=True)
class Shape:
    """One of the paper's architectures in numbers."""

    kind: str
    width: int
    blocks: int = 0
    heads: int = 1
    mlp: int = 0


@dataclass(frozen=True)
class Case:
    """A run whose only phase is the one that is timed."""

    run: Run
    shape: Shape
    task: ModuloRecall
    phase: Phase

    @property
    def off(self) -> Covers | None:
        """What of attention is off, if any is."""
        return next((covers for covers, names in OFF.items() if names == self.phase.off), None)

    @property
    def asks(self) -> tuple[str, ...]:
        return self.phase.asks or self.task.questions

    @property
    def tokens(self) -> int:
        """What the model reads of the longest sequence; the last token is only ever an answer."""
        return self.task.tokens(self.run.lengths[1]) - 1

    @property
    def kind(self) -> object:
        """Cases of one kind take as long as each other."""
        return self.shape, self.task, self.run.batch, self.run.lengths, self.off, self.asks


def joint(run: Run) -> Case:
    """The run when all its parts learn.

    >>> import lengthlab as ll
    >>> run = ll.Run(ll.tasks.ModuloRecall(keys=32), ll.models.sandwich(16, blocks=2, heads=2), ll.delayed(5, 5), batch=32)
    >>> joint(run).shape, joint(run).off, first(run).off
    (Shape(kind='sandwich', width=16, blocks=2, heads=2, mlp=4), None, 'part')
    """
    return _case(run, next(phase for phase in run.schedule.phases if not phase.off))


def first(run: Run) -> Case:
    """The run when it begins; if it is a delayed one, with attention off."""
    return _case(run, run.schedule.phases[0])


def _case(run: Run, phase: Phase) -> Case:
    known = ((), OFF["part"], OFF["sublayers"])
    require(phase.off in known, f"the textbook loop can have {known[1]} or {known[2]} off, not {phase.off}")
    if not isinstance(run.task, ModuloRecall):
        raise LabError(f"the textbook loop has no task '{run.task.name}'")
    return Case(forever(run, phase), shape_of(run.model), run.task, phase)


def shape_of(model: object) -> Shape:
    """The numbers of an architecture of the paper, read from its composition."""
    if not isinstance(model, Model) or model.name not in MODELS:
        raise LabError(f"the textbook loop has no architecture '{getattr(model, 'name', model)}'")
    parts = list(_parts(model.body))
    attention = next((part for part in parts if isinstance(part, Attention)), None)
    if attention is None:
        return Shape(model.name, model.width)
    # With which weights rope begins makes no difference to a step.
    plain = isinstance(attention.positions, Rope) and isinstance(attention.scores, PlainScores)
    require(plain, "the textbook loop has rotary positions and plain scores, as the paper has")
    blocks = next(part.times for part in parts if isinstance(part, Repeat))
    mlp = next(part.factor for part in parts if isinstance(part, Mlp))
    return Shape(model.name, model.width, blocks, attention.heads, mlp)


def _parts(part: object) -> Iterator[object]:
    """A part and all inside it."""
    yield part
    for field in fields(part) if is_dataclass(part) and not isinstance(part, type) else ():
        inside = getattr(part, field.name)
        for each in inside if isinstance(inside, tuple) else (inside,):
            yield from _parts(each)
