"""Measurements as tables: for the terminal and as Markdown. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table

from lengthlab.bench.measurement import PARTS, TEXTBOOK, TUNED, Findings, Measurement, ways_of

NOTES = (
    "Numbers in the columns of the ways are model-steps a second, the median of the repeats ± half of what lies between the"
    " slowest and the quickest; samples/s are the engine's, and × is the engine's samples a second against the other's.",
    "textbook: eager PyTorch with its defaults, nn.LSTM, scaled_dot_product_attention, Adam, padded batches, one model at a"
    " time. engine: the steps of `train` and `reproduce`, on a GPU all runs side by side, on a CPU one process a core. Neither"
    " writes logs or checkpoints here.",
    "Memory is the peak: on a GPU what was taken of it, on a CPU that of all processes at work.",
)
TUNED_NOTE = "tuned: the textbook loop with TF32 and fused Adam."
FLOOR_NOTE = (
    "The floor is the time that the matrix products of forward and backward pass would take at the measured peak, for the"
    " tokens that some answer depends on."
)
SHORT = {TUNED: "tuned"}


@dataclass(frozen=True)
class Sheet:
    """A table before it is drawn; the first column is text, the others are numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sheets(findings: Findings) -> list[Sheet]:
    """One for each part that was measured."""
    found = [_speeds(findings, part) for part in PARTS if findings.of(part)]
    return [*found, _floors(findings)] if findings.peaks else found


def _speeds(findings: Findings, part: str) -> Sheet:
    """A row for each case."""
    measured = findings.of(part)
    ways = ways_of(measured)
    others = [way for way in ways if not way.startswith("engine")]
    ratios = [f"× {SHORT.get(way, way)}" for way in others]
    header = (PARTS[part], *(SHORT.get(way, way) for way in ways), "samples/s", *ratios, "textbook MiB", "engine MiB")
    rows = []
    for case in dict.fromkeys(each.case for each in measured):
        by_way = {each.way: each for each in measured if each.case == case}
        ours = next(each for way, each in by_way.items() if way.startswith("engine"))
        rates = [_rate(by_way.get(way)) for way in ways]
        times = [f"{findings.ratio(ours, way) or 0:.2f}" for way in others]
        memory = [_mebibytes(by_way.get(TEXTBOOK)), _mebibytes(ours)]
        rows.append((case, *rates, f"{ours.samples_per_second:,.0f}", *times, *memory))
    return Sheet(PARTS[part], header, tuple(rows))


def _floors(findings: Findings) -> Sheet:
    """A row for each case of one model and of the suite."""
    header = (PARTS["floor"], "way", "GFLOP", "floor ms", "measured ms", "times the floor")
    rows = []
    for each in (*findings.of("one"), *findings.of("suite")):
        times = findings.above_floor(each)
        if times:
            cells = (f"{each.flops / 1e9:.2f}", f"{1e3 * each.pace / times:.3f}", f"{1e3 * each.pace:.2f}", f"{times:.1f}")
            rows.append((each.case, SHORT.get(each.way, each.way), *cells))
    return Sheet(PARTS["floor"], header, tuple(rows))


def _rate(measurement: Measurement | None) -> str:
    """
    >>> _rate(Measurement("one", "lstm", "textbook", 1, 64, 0, (0.010, 0.011, 0.009), 0))
    '100 ±10%'
    """
    if measurement is None:
        return "–"
    rate = measurement.steps_per_second
    return f"{rate:,.0f} ±{measurement.spread:.0%}" if rate >= 100 else f"{rate:.3g} ±{measurement.spread:.0%}"


def _mebibytes(measurement: Measurement | None) -> str:
    return "–" if measurement is None else f"{measurement.memory / 2**20:,.0f}"


def terminal_tables(findings: Findings) -> list[Table]:
    """The sheets, drawn."""
    return [_drawn(sheet) for sheet in sheets(findings)]


def _drawn(sheet: Sheet) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for place, name in enumerate(sheet.header):
        table.add_column(name, justify="right" if place else "left", no_wrap=place == 0)
    for row in sheet.rows:
        table.add_row(*row)
    return table


def markdown(findings: Findings) -> str:
    """The page: tables, notes and where the numbers come from."""
    found = sheets(findings)
    tables = [f"## {sheet.title}\n\n{_grid(sheet)}" for sheet in found]
    return "\n\n".join(["# Speed", *tables, *remarks(findings), *origin_lines(findings)]) + "\n"


def remarks(findings: Findings) -> list[str]:
    """How to read the tables."""
    peaks = ", ".join(f"{name} {value / 1e12:.3g} TFLOP/s" for name, value in findings.peaks.items())
    tuned = [TUNED_NOTE] if TUNED in ways_of(findings.measurements) else []
    return [*NOTES, *tuned, *([f"{FLOOR_NOTE} Peak: {peaks}."] if peaks else [])]


def origin_lines(findings: Findings) -> list[str]:
    """Where the numbers come from."""
    origin = findings.origin
    versions = ", ".join(f"{name} {version}" for name, version in origin.versions.items())
    where = f"size {origin.size}, on {origin.hardware}, {versions}, {origin.date}, in {origin.seconds:.0f} s"
    return [f"Made by `{origin.command}`, commit {origin.commit}, {where}; load before: {origin.load:.2f}."]


def _grid(sheet: Sheet) -> str:
    rule = ["---", *["--:"] * (len(sheet.header) - 1)]
    return "\n".join(_line(cells) for cells in (sheet.header, rule, *sheet.rows))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
