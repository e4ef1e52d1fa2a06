"""Rows of the paper's cells that nobody trained, for tests of what is made of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from xml.etree import ElementTree

from lengthlab.paper import CELLS, LENGTHS, Cell, value
from lengthlab.report.provenance import Making
from lengthlab.rows import Row

Accuracy = Callable[[Cell, int, int], float]


def as_in_the_paper(cell: Cell, seed: int, length: int) -> float:
    """The paper's own numbers; where it is silent, what it claims."""
    known = value(cell, length)
    if known is not None:
        return known
    if cell.training.startswith("delayed"):
        return 1.0 if length <= 50 else 0.95 if length == 75 else 0.8
    return 0.5 if cell.model == "lstm" else 1.0 if length <= 25 else 0.1


def run_id(cell: Cell, seed: int) -> str:
    return sha256(f"{cell} {seed}".encode()).hexdigest()[:12]


def rows_of(
    cells: Sequence[Cell] = CELLS,
    seeds: Sequence[int] = (0,),
    accuracy: Accuracy = as_in_the_paper,
    lengths: Sequence[int] = LENGTHS,
    total: int = 1000,
) -> list[Row]:
    """Every question of a cell as right as every other."""
    return [
        Row(
            *("dat", cell.part, cell.model, cell.task, cell.training, seed, length, question),
            *(round(total * accuracy(cell, seed, length)), total, run_id(cell, seed)),
        )
        for cell in cells
        for seed in seeds
        for length in lengths
        for question in (*cell.task.split("-"), "both")
    ]


def making(rows: Sequence[Row], **changes: object) -> Making:
    known = {
        "command": "lengthlab reproduce dat",
        "commit": "0123456789ab",
        "hardware": "a slide rule",
        "versions": {"torch": "2.13.0"},
        "precision": "fp32",
        "date": "2026-01-02T03:04:05+00:00",
        "seconds": 90.0,
        "profile": "short",
        "runs": tuple(sorted({row.run for row in rows})),
    }
    return Making(**known | changes)  # type: ignore[arg-type]


def texts(svg: bytes) -> list[str]:
    """What a picture says."""
    return [node.text or "" for node in ElementTree.fromstring(svg.decode()).iter("{http://www.w3.org/2000/svg}text")]
