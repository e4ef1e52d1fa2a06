"""What lets recall set in once attention is opened, one thing changed at a time; and a delay that ends by itself.

Claim: asked both questions at first, recall never sets in. Where opening attention disturbs nothing of what the head has
learned to read, it does with every seed. A delay that ends by itself is ahead of fixed ones of about its length.

Cost: 19 runs a seed, about 17,000 steps each (gpu) or 6,300 small ones, 45 minutes on two slow cores (cpu: modulus 2,
n = 1…10).
Command: lengthlab reproduce plateau
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lengthlab.experiments.drawing import Strip
from lengthlab.experiments.scale import Scale
from lengthlab.experiments.study import Arm, At, Check, Claim, Section, Study

if TYPE_CHECKING:
    from lengthlab.models import AnyModel
    from lengthlab.spec.run import Run
    from lengthlab.spec.schedule import Schedule

SCALES = {
    "gpu": Scale(keys=256, width=256, longest=25, batch=256, lr=3e-4, first=4_000, joint=12_000, last=1_000,
                 times=(1, 2, 3, 4, 8), heads=2, blocks=2),
    "cpu": Scale(keys=80, width=64, longest=10, batch=64, lr=2e-3, first=1_500, joint=4_500, last=300,
                 times=(1, 2, 3, 4, 8), modulus=2, heads=2, blocks=2),
}  # fmt: skip


def _arm(name: str, label: str = "", model: str = "attention-on-lstm") -> Arm:
    return Arm(name, model, "modulo-recall", "delayed", label=label)


BASE = _arm("base", "base: the whole part off, modulo asked")
BOTH = _arm("first phase asked both", "both questions asked at first")
LONGER = {
    0.5: _arm("first phase 0.5 times as long", "first phase half as long"),
    2: _arm("first phase 2 times as long", "first phase twice as long"),
    4: _arm("first phase 4 times as long", "first phase four times as long"),
}
MASTERED = {
    1: _arm("first phase until mastered at 1×", "first phase until modulo is mastered"),
    2: _arm("first phase until mastered at 2×", "the same, probed at twice the range"),
}
FAST_ATTENTION, SLOW_ATTENTION = _arm("attention at twice the rate"), _arm("attention at half the rate")
SLOW_RECURRENCE = _arm("recurrence at a third of the rate")
FAST_FIRST = _arm("first phase at twice the rate")
RAMP = _arm("rates rise over 1,000 steps", "attention's rate rises over 1,000 steps")
NORMS_ON = _arm("sublayers off, norms on", "norms stay on")
SILENT = _arm("sublayers off, norms on, silent at first", "norms stay on, outputs begin at zero")
PAST_LSTM = _arm("a path past the LSTM", model="hybrid-block")
LOOK_BACK = _arm("a look back", "attention looks back a token")
BOTH_PATHS = _arm("a path past the LSTM, and a look back", model="hybrid-block")
MORE_KEYS = {2: _arm("twice the keys"), 4: _arm("four times the keys")}
ARMS = (
    *(BASE, BOTH, *LONGER.values(), *MASTERED.values()),
    *(FAST_ATTENTION, SLOW_ATTENTION, SLOW_RECURRENCE, FAST_FIRST, RAMP),
    *(NORMS_ON, SILENT, PAST_LSTM, LOOK_BACK, BOTH_PATHS, *MORE_KEYS.values()),
)


def run(arm: Arm, size: str) -> Run:
    """Attention that reads an LSTM, where the plateau is longest, with what the arm is named after changed."""
    scale = SCALES[size]
    for times, more in MORE_KEYS.items():
        if arm == more:
            return scale.run(_model(arm, scale), task=replace(scale.task, keys=scale.keys * times))
    return scale.run(_model(arm, scale), _schedule(arm, scale))


def _model(arm: Arm, scale: Scale) -> AnyModel:
    from lengthlab.models import attention_on_lstm, hybrid_block

    local = 2 if arm in (LOOK_BACK, BOTH_PATHS) else 0
    if arm in (PAST_LSTM, BOTH_PATHS):
        return hybrid_block(scale.width, blocks=scale.blocks, heads=scale.heads, local=local)
    return attention_on_lstm(scale.width, blocks=scale.blocks, heads=scale.heads, silent=arm == SILENT, local=local)


def _schedule(arm: Arm, scale: Scale) -> Schedule:
    from lengthlab.spec.schedule import delayed

    first, joint, last, lr = scale.first, scale.joint, scale.last, scale.lr
    changed = {
        BOTH: delayed(first, joint, last, lr, asks=()),
        **{longer: delayed(round(times * first), joint, last, lr) for times, longer in LONGER.items()},
        **{until: _until(scale, times) for times, until in MASTERED.items()},
        FAST_ATTENTION: delayed(first, joint, last, {"attention": 2 * lr, "rest": lr}, first_lr=lr),
        SLOW_ATTENTION: delayed(first, joint, last, {"attention": lr / 2, "rest": lr}, first_lr=lr),
        SLOW_RECURRENCE: delayed(first, joint, last, {"attention": lr, "rest": lr / 3}, first_lr=lr),
        FAST_FIRST: delayed(first, joint, last, lr, first_lr=2 * lr),
        RAMP: _ramp(scale),
        NORMS_ON: delayed(first, joint, last, lr, covers="sublayers"),
        SILENT: delayed(first, joint, last, lr, covers="sublayers"),
    }
    return changed.get(arm, scale.delayed)


def _until(scale: Scale, times: int) -> Schedule:
    """The first phase ends by itself: inside the training range, or by a probe at `times` its length."""
    from lengthlab.spec.schedule import Mastered, delayed

    return delayed(Mastered("modulo", times=times, limit=4 * scale.first), scale.joint, scale.last, scale.lr)


def _ramp(scale: Scale) -> Schedule:
    """Attention's rate rises in four steps instead of a jump."""
    from lengthlab.spec.schedule import Phase, Schedule

    first, *rest = scale.delayed.phases
    rising = [Phase(250, {"attention": scale.lr * share, "rest": scale.lr}) for share in (0.1, 0.25, 0.5, 0.75)]
    return Schedule(scale.delayed.name, (first, *rising, *rest))


