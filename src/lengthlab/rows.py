"""Results as rows: one per run, length and question. The field names are an interface that other people's scripts read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lengthlab.errors import LabError
from lengthlab.evaluation.interval import wilson


@dataclass(frozen=True)
class Row:
    experiment: str
    part: str
    model: str
    task: str
    training: str
    seed: int
    length: int
    question: str
    correct: int
    total: int
    run: str

    @property
    def accuracy(self) -> float:
        return self.correct / self.total

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.correct, self.total)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def rows_in(result: Mapping[str, Any], where: str, experiment: str = "", part: str = "") -> list[Row]:
    """The rows of what `result.json` holds."""
    try:
        names = {name: result[name] for name in ("model", "task", "training", "seed", "run")}
        return [Row(experiment=experiment, part=part, **names, **count) for count in result["counts"]]
    except (KeyError, TypeError):
        raise LabError(f"{where}: result.json is not the result of a run") from None
