"""What leases ask of a store, by the number of workers, drawn: `python tests/operations_figure.py`, by hand.

The numbers are those of the table of the simulation in docs/reliability.md (tests/lease_simulation.py prints it).
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def operations(page: str) -> dict[str, list[tuple[int, float]]]:
    """Workers and operations a second of each kind of store, out of the table.

    >>> operations("| store | workers | lost | operations a second |\\n|---|---|---|---|\\n| folder | 10 | 0 | 1.1 |")
    {'folder': [(10, 1.1)]}
    """
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in page.splitlines() if line.startswith("|")]
    start = next(number for number, row in enumerate(rows) if row[:2] == ["store", "workers"])
    found = defaultdict[str, list[tuple[int, float]]](list)
    for row in rows[start + 2 :]:
        if len(row) == len(rows[start]) and row[1].isdigit():
            found[row[0]].append((int(row[1]), float(row[-1])))
    return dict(found)


def main() -> None:
    import matplotlib
    from matplotlib.figure import Figure

    from lengthlab.report.style import COLOURS, DASHES, FAINT, INK, MARKERS, tidy, write_title

    drawing = Figure(figsize=(6.4, 3.4), layout="constrained", facecolor="white")
    axes = drawing.subplots()
    for place, (store, points) in enumerate(operations((DOCS / "reliability.md").read_text()).items()):
        workers, a_second = zip(*points, strict=True)
        look = {"color": COLOURS[place], "ls": DASHES[place], "marker": MARKERS[place], "ms": 5}
        axes.plot(workers, a_second, **look)
        axes.annotate(store, points[-1], xytext=(8, -3), textcoords="offset points", color=COLOURS[place])
    axes.set(xscale="log", yscale="log", xticks=workers, xticklabels=[f"{number:,}" for number in workers])
    axes.set_xlim(workers[0] / 1.3, workers[-1] * 2.9)
    axes.set_xlabel("workers, with a hundred runs of ten minutes each", color=INK)
    axes.set_ylabel("operations a second", color=INK)
    axes.tick_params(colors=FAINT)
    axes.yaxis.set_major_formatter("{x:g}")
    tidy(axes, "y")
    write_title(drawing, "What leases ask of a store")
    with matplotlib.rc_context({"svg.hashsalt": "lengthlab"}):
        drawing.savefig(DOCS / "reliability" / "operations.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
