"""Extrapolation by association: does addition reach further because its halves were trained on longer numbers?

Claim: trained on sums of 1…16 digits together with no-carry and carry-only sums of 1…32, a transformer with rotary positions
has more sums of 32 digits right than one that was trained on sums of 1…16 alone, in the median of five seeds, at equal compute.

Ours and theirs (*Extrapolation by Association*, arXiv 2506.09251): sums are written with the last digit first, a mixture has
the three tasks one to one to one, with tags, as theirs. Theirs is a Llama of 6 layers, width 384, with rotary base 1e5, 100,000
steps of 1,024; ours is smaller and trained shorter. Equal compute is as many tokens, those of helpers included: whoever has no
long helpers makes more steps. The helpers' reach at n = 32 is inside their own training range, and beyond it at 48.

Cost: 3 runs a seed, of 10,000 to 15,100 steps of 256 samples (gpu); 2 small ones a seed of 5,000 and 6,200 steps of 64,
some minutes each on one core (cpu: sums of 1…3 digits, helpers of 1…6, measured to 9).
Command: lengthlab reproduce association
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, At, Check, Claim, Section, Study
from lengthlab.store.rows import ALL

if TYPE_CHECKING:
    from lengthlab.spec.run import Run
    from lengthlab.tasks import Task

GPU = Size("gpu", (1, 16), (16, 20, 24, 28, 32, 48), gpu=True)
CPU = Size("cpu", (1, 3), (3, 4, 5, 6, 9))
BASE = 1e5
"""Of rotary positions."""
WAYS = {
    "alone": (1.0, 0.0, 0.0),
    "short": (1.0, 1.0, 1.0),
    "long": (1.0, 1.0, 1.0),
}
"""The shares of sums, no-carry and carry-only sums."""
LABELS = {"alone": "sums alone", "short": "helpers as short as sums", "long": "helpers twice as long"}


@dataclass(frozen=True)
class Recipe:
    """`steps` are those of the mixture with long helpers."""

    size: Size
    width: int
    blocks: int
    heads: int
    steps: int
    batch: int
    lr: float

    def task(self, way: str) -> Task:
        """All arms have the tag and the words of all three tasks; of sums alone the helpers have no share."""
        from lengthlab.tasks import Addition, CarryOnly, Mixture, NoCarry

        longest = self._helpers(way)
        own = ((), (1, longest), (1, longest))
        return Mixture((Addition(), NoCarry(), CarryOnly()), WAYS[way], lengths=own, measured=(1, 0, 0))

    def _helpers(self, way: str) -> int:
        return self.size.trained[1] * (2 if way == "long" else 1)

    def steps_of(self, way: str) -> int:
        """So many that every arm reads as many tokens, a multiple of 100.

        >>> [RECIPES["gpu"].steps_of(way) for way in WAYS]
        [15100, 15100, 10000]
        """
        return 100 * round(self.steps * self._tokens("long") / self._tokens(way) / 100)

    def _tokens(self, way: str) -> float:
        """Of a sample, on average: the tag, two numbers and a sum of n digits each, and five others."""
        lengths = (self.size.trained[1], self._helpers(way), self._helpers(way))
        each = [6 + 3 * (1 + longest) / 2 for longest in lengths]
        return sum(share * tokens for share, tokens in zip(WAYS[way], each, strict=True)) / sum(WAYS[way])

    def run(self, way: str) -> Run:
        from lengthlab.models import llama
        from lengthlab.spec.optimizer import AdamW
        from lengthlab.spec.rate import Cosine
        from lengthlab.spec.run import Run
        from lengthlab.spec.schedule import end_to_end

        steps = self.steps_of(way)
        model = llama(self.width, self.blocks, self.heads, base=BASE, factor=1.0)
        schedule = end_to_end(steps, lr=Cosine(self.lr, steps // 20, last=self.lr / 10))
        optimizer = AdamW(beta2=0.98, decay=0.0, clip=1.0)
        return Run(self.task(way), model, schedule, self.size.trained, self.batch, optimizer=optimizer)


RECIPES = {
    "gpu": Recipe(GPU, width=256, blocks=4, heads=4, steps=10_000, batch=256, lr=1e-3),
    "cpu": Recipe(CPU, width=64, blocks=2, heads=2, steps=5_000, batch=64, lr=1e-3),
}


def way_arm(way: str) -> Arm:
    """
    >>> str(way_arm("long"))
    'helpers twice as long'
    """
    return Arm(way, "llama", "addition+no-carry+carry-only", "end-to-end", LABELS[way], (("mixture", LABELS[way]),))


def run(arm: Arm, size: str) -> Run:
    """The run of an arm."""
    return RECIPES[size].run(arm.name)


ALONE, SHORT, LONG = (way_arm(way) for way in WAYS)


def _further(far: int, size: str, section: str) -> Claim:
    return Claim(
        "With long helpers, sums are right at a length where none was trained.",
        f"at {far} digits, with helpers twice as long above sums alone, in the median of seeds",
        (Check(LONG, far, ">", At(arm=ALONE)),),
        section=section,
        size=size,
        by="median",
    )


ASSOCIATION = Study(
    name="association",
    title="Extrapolation by association",
    question="How far does addition reach where its halves are trained on longer numbers?",
    run=run,
    sizes=(GPU, CPU),
    sections=(
        Section("association", "Sums right, by digits", (ALONE, SHORT, LONG), questions=(ALL,), sizes=(GPU,)),
        Section("small", "Sums right, by digits, on two cores", (ALONE, LONG), questions=(ALL,), sizes=(CPU,)),
    ),
    seeds=5,
    claims=(
        _further(32, "gpu", "association"),
        Claim(
            "It is their length that does it.",
            "at 32 digits, with helpers twice as long above helpers as short as sums, in the median of seeds",
            (Check(LONG, 32, ">", At(arm=SHORT)),),
            section="association",
            size="gpu",
            by="median",
        ),
        _further(6, "cpu", "small"),
    ),
    note="Measured are sums alone, of two numbers that have all n digits. Of the paper's results only what its code and notes "
    "say is known to us (twice as far, and very different from seed to seed), so that no number of theirs stands beside ours.",
    about=__doc__,
    success=0.95,
)
