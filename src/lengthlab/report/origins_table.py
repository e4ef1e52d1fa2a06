"""Where the numbers of a page come from: machines, runs, and the runs that gave none, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lengthlab.report.compared import Compared
from lengthlab.report.curves import Curve
from lengthlab.report.page import Block, Details, Span, Table, Text, Words
from lengthlab.store.ids import SHORT
from lengthlab.store.status import Status, duration

Made = tuple[str, str, str, str, str]


def machines(curves: Sequence[Curve]) -> Table:
    """A row for each commit, machine, set of versions, precision and, where it is known, command."""
    groups: dict[Made, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(_made(curve), []).append(curve)
    rows = [_machine(made, runs) for made, runs in groups.items()]
    return Table(("commit", "hardware", "versions", "precision", "command", "runs", "seeds", "seconds"), tuple(rows))


def _made(curve: Curve) -> Made:
    made = curve.made
    versions = ", ".join(f"{name} {version}" for name, version in sorted(made["versions"].items()))
    command = str(made.get("command") or "not recorded")
    return str(made["commit"] or "not recorded"), made["hardware"], versions, made["precision"], command


def _machine(made: Made, runs: Sequence[Curve]) -> tuple[Words, ...]:
    commit, hardware, versions, precision, command = made
    seeds = ", ".join(map(str, sorted({curve.first.seed for curve in runs})))
    seconds = sum(float(curve.made["seconds"]) for curve in runs)
    written: Words = Span(command, "code") if command != "not recorded" else command
    return Span(commit, "code"), hardware, versions, precision, written, f"{len(runs):,}", seeds, f"{seconds:,.0f}"


def every_run(groups: Sequence[Compared]) -> Table:
    """Which run a seed of a setting is."""
    rows: list[tuple[Words, ...]] = []
    for group in groups:
        for setting in group.settings:
            for curve in setting.curves:
                made, run = curve.made, Span(curve.first.run, "code")
                numbers = (f"{made['steps']:,}", f"{float(made['seconds']):,.0f}", str(made["date"]))
                rows.append((setting.name, str(curve.first.seed), run, *numbers))
    return Table(("setting", "seed", "run", "steps", "seconds", "date"), tuple(rows))


def without_result(statuses: Sequence[Status], problems: Sequence[str]) -> Iterator[Block]:
    """Runs that are not in the numbers, none left unsaid."""
    if not statuses and not problems:
        yield Text("Every run that was named is finished and in the numbers above.")
        return
    if statuses:
        yield Text(f"{_count(len(statuses), 'run')} without a result, which no number on this page has in it:")
        header = ("run", "task", "model", "training", "seed", "state", "step", "reason")
        yield Table(header, tuple(map(_status, statuses)))
    if problems:
        yield Details(f"{_count(len(problems), 'folder')} left out", tuple(map(Text, problems)))


def _status(status: Status) -> tuple[Words, ...]:
    steps = f"{status.step:,}" + (f" of {status.steps:,}" if status.steps else "")
    seed = "–" if status.seed is None else str(status.seed)
    names = status.task or "–", status.model or "–", status.training or "–", seed
    return Span(status.run[:SHORT], "code"), *names, Span(status.state, "strong"), steps, reason_of(status)


def reason_of(status: Status) -> str:
    """Why there is no result."""
    left = f", {duration(status.seconds_left)} left" if status.seconds_left else ""
    words = {
        "waiting": "not begun",
        "training": f"still in training{left}",
        "measuring": "trained, being measured",
        "stopped": "no process has it: the same command goes on where it was",
    }
    return "; ".join(filter(None, (status.failure or words.get(status.state), status.trouble)))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("s" if number != 1 else "")
