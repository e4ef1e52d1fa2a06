"""Measurements as a page of tables. No torch here."""

from __future__ import annotations

from collections.abc import Iterator

from lengthlab.bench.measurement import GUARD, PARTS, STEP, TEXTBOOK, TUNED, Findings, Measurement, ways_of
from lengthlab.report.page import Block, Heading, Page, Span, Table, Text, Words, prose

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
READING_NOTE = (
    "A sequence of more than 32,768 tokens is read in pieces, of as many on a GPU and 1,024 on a CPU. Memory is the peak beyond"
    " the weights: of the GPU, or of the process on a CPU. The transformer, whose attention reads everything, is read less far:"
    " its work grows with the square of the length. So is the LSTM alone, which walks."
)
SHORT = {TUNED: "tuned"}


def bench_page(findings: Findings) -> Page:
    """A table for each part that was measured, how to read them, and where the numbers come from."""
    return Page("Speed", tuple(_blocks(findings)))


def _blocks(findings: Findings) -> Iterator[Block]:
    for part in PARTS:
        if findings.of(part) and part not in ("guard", "reading"):
            yield from (Heading(PARTS[part]), _speeds(findings, part))
    if findings.peaks:
        yield from (Heading(PARTS["floor"]), _floors(findings))
    if findings.of("guard"):
        yield from (Heading(PARTS["guard"]), _guards(findings))
    if findings.of("reading"):
        yield from (Heading(PARTS["reading"]), _readings(findings), Text(prose(f"{READING_NOTE}{_growth(findings)}")))
    for remark in _remarks(findings) if any(each.part != "reading" for each in findings.measurements) else ():
        yield Text(prose(remark))
    yield Text(_origin(findings))


def _speeds(findings: Findings, part: str) -> Table:
    """A row for each case."""
    measured = findings.of(part)
    ways = ways_of(measured)
    others = [way for way in ways if not way.startswith("engine")]
    ratios = [f"× {SHORT.get(way, way)}" for way in others]
    header = ("case", *(SHORT.get(way, way) for way in ways), "samples/s", *ratios, "textbook MiB", "engine MiB")
    rows = []
    for case in dict.fromkeys(each.case for each in measured):
        by_way = {each.way: each for each in measured if each.case == case}
        ours = next(each for way, each in by_way.items() if way.startswith("engine"))
        rates = [_rate(by_way.get(way)) for way in ways]
        times = [f"{findings.ratio(ours, way) or 0:.2f}" for way in others]
        memory = [_mebibytes(by_way.get(TEXTBOOK)), _mebibytes(ours)]
        rows.append((case, *rates, f"{ours.samples_per_second:,.0f}", *times, *memory))
    return Table(header, tuple(rows))


def _floors(findings: Findings) -> Table:
    """A row for each case of one model and of the suite."""
    header = ("case", "way", "GFLOP", "floor ms", "measured ms", "times the floor")
    rows = []
    for each in (*findings.of("one"), *findings.of("suite")):
        times = findings.above_floor(each)
        if times:
            cells = (f"{each.flops / 1e9:.2f}", f"{1e3 * each.pace / times:.3f}", f"{1e3 * each.pace:.2f}", f"{times:.1f}")
            rows.append((each.case, SHORT.get(each.way, each.way), *cells))
    return Table(header, tuple(rows))


def _guards(findings: Findings) -> Table:
    """A row for each case: a step, what the guard does in it, and its share."""
    rows = []
    for case in dict.fromkeys(each.case for each in findings.of("guard")):
        pace = {each.way: each.pace for each in findings.of("guard") if each.case == case}
        rows.append((case, f"{1e3 * pace[STEP]:.2f}", f"{1e3 * pace[GUARD]:.3f}", f"{pace[GUARD] / pace[STEP]:.2%}"))
    return Table(("case, on the CPU", "step ms", "guard ms", "share"), tuple(rows))


def _readings(findings: Findings) -> Table:
    """A row for each length: seconds and mebibytes of each model."""
    measured = findings.of("reading")
    ways = ways_of(measured)
    rows = []
    for case in dict.fromkeys(each.case for each in sorted(measured, key=lambda each: each.samples)):
        by_way = {each.way: each for each in measured if each.case == case}
        seconds = [f"{by_way[way].pace:.1f}" if way in by_way else "–" for way in ways]
        rows.append(
            (case, *(cell for way, pace in zip(ways, seconds, strict=True) for cell in (pace, _mebibytes(by_way.get(way)))))
        )
    return Table(("one sample of", *(f"{way}, {unit}" for way in ways for unit in ("s", "MiB"))), tuple(rows))


def _growth(findings: Findings) -> str:
    """By how much memory grows from the shortest to the longest sequence of each model."""
    measured = sorted(findings.of("reading"), key=lambda each: each.samples)
    by_way = {way: [each for each in measured if each.way == way] for way in ways_of(measured)}
    told = [
        f"{way} {own[-1].memory / own[0].memory:.2f} times for {own[-1].samples / own[0].samples:g} times as many tokens"
        for way, own in by_way.items()
        if len(own) > 1 and own[0].memory
    ]
    return f" From the shortest to the longest, memory grows: {'; '.join(told)}." if told else ""


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


def _remarks(findings: Findings) -> list[str]:
    peaks = ", ".join(f"{name} {value / 1e12:.3g} TFLOP/s" for name, value in findings.peaks.items())
    tuned = [TUNED_NOTE] if TUNED in ways_of(findings.measurements) else []
    return [*NOTES, *tuned, *([f"{FLOOR_NOTE} Peak: {peaks}."] if peaks else [])]


def _origin(findings: Findings) -> Words:
    origin = findings.origin
    versions = ", ".join(f"{name} {version}" for name, version in origin.versions.items())
    where = f"size {origin.size}, on {origin.hardware}, {versions}, {origin.date}, in {origin.seconds:.0f} s"
    rest = f", commit {origin.commit}, {where}; load before: {origin.load:.2f}."
    return ("Made by ", Span(origin.command, "code"), rest)