def claims(size: str) -> tuple[Claim, ...]:
    """At 1 and 3 times the training length of a size."""
    inside, beyond = SCALES[size].longest, 3 * SCALES[size].longest
    fixed = (BASE, LONGER[0.5])
    return (
        Claim(
            "Asked both questions at first, recall never sets in.",
            "both right in at most 0.50 at the training length",
            (Check(BOTH, inside, "≤", 0.50),),
            size=size,
        ),
        Claim(
            "Where opening attention disturbs nothing of what the head has learned to read, it does with every seed.",
            "norms on, the same and silent at first, a path past the LSTM: both right in at least 0.95 at the training length",
            tuple(Check(arm, inside, "≥", 0.95) for arm in (NORMS_ON, SILENT, PAST_LSTM)),
            size=size,
        ),
        Claim(
            "A delay that ends by itself is ahead of fixed ones of about its length.",
            "until mastered at 1× above base and half as long, at 1 and 3 times the training length",
            tuple(Check(MASTERED[1], n, ">", At(arm=arm)) for arm in fixed for n in (inside, beyond)),
            size=size,
        ),
    )


PLATEAU = Study(
    name="plateau",
    title="The plateau of the joint phase",
    question="What lets recall set in when attention is opened, and when should it be?",
    run=run,
    sizes=(SCALES["gpu"].size("gpu", gpu=True), SCALES["cpu"].size("cpu")),
    sections=(Section("plateau", "Accuracy by length", ARMS, figure=Strip(times=(1, 3))),),
    seeds=5,
    claims=(*claims("gpu"), *claims("cpu")),
    baseline=BASE.name,
    about=__doc__,
    page="docs/far/plateau.md",
)
