"""What lets recall wake up once attention is opened, and when to open it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lengthlab.experiments.study import Arm, Scale, Study
from lengthlab.models import AnyModel, attention_on_lstm
from lengthlab.run import Run
from lengthlab.schedule import Mastered, Phase, Schedule, delayed

SIZES = {
    "gpu": Scale(keys=256, width=256, longest=25, batch=256, lr=3e-4, first=4_000, joint=12_000, last=1_000,
                 times=(1, 2, 3, 4, 8), heads=2, blocks=2),
    "cpu": Scale(keys=80, width=64, longest=10, batch=64, lr=2e-3, first=1_500, joint=4_500, last=300,
                 times=(1, 2, 3, 4, 8), modulus=2, heads=2, blocks=2),
}  # fmt: skip
BASE = "base"


def arms(size: str) -> list[Arm]:
    """Attention that reads an LSTM, where the plateau is longest, and one thing changed at a time."""
    scale = SIZES[size]
    first, joint, last, lr = scale.first, scale.joint, scale.last, scale.lr
    model, silent = _body(scale), _body(scale, silent=True)
    lengths = {f"first phase {times:g} times as long": delayed(round(times * first), joint, last, lr) for times in (0.5, 2, 4)}
    ends = {f"first phase until mastered at {times}×": _until(scale, times) for times in (1, 2)}
    rates = {
        "attention at twice the rate": delayed(first, joint, last, {"attention": 2 * lr, "rest": lr}, first_lr=lr),
        "attention at half the rate": delayed(first, joint, last, {"attention": lr / 2, "rest": lr}, first_lr=lr),
        "recurrence at a third of the rate": delayed(first, joint, last, {"attention": lr, "rest": lr / 3}, first_lr=lr),
        "first phase at twice the rate": delayed(first, joint, last, lr, first_lr=2 * lr),
    }
    schedules = {"first phase asked both": delayed(first, joint, last, lr, asks=()), **lengths, **ends, **rates}
    changed = [Arm(name, scale.run(model, schedule)) for name, schedule in schedules.items()]
    sublayers = delayed(first, joint, last, lr, covers="sublayers")
    return [
        Arm(BASE, scale.run(model)),
        *changed,
        Arm("rates rise over 1,000 steps", scale.run(model, _ramp(scale))),
        Arm("sublayers off, norms on", scale.run(model, sublayers)),
        Arm("sublayers off, norms on, silent at first", scale.run(silent, sublayers)),
        Arm("a path past the LSTM", scale.run(scale.hybrid("rope", "none"))),
        Arm("twice the keys", scale.run(model, task=replace(scale.task, keys=scale.keys * 2))),
        Arm("four times the keys", scale.run(model, task=replace(scale.task, keys=scale.keys * 4))),
    ]


def _body(scale: Scale, silent: bool = False) -> AnyModel:
    return attention_on_lstm(scale.width, blocks=scale.blocks, heads=scale.heads, silent=silent)


def _until(scale: Scale, times: int) -> Schedule:
    """The first phase ends by itself: inside the training range, or by a probe at `times` its length."""
    return delayed(Mastered("modulo", times=times, limit=4 * scale.first), scale.joint, scale.last, scale.lr)


def _ramp(scale: Scale) -> Schedule:
    """Attention's rate rises in four steps instead of a jump."""
    first, *rest = scale.delayed.phases
    rising = [Phase(250, {"attention": scale.lr * share, "rest": scale.lr}) for share in (0.1, 0.25, 0.5, 0.75)]
    return Schedule(scale.delayed.name, (first, *rising, *rest))


def plateau(seeds: Sequence[int] = (0, 1, 2, 3, 4), size: str = "gpu") -> list[Run]:
    """What lets recall wake up in the joint phase, one thing changed at a time; and a delay that ends by itself.

    Claim: asked both questions at first, recall never wakes up. Where opening attention disturbs nothing of what the head has
    learned to read, it wakes up with every seed. A delay that ends by itself is ahead of fixed ones of about its length.

    Cost: 17 runs a seed, about 17,000 steps each (gpu) or 6,300 small ones, 40 minutes on two slow cores (cpu: modulus 2,
    n = 1…10).
    Command: lengthlab reproduce plateau
    """
    return [trial.run for trial in STUDY.trials(size, seeds)]


STUDY = Study(
    name="plateau",
    title="The plateau of the joint phase",
    question="What lets recall wake up when attention is opened, and when should it be?",
    arms=arms,
    seeds=5,
    reference=BASE,
)
