"""Long memory and state in one model: sum and recall over a hundred thousand pairs, after training on at most 25.

Claim: an LSTM with hierarchical sparse attention, delayed, trained on n = 1…25, has both questions right in at least 0.99 of
the samples at n = 100,000, 4,000 times its training length. That is an aim: nobody has measured it yet. A small one, trained on
n = 1…10 on two cores with sums modulo 2, has both right in 0.80 at n = 160.

A key is one token of 131,072 (on two cores of 1,024): of keys of two tokens the small model read the last one. The same with
attention that reads everything (no positions, log-n scores: the recipe of `far`) stands beside it, and both end to end. After
4,000 joint steps (1,000), when recall should have set in, the memory of a sample also holds the chunks of 15 others (7): no
sequence is longer for it, but attention has chosen among that many.

Cost: 4 runs a seed of at most 13,000 steps (gpu); 2 small ones a seed of at most 4,250 (cpu: measured to n = 640).
Command: lengthlab reproduce long-memory
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, At, Check, Claim, Section, Study

if TYPE_CHECKING:
    from lengthlab.models import Model
    from lengthlab.spec.run import Run
    from lengthlab.spec.schedule import Schedule

MODELS = {"hsa": ("lstm-hsa", "hierarchical sparse attention"), "attention": ("hybrid-block", "attention, log-n")}
TRAININGS = ("delayed", "end-to-end")
LOCAL = 2
"""Attention over so many last tokens comes first, so that chunks tell which key stood before a value."""


@dataclass(frozen=True)
class Scale:
    """`first` at most: the delay ends when the sum is mastered at so many `times` the range, and after `settle` more, in which the
    rate falls to nothing. A query reads `chunks` of `chunk` tokens. After `joint` come `crowded` steps with the chunks of `others` in the
    memory, as many samples, which stay for the `last`.
    """

    size: Size
    modulus: int
    keys: int
    width: int
    heads: int
    chunk: int
    chunks: int
    batch: int
    lr: float
    times: int
    first: int
    settle: int
    joint: int
    last: int
    crowded: int
    others: int

    def model(self, name: str) -> Model:
        from lengthlab.models import hybrid_block, lstm_hsa

        if name == "hsa":
            sized = partial(lstm_hsa, self.width, heads=self.heads, chunk=self.chunk, chunks=self.chunks)
            return sized(weights="softmax", encoder=0, local=LOCAL)
        return hybrid_block(self.width, blocks=1, heads=self.heads, positions="none", scores="log-n", local=LOCAL)

    def schedule(self, name: str, training: str) -> Schedule:
        """As many steps either way, at most. Once attention is open, all else is held still. Attention without a memory of
        chunks has the same, uncrowded.
        """
        from lengthlab.spec.schedule import Mastered, delayed, end_to_end

        if training == "delayed":
            first = Mastered("modulo", times=self.times, limit=self.first)
            made = delayed(first, self.joint, self.last, self.lr, slowed=0.0, settle=self.settle)
        else:
            made = end_to_end(self.first + self.settle + self.joint, self.last, self.lr)
        *before, joint, last = made.phases
        others = self.others if name == "hsa" else 0
        crowded = replace(joint, length=self.crowded, distractors=others)
        return replace(made, phases=(*before, joint, crowded, replace(last, distractors=others)))


GPU = Size("gpu", (1, 25), (25, 100, 400, 1000, 4000, 20_000, 100_000), gpu=True)
CPU = Size("cpu", (1, 10), (10, 40, 160, 640))
SCALES = {
    "gpu": Scale(GPU, modulus=10, keys=131_072, width=256, heads=2, chunk=4, chunks=8, batch=512, lr=6e-4,
                 times=4, first=4_000, settle=2_000, joint=2_500, last=1_000, crowded=2_500, others=63),
    "cpu": Scale(CPU, modulus=2, keys=1024, width=64, heads=2, chunk=2, chunks=4, batch=64, lr=2e-3,
                 times=2, first=1_250, settle=500, joint=1_000, last=500, crowded=1_500, others=7),
}  # fmt: skip
"""On two cores, recall is what is hard. All that follows is of seeds 100 and 101, which are not published, on 500 samples.

