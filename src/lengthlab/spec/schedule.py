"""When what learns: a schedule is a row of phases, each with its length, its learning rates, the parts that are off and the
questions that count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Literal

from lengthlab.errors import a_kind, require, require_names, require_number, require_whole
from lengthlab.gradual import Gradual
from lengthlab.registry import name_of, register
from lengthlab.spec.duration import Duration as Duration
from lengthlab.spec.duration import Epochs as Epochs
from lengthlab.spec.duration import Mastered as Mastered
from lengthlab.spec.duration import check_length
from lengthlab.spec.duration import epochs as epochs
from lengthlab.spec.rate import AnyRate, Falling, LearningRate, Rate, Slowed, divided, slowed_by, to_nothing
from lengthlab.spec.slips import Slips, check_slowed
from lengthlab.store.phases import EPOCH

Covers = Literal["part", "sublayers", "function"]
OFF: dict[Covers, tuple[str, ...]] = {"part": ("attention",), "sublayers": ("attend", "mlp"), "function": ("attend",)}
"""What "deactivate the attention modules" covers: the whole attention part, all of it but the norms, or the attention
function alone.
"""


STATE = ("<state>",)
"""Asked by a phase: what the task calls its state (`Task.state`)."""


@dataclass(frozen=True)
class Phase:
    """`off`: names of parts that are switched off. `asks`: questions that count in the loss; none named means all, `STATE` what
    the task calls its state. `lengths`: those of the sequences, where they are not the run's. `mixture`: the shares of the
    tasks of a mixture, where they are not its own; `mixture_lengths` their lengths, a pair or nothing for each. `opens`: how
    attention opens meanwhile, layer by layer, by chance or through a window, where it is neither off nor on. `distractors`: the
    memory of chunks of a sample also holds those of so many other samples of the batch, as if they had been read before it; the
    recurrence begins each sample afresh (after Hu et al. 2025, arXiv 2504.16795, who train on samples in a row so). `slips`:
    rates that are lower while a question is right too seldom.
    """

    length: Duration
    lr: LearningRate = 1e-4
    off: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    lengths: tuple[int, int] | None = field(default=None, metadata={"added": "0.2"})
    mixture: tuple[float, ...] = field(default=(), metadata={"added": "0.2"})
    opens: Gradual | None = field(default=None, metadata={"added": "0.3"})
    mixture_lengths: tuple[tuple[int, ...], ...] = field(default=(), metadata={"added": "0.3"})
    distractors: int = field(default=0, metadata={"added": "0.3"})
    slips: Slips | None = field(default=None, metadata={"added": "0.3"})

    def __post_init__(self) -> None:
        require_names(self.off, "off")
        require_names(self.asks, "asks")
        pair = self.lengths is None or (isinstance(self.lengths, (list, tuple)) and len(self.lengths) == 2)
        require(pair, f"the lengths of a phase must be [shortest, longest], not {self.lengths!r}")
        shares = isinstance(self.mixture, (list, tuple))
        require(shares, f"the mixture of a phase must be a list of shares, one a task, not {self.mixture!r}")
        for share in self.mixture:
            require_number(share, "a share of a mixture", least=0)
        own = self.mixture_lengths
        pairs = isinstance(own, (list, tuple)) and all(isinstance(each, (list, tuple)) for each in own)
        require(pairs, f"the mixture_lengths of a phase must be [shortest, longest] or [] for each task, not {own!r}")
        require_whole(self.distractors, "the distractors of a phase", 0)
        gradual = self.opens is None or isinstance(self.opens, Gradual)
        require(gradual, f"opens must be a Layers, Chance or Window of lengthlab.gradual, not {a_kind(self.opens)}")
        require(not (self.off and self.opens), "a phase has parts that are off, or that open, not both: leave out off or opens")
        lr = self.lr
        lr = {part: _rate(rate) for part, rate in lr.items()} if isinstance(lr, Mapping) else _rate(lr)
        lengths = None if self.lengths is None else tuple(self.lengths)
        lists = {"off": tuple(self.off), "asks": tuple(self.asks), "mixture": tuple(map(float, self.mixture))}
        plain = {"lr": lr, "lengths": lengths, "mixture_lengths": tuple(map(tuple, own))}
        for name, value in (lists | plain).items():
            object.__setattr__(self, name, value)  # 1 and 1.0, list and tuple are one content
        if not isinstance(self.length, (Epochs, Mastered)):
            check_length("length", self.length)
        if isinstance(self.lr, Mapping):
            require("rest" in self.lr, "schedule.lr by part needs a 'rest', the learning rate of everything not named")

    @property
    def rates(self) -> dict[str, AnyRate]:
        """Learning rate by part; `rest` is always there."""
        return self.rates_if(slipped=False)

    def rates_if(self, slipped: bool) -> dict[str, AnyRate]:
        """The same, with what the phase is watched for right, or slipped."""
        lr = slowed_by(self.lr, self.slips.by) if self.slips and slipped else self.lr
        return dict(lr) if isinstance(lr, Mapping) else {"rest": lr}

    @property
    def rated(self) -> list[str]:
        """The parts that have a rate of their own, now or later."""
        return sorted({*self.rates, *self.rates_if(slipped=True)} - {"rest"})

    def resolved(self, state: Sequence[str]) -> Phase:
        """With questions in place of what was left to the task, whose state these are."""
        asks = tuple(state) if self.asks == STATE else self.asks
        require(self.asks != STATE or bool(asks), "the task names no state, so say what the first phase asks: schedule.asks")
        length = self.length
        if isinstance(length, Mastered) and not length.question:
            known = [question for question in state if not asks or question in asks] or asks
            require(bool(known), "the task names no state, so say which question is to be mastered, or how long it takes")
            length = replace(length, question=known[0])
        slips = self.slips
        if slips and not slips.question:
            known = [question for question in state if not asks or question in asks]
            require(bool(known), "the task names no state that the phase asks, so say which question may slip: slips.question")
            slips = replace(slips, question=known[0])
        return replace(self, length=length, asks=asks, slips=slips)

    def steps_at(self, batch: int) -> int:
        """How many steps; at most, where training itself decides."""
        if isinstance(self.length, Mastered):
            return self.length.limit
        return ceil(self.length.number * EPOCH / batch) if isinstance(self.length, Epochs) else self.length


@dataclass(frozen=True)
class Schedule:
    """A name for the tables and the phases in order."""

    name: str
    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        phases = isinstance(self.phases, (list, tuple)) and all(isinstance(each, Phase) for each in self.phases)
        require(phases, f"the phases of a schedule are a list of Phase, not {self.phases!r}")
        require(len(self.phases) >= 1, "a schedule has at least one phase")

    def resolved(self, state: Sequence[str]) -> Schedule:
        """For a task whose state these questions are."""
        return replace(self, phases=tuple(phase.resolved(state) for phase in self.phases))


def end_to_end(
    joint: Duration = Epochs(500),
    last: Duration = 0,
    lr: LearningRate = 1e-4,
    last_lr: LearningRate | None = None,
) -> Schedule:
    """Everything on from the first step: `joint` at `lr`, then `last` at `last_lr` (a tenth of `lr` if not given).

    The paper: 500 epochs at 1e-4, then 1e-5; it does not say for how long.

    >>> [phase.rates for phase in end_to_end(5_000, last=500).phases]
    [{'rest': 0.0001}, {'rest': 1e-05}]
    """
    return Schedule("end-to-end", _joint(joint, last, lr, last_lr))


def delayed(
    first: Duration | None = None,
    joint: Duration = Epochs(500),
    last: Duration = 0,
    lr: LearningRate = 1e-4,
    first_lr: LearningRate | None = None,
    last_lr: LearningRate | None = None,
    asks: tuple[str, ...] = STATE,
    covers: Covers = "part",
    slowed: Slowed = 1.0,
    slips: Slips | None = None,
    settle: int | Epochs = 0,
) -> Schedule:
    """Attention is off for `first` and the recurrence is asked `asks` alone, which is what the task calls its state if it is
    not said; then as end to end.

    If `first` is not given, training decides: attention opens when the first of `asks` is mastered. Then nothing
    has to be guessed; a longer delay may do better (`lengthlab reproduce plateau`).

    The paper: 1500 epochs of the recurrence at 1e-4, then 500 with attention at 1e-4, then 1e-5. It does not say what the
    recurrence is asked at first; asked `modulo` alone, recall comes up soon after attention is opened. `covers` says what is
    off: the whole attention part, so that the recurrence speaks to the head (`part`); attention and MLP in each of its
    blocks, whose norms stay (`sublayers`); or the attention function inside its blocks (`function`).

    With `settle`, attention stays off for so many steps more, in which the rate of the first phase falls to nothing, so that
    the state is more precise when attention opens.

    A state that is hard to learn may be lost again once attention learns beside it at full rates. `slowed` is by what the rates
    of everything but attention are multiplied then, 0 holding it still; or, by the names of parts, theirs alone, so that
    `{"lstm": 0.05}` slows the recurrence and leaves the embedding free. With `slips` the state is looked at on
    the way, and slowed is what that says, only while the state is right too seldom.

    >>> [phase.rates for phase in delayed(2_000, joint=16_000, lr=1e-3, slowed={"lstm": 0.5}).phases]
    [{'rest': 0.001}, {'rest': 0.001, 'lstm': 0.0005}]
    >>> [phase.rates for phase in delayed(2_000, joint=16_000, lr=1e-3, settle=500).phases][1]
    {'rest': Linear(peak=0.001, warm_up=0, last=0.0)}
    >>> import lengthlab as ll
    >>> task, model = ll.tasks.ModuloRecall(), ll.models.hybrid_block(width=16)
    >>> first = ll.Run(task, model, delayed(2_000, joint=16_000)).schedule.phases[0]
    >>> first.length, first.lr, first.off, first.asks
    (2000, 0.0001, ('attention',), ('modulo',))
    >>> ll.Run(task, model, delayed(joint=16_000)).schedule.phases[0].length
    Mastered(question='modulo', accuracy=0.99, times=1, looks=3, every=100, limit=20000)
    """
    require_names(asks, "schedule.asks")
    require(first is not None or bool(asks), "schedule.first: say how long; with all questions asked none is to be mastered")
    first = Mastered("" if asks == STATE else asks[0]) if first is None else first
    require(covers in tuple(OFF), f"schedule.covers must be 'part', 'sublayers' or 'function', not '{covers}'")
    check_length("first", first)
    alone = Phase(first, lr if first_lr is None else first_lr, off=OFF[covers], asks=tuple(asks))
    settled = _settling(alone, settle)
    check_slowed(slowed, "schedule.slowed")
    joint_phases = _joint(joint, last, lr, last_lr)
    opened = (replace(each, lr=slowed_by(each.lr, slowed), slips=slips) for each in joint_phases)
    return Schedule("delayed", (alone, *settled, *opened))


def _settling(alone: Phase, settle: int | Epochs) -> tuple[Phase, ...]:
    counted = not isinstance(settle, Mastered)
    require(counted, "schedule.settle is a number of steps, or epochs: its rate falls over all of them")
    check_length("settle", settle, least=0)
    if not settle:
        return ()
    falls = any(isinstance(rate, Falling) for rate in alone.rates.values())
    require(not falls, "schedule.settle lets the rate of the first phase fall, which falls by itself: leave out one of them")
    return (replace(alone, length=settle, lr=to_nothing(alone.lr)),)


def opening(
    opens: Gradual,
    first: Duration,
    joint: Duration = Epochs(500),
    last: Duration = 0,
    lr: LearningRate = 1e-4,
    first_lr: LearningRate | None = None,
    last_lr: LearningRate | None = None,
    asks: tuple[str, ...] = (),
) -> Schedule:
    """Attention opens over `first`: layer by layer, by chance, or through a window that grows; then as end to end.

    All questions are asked from the start, unless `asks` says otherwise, because attention has its part from the start.

    >>> from lengthlab.gradual import Chance
    >>> schedule = opening(Chance(0.25), first=2_000, joint=16_000)
    >>> schedule.name, [phase.length for phase in schedule.phases]
    ('by-chance', [2000, 16000])
    """
    require_names(asks, "schedule.asks")
    require(isinstance(opens, Gradual), f"schedule.opens must be a Layers, Chance or Window, not {a_kind(opens)}")
    check_length("first", first)
    alone = Phase(first, lr if first_lr is None else first_lr, asks=tuple(asks), opens=opens)
    return Schedule(f"by-{name_of(Gradual, opens)}", (alone, *_joint(joint, last, lr, last_lr)))


def _joint(joint: Duration, last: Duration, lr: LearningRate, last_lr: LearningRate | None) -> tuple[Phase, ...]:
    check_length("joint", joint)
    check_length("last", last, least=0)
    phases = (Phase(joint, lr),)
    return phases if last == 0 else (*phases, Phase(last, divided(lr, 10) if last_lr is None else last_lr))


def _rate(rate: AnyRate) -> AnyRate:
    if isinstance(rate, Rate):
        return rate
    require_number(rate, "schedule.lr", least=0)
    return float(rate)


register(Schedule, "end-to-end", end_to_end)
register(Schedule, "delayed", delayed)
register(Schedule, "opening", opening)
register(Schedule, "schedule", Schedule)
register(Phase, "phase", Phase)
