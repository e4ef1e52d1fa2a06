"""What was measured, as data. No torch here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

PARTS = {
    "one": "One model alone",
    "suite": "The paper's 26 cells",
    "runs": "By number of runs",
    "lengths": "By longest training sequence",
    "floor": "Above the arithmetic floor",
    "guard": "The guard on what is off",
    "reading": "Long sequences, read in pieces",
}
TEXTBOOK, TUNED = "textbook", "textbook, TF32 and fused Adam"
STEP, GUARD = "step", "guard"
"""A step of a training with attention off, on the CPU, and what the guard does in it."""


@dataclass(frozen=True)
class Measurement:
    """`seconds` are for one step of every model, one number for each repeat; `samples` and `flops` are of such a step too.

    >>> Measurement("runs", "2 runs", "engine, fp32", 2, 512, 1e9, (0.2, 0.1, 0.3), 0).steps_per_second
    10.0
    """

    part: str
    case: str
    way: str
    models: int
    samples: int
    flops: float
    seconds: tuple[float, ...]
    memory: int
    """Peak, in bytes: of the GPU beyond what was taken before, or of all processes."""

    @property
    def pace(self) -> float:
        """Seconds, the median of the repeats."""
        return median(self.seconds)

    @property
    def spread(self) -> float:
        """How far apart the repeats are, as a share of the median: (slowest - quickest) / 2."""
        return (max(self.seconds) - min(self.seconds)) / 2 / self.pace

    @property
    def steps_per_second(self) -> float:
        """Steps of any model."""
        return self.models / self.pace

    @property
    def samples_per_second(self) -> float:
        return self.samples / self.pace

    def to_json(self) -> dict[str, Any]:
        rates = {"steps_per_second": self.steps_per_second, "samples_per_second": self.samples_per_second}
        return {**asdict(self), "median": self.pace, "spread": self.spread, **rates}


@dataclass(frozen=True)
class Origin:
    """What a reader must know to trust the numbers."""

    command: str
    commit: str
    hardware: str
    versions: Mapping[str, str]
    date: str
    seconds: float
    load: float
    """Before the first measurement: how busy others kept the machine."""
    size: str
    device: str


@dataclass(frozen=True)
class Findings:
    """All of one go. `peaks` are operations a second, by what does them."""

    measurements: tuple[Measurement, ...]
    peaks: Mapping[str, float]
    origin: Origin

    def of(self, part: str) -> list[Measurement]:
        return [measurement for measurement in self.measurements if measurement.part == part]

    def ratio(self, measurement: Measurement, way: str = TEXTBOOK) -> float | None:
        """Samples a second against another way's on the same case; None if that was not measured."""
        for other in self.of(measurement.part):
            if (other.case, other.way) == (measurement.case, way):
                return measurement.samples_per_second / other.samples_per_second
        return None

    def above_floor(self, measurement: Measurement) -> float | None:
        """How many times as long it takes as the arithmetic alone would at the measured peak."""
        name = _peak_for(measurement, self.peaks)
        if name is None or not measurement.flops:
            return None
        return measurement.pace / (measurement.flops / self.peaks[name])

    def to_json(self) -> dict[str, Any]:
        rows = [
            each.to_json()
            | {"ratio": {way: self.ratio(each, way) for way in (TEXTBOOK, TUNED) if self.ratio(each, way) is not None}}
            | {"times_the_floor": self.above_floor(each), "floor_peak": _peak_for(each, self.peaks)}
            for each in self.measurements
        ]
        return {**asdict(self.origin), "peaks": dict(self.peaks), "measurements": rows}


def _peak_for(measurement: Measurement, peaks: Mapping[str, float]) -> str | None:
    """One run of our engine on a CPU has one core; everything else has the whole machine."""
    alone = measurement.models == 1 and measurement.way.startswith("engine")
    names = ("one core", "bf16") if alone else ("all cores", "bf16")
    return next((name for name in names if name in peaks), None)


def ways_of(measurements: Sequence[Measurement]) -> list[str]:
    """In the order in which they were measured."""
    return list(dict.fromkeys(measurement.way for measurement in measurements))
