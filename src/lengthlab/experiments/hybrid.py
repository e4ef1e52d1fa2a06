"""One hybrid, an LSTM in the residual stream and attention after it, as arms: positions × scores × training. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lengthlab.experiments.scale import Scale
from lengthlab.experiments.study import Arm

if TYPE_CHECKING:
    from lengthlab.spec.run import Run

POSITIONS = {
    "rope": "rotary",
    "none": "no positions",
    "alibi": "ALiBi",
    "learned": "learned",
    "randomized": "randomized",
}
"""By the name under which they are registered, as a reader knows them."""
SCORES = {
    "none": "softmax",
    "log-n": "log-n",
    "adaptive-temperature": "fitted temperature",
    "entmax": "entmax",
    "adaptive-entmax": "adaptive entmax",
    "stick-breaking": "stick-breaking",
}
TRAININGS = ("end-to-end", "delayed")


def hybrid_arm(positions: str, scores: str, training: str = "delayed") -> Arm:
    """
    >>> arm = hybrid_arm("rope", "none")
    >>> arm.name, str(arm)
    ('rope, none', 'rotary, softmax, delayed')
    """
    about = (("positions", POSITIONS[positions]), ("scores", SCORES[scores]))
    label = ", ".join((*dict(about).values(), training.replace("-", " ")))
    return Arm(f"{positions}, {scores}", "hybrid-block", "modulo-recall", training, label=label, about=about)


def hybrid_run(arm: Arm, size: str, scales: Mapping[str, Scale]) -> Run:
    """The hybrid with attention made of what the arm is named after, at one of these scales."""
    scale, (positions, scores) = scales[size], arm.name.split(", ")
    schedule = scale.delayed if arm.training == "delayed" else scale.end_to_end
    return scale.run(scale.hybrid(positions, scores), schedule)
