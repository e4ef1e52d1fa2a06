"""What the paper's text allows to be read in more than one way, for two of its hybrids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lengthlab.experiments.dat.arms import TASKS
from lengthlab.experiments.study import Arm
from lengthlab.spec.schedule import Covers

Asks = Literal["modulo", "both"]
WORDS = {
    "part": "the whole part",
    "sublayers": "all but the norms",
    "function": "the function alone",
    "modulo": "modulo",
    "both": "both questions",
    "one": "one",
    "each block": "one in each block",
}


@dataclass(frozen=True)
class Reading:
    """One way to read delayed training on modulo-recall.

    `lstms`: the hybrid block has one LSTM in the residual stream before its attention blocks, or one in each block. `covers`:
    what "deactivate the attention modules" switches off: the whole part (attention, MLPs and norms), its sublayers (attention
    and MLPs), or the attention function alone. `asks`: what the recurrence is asked while attention is off.

    >>> Reading("hybrid-block", "each block", "function", "both").arm.training
    'delayed-function-both'
    """

    model: str
    lstms: Literal["one", "each block"]
    covers: Covers
    asks: Asks

    @property
    def arm(self) -> Arm:
        """With labels that keep its rows apart from those of the other readings."""
        model = self.model if self.lstms == "one" else f"{self.model}-lstm-in-each"
        words = {"LSTMs": self.lstms, "off at first": self.covers, "asked at first": self.asks}
        about = tuple((column, WORDS[word]) for column, word in words.items())
        training = f"delayed-{self.covers}-{self.asks}"
        return Arm("readings", model, TASKS["figure1"], training, label=f"{model}, {training}", about=about)


WAYS: tuple[tuple[Covers, Asks], ...] = (
    ("part", "modulo"),
    ("part", "both"),
    ("function", "modulo"),
    ("function", "both"),
)

READINGS = (
    Reading("attention-on-lstm", "one", "sublayers", "modulo"),
    Reading("attention-on-lstm", "one", "sublayers", "both"),
    *(Reading("attention-on-lstm", "one", *way) for way in WAYS),
    *(Reading("hybrid-block", "one", *way) for way in WAYS),
    *(Reading("hybrid-block", "each block", *way) for way in WAYS),
)
"""The first of each model is how the 26 cells read the paper at size short."""
