"""Hard states: what keeps the product of a group when attention opens beside it?

Claim: with the recurrence slowed to a twentieth of its rate once attention is open, and everything else left free, an LSTM
hybrid has product and recall right, in the mean of three seeds, in at least 0.99 of the samples for S3 at 40 times its training
length, 0.95 for S4 at 4 times and 0.90 at 40, 0.95 for Z60 at 40, and 0.95 for A5 at 2 times. Sums modulo 10 are no worse for
it. Where the product is also asked at every token before, A5 is to be right in 0.90 at 40 times: that is an aim.

Cost: 16 runs a seed of 6,500 joint steps after a first phase of 800 to 24,000 (gpu, in parts: `--part ways`, `groups`,
`modulo`), 4 more with `--part harder`, after up to 24,000; 3 small ones a seed, five minutes each on one core (cpu: S3,
n = 1…10, measured to 160).
Command: lengthlab reproduce hard-states
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, At, Check, Claim, Section, Study

if TYPE_CHECKING:
    from lengthlab.models import Model
    from lengthlab.spec.rate import Slowed
    from lengthlab.spec.run import Run
    from lengthlab.spec.schedule import Covers, Schedule
    from lengthlab.tasks import Task

WAYS: dict[str, tuple[str, Slowed]] = {
    "open": ("all at full rates", 1.0),
    "all slowed": ("all but attention slowed", 0.05),
    "all held": ("all but attention held still", 0.0),
    "recurrence slowed": ("recurrence slowed", {"lstm": 0.05}),
    "recurrence held": ("recurrence held still", {"lstm": 0.0}),
    "silent": ("recurrence slowed, attention silent at first", {"lstm": 0.05}),
    "watched": ("recurrence slowed while its state slips", 1.0),
    "dense": ("recurrence slowed, the product asked at every token before", {"lstm": 0.05}),
}
"""How a reader knows each, and by what rates are multiplied once attention is open, whatever happens."""
SLIPPED = {"lstm": 0.05}
"""By what they are while the state slips, where it is watched."""
KEPT = "recurrence slowed"
"""The way that the claims are about."""


@dataclass(frozen=True)
class State:
    """How the first phase learns it: it ends when the product is mastered at so many `times` the range, at `limit` at last."""

    times: int
    limit: int
    lr: float = 6e-4


STATES = {"S3": State(4, 4_000), "S4": State(4, 6_000), "Z60": State(2, 12_000), "A5": State(2, 24_000, 3e-4)}
SUMS = State(2, 3_000)
"""Of modulo 10."""


@dataclass(frozen=True)
class Scale:
    """The rates of attention, and of all else until that is open, are those of the state."""

    size: Size
    width: int
    keys: int
    batch: int
    joint: int
    last: int

    def task(self, state: str, way: str) -> Task:
        """Where it is `dense`, half of the samples of the first phase ask the product at every token."""
        from lengthlab.tasks import GroupRecall, Mixture, ModuloRecall, RunningProduct

        main = ModuloRecall(keys=self.keys) if state == "modulo 10" else GroupRecall(state, self.keys)
        if way != "dense":
            return main
        return Mixture((main, RunningProduct(state, self.keys)), tag=False, measured=(1, 0))

    def model(self, way: str) -> Model:
        from lengthlab.models import hybrid_block

        return hybrid_block(self.width, blocks=1, heads=2, positions="none", scores="log-n", silent=way == "silent")

    def schedule(self, state: State, way: str, lr: float = 6e-4) -> Schedule:
        """With `silent`, the norms of attention stay on, so that opening it changes nothing at first."""
        from lengthlab.spec.schedule import Mastered, delayed
        from lengthlab.spec.slips import Slips

        first = Mastered(times=state.times, limit=state.limit)
        covers: Covers = "sublayers" if way == "silent" else "part"
        slips = Slips(SLIPPED, times=state.times) if way == "watched" else None
        made = delayed(first, self.joint, self.last, lr, first_lr=state.lr, covers=covers, slowed=WAYS[way][1], slips=slips)
        if way != "dense":
            return made
        alone, *opened = made.phases
        return replace(made, phases=(alone, *(replace(phase, mixture=(1, 0)) for phase in opened)))


GPU = Size("gpu", (1, 25), (25, 50, 100, 400, 1000), gpu=True)
CPU = Size("cpu", (1, 10), (10, 20, 40, 160))
SCALES = {
    "gpu": Scale(GPU, width=256, keys=1024, batch=1024, joint=5_000, last=1_500),
    "cpu": Scale(CPU, width=128, keys=160, batch=128, joint=6_000, last=500),
}
ON_TWO_CORES = State(2, 2_000, 2e-3)
"""Chosen on seed 100, which is not published. With 2,000 joint steps recall was not learned at the slowed rates: both were
right at n = 10 in 1.00 at full rates, in 0.72 with the recurrence slowed, in 0.49 with all but attention slowed. With 6,000
they were right there in 0.995 and more, and at n = 160 in 0.98, 0.92 and 0.90: full rates keep S3, which is an easy group. S4
with the same steps, after a first phase of 8,000, had its product in 0.99 at n = 10 and recall in 0.2 either way, so that it
is not trained at this size.
"""


def state_arm(state: str, way: str) -> Arm:
    """
    >>> str(state_arm("S4", "all held"))
    'S4, all but attention held still'
    """
    task = "modulo-recall" if state == "modulo 10" else "group-recall" + "+running-product" * (way == "dense")
    about = (("state", state), ("once attention is open", WAYS[way][0]))
    return Arm(f"{state}, {way}", "hybrid-block", task, "delayed", f"{state}, {WAYS[way][0]}", about)


def run(arm: Arm, size: str) -> Run:
    """The recipe of `far` with batches of 1,024, with another state."""
    from lengthlab.spec.run import Run

    (name, way), scale = arm.name.split(", "), SCALES[size]
    state = SUMS if name == "modulo 10" else STATES[name]
    schedule = scale.schedule(ON_TWO_CORES, way, ON_TWO_CORES.lr) if size == "cpu" else scale.schedule(state, way)
    return Run(scale.task(name, way), scale.model(way), schedule, scale.size.trained, scale.batch)


WAY_ARMS = tuple(state_arm("S4", way) for way in WAYS)
GROUP_ARMS = tuple(state_arm(state, way) for state in ("S3", "Z60", "A5") for way in ("open", KEPT))
HARDER_ARMS = tuple(state_arm(state, way) for state in ("Z60", "A5") for way in ("dense", "watched"))
SUM_ARMS = tuple(state_arm("modulo 10", way) for way in ("open", KEPT))
SMALL = tuple(state_arm("S3", way) for way in ("open", "all slowed", KEPT))


def _bar(state: str, bars: dict[int, float], section: str) -> Claim:
    told = " and ".join(f"{bar:.2f} at {length // 25} times" for length, bar in bars.items())
    return Claim(
        f"With the recurrence slowed, {state} and recall are kept.",
        f"both right in at least {told}",
        tuple(Check(state_arm(state, KEPT), length, "≥", bar) for length, bar in bars.items()),
        section=section,
        size="gpu",
    )


HARD_STATES = Study(
    name="hard-states",
    title="Hard states under attention",
    question="What keeps the state of a recurrence that is hard to learn when attention opens beside it?",
    run=run,
    sizes=(GPU, CPU),
    sections=(
        Section("ways", "S4: what is slowed once attention is open", WAY_ARMS, sizes=(GPU,)),
        Section("groups", "Other groups", GROUP_ARMS, sizes=(GPU,)),
        Section("modulo", "An easy state: sums modulo 10", SUM_ARMS, sizes=(GPU,)),
        Section(
            "harder",
            "Other groups: asked at every token, or watched",
            HARDER_ARMS,
            "Watched: the recurrence is slowed only while its state slips.",
            usual=False,
            sizes=(GPU,),
        ),
        Section("small", "S3, on two cores", SMALL, sizes=(CPU,)),
    ),
    seeds=3,
    claims=(
        _bar("S3", {1000: 0.99}, "groups"),
        _bar("S4", {100: 0.95, 1000: 0.90}, "ways"),
        _bar("Z60", {1000: 0.95}, "groups"),
        _bar("A5", {50: 0.95}, "groups"),
        Claim(
            "Asked at every token before, A5 and recall are kept to 40 times: an aim.",
            "both right in at least 0.90 at 40 times",
            (Check(state_arm("A5", "dense"), 1000, "≥", 0.90),),
            section="harder",
            size="gpu",
        ),
        Claim(
            "At full rates S4 is lost.",
            "both right in less at 4 and at 40 times than with the recurrence slowed",
            tuple(Check(state_arm("S4", "open"), length, "<", At(arm=state_arm("S4", KEPT))) for length in (100, 1000)),
            section="ways",
            size="gpu",
        ),
        Claim(
            "An easy state is no worse for it.",
            "sums modulo 10: both right in at least 0.97 at 40 times, which is what `far` asks for",
            (Check(state_arm("modulo 10", KEPT), 1000, "≥", 0.97),),
            section="modulo",
            size="gpu",
        ),
        Claim(
            "On two cores, S3 and recall are kept, slowed or not.",
            "both right in at least 0.90 at 4 times, whatever is slowed",
            tuple(Check(arm, 40, "≥", 0.90) for arm in SMALL),
            section="small",
            size="cpu",
        ),
    ),
    note="A length n counts pairs of a key and an element. Slowed: at a twentieth of the rate.",
    about=__doc__,
    page="docs/recurrences/hard-states.md",
)
