"""A line chart as SVG, drawn without any library: what a page shows where no script runs, looking as its script draws.

Colours, dashes and widths are in the style sheet of the page (`c0`, `d1`, `seed`, …), so that they follow light and dark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from lengthlab.report.markup import Markup, joined, tag

WIDE, HIGH = 760, 330
LEFT, RIGHT, TOP, BOTTOM = 54, 18, 28, 44
COLOURS, DASHES = 7, 4
"""So many looks does the style sheet have."""
APART = 34.0
"""Units between the numbers of an axis."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """`kind`: `mean` (thick), `seed` (thin) or `level` (grey, dotted). `band`: low and high at every point."""

    points: tuple[Point, ...]
    kind: str = "mean"
    look: int = 0
    band: tuple[Point, ...] = ()


@dataclass(frozen=True)
class Axis:
    """From `low` to `high` of the data, on `start`…`end` of the drawing."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """
        >>> Axis(1, 100, 0, 50, log=True).at(10), Axis(0, 1, 100, 0).at(0.25)
        (25.0, 75.0)
        """
        low, high, here = (log10(each) if self.log else each for each in (self.low, self.high, value))
        return self.start + (here - low) / (high - low or 1) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round numbers: powers of ten where it is logarithmic and has some, else about five steps."""
        if self.log:
            powers = [10.0**power for power in range(ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9) + 1)]
            return powers if len(powers) > 1 else [self.low, self.high]
        rough = (self.high - self.low) / 5 or 1
        unit = 10 ** floor(log10(rough))
        step = next(unit * times for times in (1, 2, 5, 10) if unit * times >= rough * 0.999)
        first = ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, floor(self.high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Chart:
    """`shade`: where the training range is, on the x axis. `marks`: the numbers below it, round ones if none are given."""

    title: str
    x: Axis
    y: Axis
    x_name: str
    y_name: str
    lines: tuple[Line, ...]
    shade: Point | None = None
    marks: tuple[float, ...] = ()


def x_axis(low: float, high: float, log: bool = False) -> Axis:
    return Axis(low, high, LEFT, WIDE - RIGHT, log)


def y_axis(low: float, high: float, log: bool = False) -> Axis:
    return Axis(low, high, HIGH - BOTTOM, TOP, log)


def drawn(chart: Chart) -> Markup:
    """The picture, with its title for those who hear it."""
    head = tag("title", chart.title)
    body = joined([*_shade(chart), *_frame(chart), *_lines(chart)])
    return tag("svg", head, body, class_="chart", viewBox=f"0 0 {WIDE} {HIGH}", role="img", aria_label=chart.title)


def _shade(chart: Chart) -> Iterator[Markup]:
    if chart.shade:
        start, end = (min(max(chart.x.at(value), LEFT), WIDE - RIGHT) for value in chart.shade)
        yield tag("rect", class_="shade", x=start, y=TOP, width=end - start, height=HIGH - BOTTOM - TOP)
        yield tag("text", "trained", class_="faint", x=start, y=TOP - 5)


def _frame(chart: Chart) -> Iterator[Markup]:
    for value in chart.y.ticks():
        height = chart.y.at(value)
        yield tag("line", class_="rule", x1=LEFT, x2=WIDE - RIGHT, y1=height, y2=height)
        yield tag("text", number(value), class_="tick end", x=LEFT - 8, y=height + 4)
    before = -APART
    for value in chart.marks or chart.x.ticks():
        place = chart.x.at(value)
        yield tag("line", class_="rule", x1=place, x2=place, y1=HIGH - BOTTOM, y2=HIGH - BOTTOM + 4)
        if place - before >= APART:
            yield tag("text", number(value), class_="tick middle", x=place, y=HIGH - BOTTOM + 18)
            before = place
    yield tag("text", chart.x_name, class_="name end", x=WIDE - RIGHT, y=HIGH - 6)
    yield tag("text", chart.y_name, class_="name", x=6, y=11)


def _lines(chart: Chart) -> Iterator[Markup]:
    for line in chart.lines:
        if line.band:
            lows = [(x, low) for (x, _), (low, _) in zip(line.points, line.band, strict=True)]
            highs = [(x, high) for (x, _), (_, high) in zip(line.points, line.band, strict=True)]
            yield tag("path", class_=f"band c{line.look % COLOURS}", d=_path(chart, [*lows, *highs[::-1]]) + "Z")
    for line in chart.lines:
        yield tag("path", class_=look(line), d=_path(chart, line.points))
        if line.kind == "mean":
            for x, y in line.points:
                yield tag("circle", class_=f"dot c{line.look % COLOURS}", cx=chart.x.at(x), cy=chart.y.at(y), r=3)


def look(line: Line) -> str:
    """The classes of a line: colours and dashes come in turn, so that no two of 28 look alike, nor neighbours without colour.

    >>> look(Line(())), look(Line((), "seed", 8))
    ('mean c0 d0', 'seed c1 d0')
    """
    return "level" if line.kind == "level" else f"{line.kind} c{line.look % COLOURS} d{line.look % DASHES}"


def _path(chart: Chart, points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{chart.x.at(x):.1f} {chart.y.at(y):.1f}" for x, y in points) if points else "M0 0"


def number(value: float) -> str:
    """Of an axis.

    >>> number(0.30000000000000004), number(20000), number(1e-05)
    ('0.3', '20,000', '1e-05')
    """
    return f"{round(value):,}" if value >= 1000 else f"{value:.6g}"
