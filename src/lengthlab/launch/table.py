"""Where runs are, drawn: a row of a table for each, or a line, and one for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Group
from rich.jupyter import JupyterMixin
from rich.table import Table
from rich.text import Text

from lengthlab.store import Status
from lengthlab.store.status import Accuracy, duration, seconds_left_in_all, visible

COLUMNS = ("run", "phase", "step", "loss", "in range", "beyond", "time left")
LEAST = {"phase": 8, "run": 10}
"""Where the terminal is narrow, names give way, numbers do not: first those of what is off, then those of runs."""
REASONS = 3
"""So many reasons of failures are shown below the table."""
BUSY = ("training", "measuring")


class Drawing(JupyterMixin, Group):
    """What a terminal and a notebook can show."""


def plain(status: Status) -> str:
    """A run in one line.

    >>> plain(Status("0123456789ab", "training", phase=1, phases=2, off=("attention",), step=100, steps=330, at_most=True))
    'phase 1/2, attention off  step 100/330 at most'
    """
    phase = phase_of(status)
    if status.failure:
        return f"{phase}  {visible(status.failure)}"
    steps = "" if status.steps is None else f"/{status.steps:,}{' at most' if status.at_most else ''}"
    cells = (f"{status.step:,}{steps}", *_measures(status), status.time_left)
    words = [f"{name} {cell}" for name, cell in zip(COLUMNS[2:], cells, strict=True) if cell]
    words += [f"({visible(status.trouble)})"] if status.trouble else []
    return "  ".join([f"phase {phase}" if phase[0].isdigit() else phase, *words])


def phase_of(status: Status) -> str:
    """What a run is at: its phase and what is off in it, or its state where that says more."""
    if status.state != "training" or status.phase is None:
        return status.state
    off = f", {', '.join(map(visible, status.off))} off" if status.off else ""
    return f"{status.phase}/{status.phases}{off}"


def summary(statuses: Sequence[Status]) -> str:
    """Several runs in one line, with the time left of all.

    >>> summary([Status("ab12", "finished"), Status("cd34", "training", steps=9, seconds_left=75), Status("ef56", "failed")])
    '1 of 3 runs finished, 1 failed, 1 at work, about 1 min 15 s left'
    """
    states = Counter("at work" if status.state in BUSY else status.state for status in statuses)
    words = [f"{states['finished']} of {len(statuses)} runs finished"]
    words += [f"{states[state]} {state}" for state in ("failed", "at work") if states[state]]
    seconds = seconds_left_in_all(statuses)
    return ", ".join([*words, f"about {duration(seconds)} left"] if seconds else words)


def table(statuses: Sequence[Status], labels: Mapping[str, str], width: int, height: int) -> Drawing:
    """For a terminal of that size; one of 80 columns has room for every number. Rows keep their order."""
    reasons = [f"{labels[each.run]}: {visible(why)}" for each in statuses if (why := each.failure or each.trouble)][:REASONS]
    shown, rest = fitting(statuses, max(1, height - len(reasons) - (len(statuses) > 1)))
    rows = fitted([_row(status, labels[status.run]) for status in shown], width)
    drawn = Table(*COLUMNS, box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for column in drawn.columns:
        column.no_wrap = True
    for row in rows:
        drawn.add_row(*map(Text, row))
    below = [*([rest] if rest else []), *reasons, *([summary(statuses)] if len(statuses) > 1 else [])]
    return Drawing(drawn, *(Text(line, no_wrap=True, overflow="ellipsis", style="dim") for line in below))


def _row(status: Status, label: str) -> tuple[str, ...]:
    steps = "" if status.steps is None else f"/{'≤' if status.at_most else ''}{status.steps:,}"
    sign = {(True, False): "≤", (False, True): "≥", (True, True): "~"}.get((status.at_most, status.at_least), "")
    left = "" if status.seconds_left is None else sign + duration(status.seconds_left)
    return label, phase_of(status), f"{status.step:,}{steps}", *_measures(status), left


def _measures(status: Status) -> tuple[str, str, str]:
    loss = "" if status.loss is None else f"{status.loss:.4f}"
    return loss, _cell(status.in_range), _cell(status.beyond)


def _cell(accuracy: Accuracy | None) -> str:
    return "" if accuracy is None else f"{accuracy.share:.2f} n={accuracy.length}"


def fitting(statuses: Sequence[Status], room: int) -> tuple[list[Status], str]:
    """Those that a terminal of so many lines has room for, at work before waiting or done, and what to say of the others.

    >>> states = [Status("a", "finished"), Status("b", "training"), Status("c", "waiting"), Status("d", "waiting")]
    >>> shown, rest = fitting(states, room=2)
    >>> [status.run for status in shown], rest
    (['b'], 'and 1 finished, 2 waiting')
    """
    if len(statuses) <= room:
        return list(statuses), ""
    first = sorted(statuses, key=lambda status: status.state not in BUSY)[: max(1, room - 1)]
    shown = [status for status in first if status.state in BUSY] or first
    here = {status.run for status in shown}
    states = Counter("at work" if each.state in BUSY else each.state for each in statuses if each.run not in here)
    return shown, f"and {', '.join(f'{number} {state}' for state, number in states.items())}"


def fitted(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """The rows with their names cut as far as they must be.

    >>> fitted([("lstm-on-attention delayed seed 0", "1/2, attention off", "50/100", "1.2500", "", "", "20 s")], 72)
    [['lstm-on-att…ayed seed 0', '1/2, at…', '50/100', '1.2500', '', '', '20 s']]
    """
    wide = [max(map(cell_len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    for name, least in LEAST.items():
        over, place = sum(wide) + len(wide) - 1 - width, COLUMNS.index(name)
        wide[place] -= max(0, min(over, wide[place] - least))
    label, phase, *_ = wide
    # What tells runs apart is often at the end of their names.
    return [[abridged(row[0], label, label // 2), abridged(row[1], phase), *row[2:]] for row in rows]


def abridged(text: str, width: int, tail: int = 0) -> str:
    """
    >>> abridged("hybrid-block seed 0", 12, tail=6), abridged("hybrid-block seed 0", 12)
    ('hybri…seed 0', 'hybrid-bloc…')
    """
    if cell_len(text) <= width:
        return text
    end = text[len(text) - tail :]
    while cell_len(end) > tail:
        end = end[1:]
    return f"{set_cell_size(text, width - 1 - tail).rstrip()}…{end}"