Keys of two tokens are found by their last one: after 1,400 joint steps of seed 100 (32 letters), recall at n = 10 was right
in 0.99 where no other pair had the same last token and in 0.63 where one had; the first one made no such difference. At
n = 160 that left 0.36. 1,000 steps more with 7 distractors had 0.74 there, with n up to 20 instead 0.61; as many with neither
were not tried. 7 distractors as soon as attention opened: 0.20 after 1,400 joint steps. With 64 letters, 1,000 joint steps,
1,500 with 7 distractors, 1,500 with 15 and 600 at a tenth, both were right at n = 10, 160 and 640 in 1.00, 0.96 and 0.87 on
seed 100 and in 0.96, 0.52 and 0.28 on seed 101, which still went by the last token. Keys of one token were tried because of
that, and chosen for their worse seed: both were right at n = 10, 160 and 640 in 0.98, 0.90 and 0.78 on seed 101. On seed 100
it was stopped after 2,500 of its 3,600 steps, the delay's included: 0.99, 0.85 and 0.68. The sum is then what slips (0.94 at
n = 160 on seed 101). Not tried on these seeds: end to end.
"""


def pairs_arm(model: str, training: str) -> Arm:
    """
    >>> str(pairs_arm("hsa", "delayed"))
    'LSTM, hierarchical sparse attention, delayed'
    """
    kind, told = MODELS[model]
    label = f"LSTM, {told}, {training.replace('-', ' ')}"
    return Arm(model, kind, "modulo-recall", training, label, (("attention", told),))


def run(arm: Arm, size: str) -> Run:
    """The run of an arm."""
    from lengthlab.spec.optimizer import Adam
    from lengthlab.spec.run import Run
    from lengthlab.tasks import ModuloRecall

    scale = SCALES[size]
    task = ModuloRecall(scale.modulus, keys=scale.keys)
    model, schedule = scale.model(arm.name), scale.schedule(arm.name, arm.training)
    return Run(task, model, schedule, scale.size.trained, scale.batch, optimizer=Adam(clip=1.0))


ARMS = tuple(pairs_arm(model, training) for model in MODELS for training in TRAININGS)
DELAYED, END_TO_END, *_ = ARMS
SMALL = (DELAYED, END_TO_END)

LONG_MEMORY = Study(
    name="long-memory",
    title="State and recall over a hundred thousand pairs",
    question="How far does one model keep the paper's two skills if its attention reads a few chunks alone?",
    run=run,
    sizes=(GPU, CPU),
    sections=(
        Section("pairs", "Accuracy by length", ARMS, sizes=(GPU,)),
        Section("small", "On two cores, sums modulo 2", SMALL, sizes=(CPU,)),
    ),
    seeds=3,
    claims=(
        Claim(
            "One model keeps both skills to 4,000 times its training length.",
            "both right in at least 0.99 at n = 100,000",
            (Check(DELAYED, 100_000, "≥", 0.99),),
            section="pairs",
            size="gpu",
        ),
        Claim(
            "Without the delay it does not.",
            "end to end, both right in less at n = 1000",
            (Check(END_TO_END, 1000, "<", At(arm=DELAYED)),),
            section="pairs",
            size="gpu",
        ),
        Claim(
            "A small one, trained on two cores, keeps them to 16 times.",
            "both right in at least 0.80 at n = 160",
            (Check(DELAYED, 160, "≥", 0.80),),
            section="small",
            size="cpu",
        ),
        Claim(
            "Without the delay, the small one does not.",
            "end to end, both right in at most 0.60 at n = 160, and in less than delayed",
            (Check(END_TO_END, 160, "≤", 0.60), Check(END_TO_END, 160, "<", At(arm=DELAYED))),
            section="small",
            size="cpu",
        ),
    ),
    note="A length n counts pairs: two tokens each, a key and its value.",
    about=__doc__,
    page="docs/long-memory/long-memory.md",
)
