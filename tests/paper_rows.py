"""Rows of the paper's arms that nobody trained, for tests of what is made of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

from lengthlab.experiments.dat import DAT
from lengthlab.experiments.dat.arms import ARMS, LENGTHS
from lengthlab.experiments.study import Arm
from lengthlab.report.provenance import Origin
from lengthlab.store.rows import Row

Accuracy = Callable[[Arm, int, int], float]


def as_in_the_paper(arm: Arm, seed: int, length: int) -> float:
    """The paper's own numbers; where it is silent, what it claims."""
    known = DAT.says(arm, "all", length)
    if known is not None:
        return known
    if arm.training.startswith("delayed"):
        return 1.0 if length <= 50 else 0.95 if length == 75 else 0.8
    return 0.5 if arm.model == "lstm" else 1.0 if length <= 25 else 0.1


def run_id(arm: Arm, seed: int) -> str:
    return sha256(f"{arm!r} {seed}".encode()).hexdigest()[:12]


def rows_of(
    arms: Sequence[Arm] = ARMS,
    seeds: Sequence[int] = (0,),
    accuracy: Accuracy = as_in_the_paper,
    lengths: Sequence[int] = LENGTHS,
    total: int = 1000,
) -> list[Row]:
    """Every question of a arm as right as every other."""
    return [
        Row(
            *(length, question, round(total * accuracy(arm, seed, length)), total),
            **{"experiment": "dat", "arm": arm.name, "size": "short", "model": arm.model, "task": arm.task},
            **{"training": arm.training, "seed": seed, "run": run_id(arm, seed)},
        )
        for arm in arms
        for seed in seeds
        for length in lengths
        for question in (*arm.task.split("-"), "all")
    ]


def origin(rows: Sequence[Row], **changes: object) -> Origin:
    known = {
        "command": "lengthlab reproduce dat",
        "commit": "0123456789ab",
        "hardware": "a slide rule",
        "versions": {"torch": "2.13.0"},
        "precision": "fp32",
        "date": "2026-01-02T03:04:05+00:00",
        "seconds": 90.0,
        "size": "short",
        "runs": tuple(sorted({row.run for row in rows})),
    }
    return Origin(**known | changes)  # type: ignore[arg-type]
