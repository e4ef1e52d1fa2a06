"""Long memory and state in one model: sum and recall over a hundred thousand pairs, after training on at most 25.

Claim: an LSTM with hierarchical sparse attention, delayed, trained on n = 1…25, has both questions right in at least 0.99 of
the samples at n = 100,000, 4,000 times its training length. That is an aim: nobody has measured it yet. A small one, trained on
n = 1…10 on two cores with sums modulo 2, has both right in 0.80 at n = 160.

A key is two tokens of an alphabet of 512, so that there are 262,144 of them. The same with attention that reads everything
(no positions, log-n scores: the recipe of `far`) stands beside it, and both end to end.

Cost: 4 runs a seed of at most 13,000 steps (gpu); 2 small ones a seed (cpu: measured to n = 640).
Command: lengthlab reproduce long-memory
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, At, Check, Claim, Section, Study

if TYPE_CHECKING:
    from lengthlab.models import Model
    from lengthlab.spec.run import Run
    from lengthlab.spec.schedule import Schedule

MODELS = {"hsa": ("lstm-hsa", "hierarchical sparse attention"), "attention": ("hybrid-block", "attention, log-n")}
TRAININGS = ("delayed", "end-to-end")


@dataclass(frozen=True)
class Scale:
    """`first` at most: the delay ends when the sum is mastered at twice the range. A query reads `chunks` of `chunk` tokens."""

    size: Size
    modulus: int
    keys: int
    width: int
    heads: int
    chunk: int
    chunks: int
    batch: int
    lr: float
    first: int
    joint: int
    last: int

    def model(self, name: str) -> Model:
        from lengthlab.models import hybrid_block, lstm_hsa

        if name == "hsa":
            return lstm_hsa(self.width, heads=self.heads, chunk=self.chunk, chunks=self.chunks)
        return hybrid_block(self.width, blocks=1, heads=self.heads, positions="none", scores="log-n")

    def schedule(self, training: str) -> Schedule:
        """As many steps either way, at most."""
        from lengthlab.spec.schedule import Mastered, delayed, end_to_end

        if training == "delayed":
            return delayed(Mastered("modulo", times=2, limit=self.first), self.joint, self.last, self.lr)
        return end_to_end(self.first + self.joint, self.last, self.lr)


GPU = Size("gpu", (1, 25), (25, 100, 400, 1000, 4000, 20_000, 100_000), gpu=True)
CPU = Size("cpu", (1, 10), (10, 40, 160, 640))
SCALES = {
    "gpu": Scale(GPU, modulus=10, keys=512, width=256, heads=2, chunk=8, chunks=4, batch=512, lr=6e-4,
                 first=3_000, joint=8_000, last=2_000),
    "cpu": Scale(CPU, modulus=2, keys=32, width=64, heads=2, chunk=4, chunks=2, batch=64, lr=2e-3,
                 first=1_250, joint=3_000, last=500),
}  # fmt: skip


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
    task = ModuloRecall(scale.modulus, keys=scale.keys, key_tokens=2)
    model, schedule = scale.model(arm.name), scale.schedule(arm.training)
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
    ),
    note="A length n counts pairs: three tokens each, two of the key and one of the value.",
    about=__doc__,
)
