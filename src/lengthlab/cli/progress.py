"""Long work, watched: a row for each run, read from the logs in the store; plain lines where there is no terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from lengthlab.errors import LabError
from lengthlab.schedule import Mastered
from lengthlab.store import Store

if TYPE_CHECKING:
    from lengthlab.run import Run

REFRESH_SECONDS = 0.5
PLAIN_SECONDS = 15.0
"""Between two plain lines of a run; longer where there are many, so that all of them together say one every few seconds."""
COLUMNS = ("run", "phase", "step", "loss", "in range", "beyond", "time left")


class Progress:
    """`with Progress(runs, store) as progress: train_all(..., watch=progress.look)`. Speaks on standard error."""

    def __init__(self, runs: Sequence[Run], store: str) -> None:
        self.runs, self.store = list(runs), Store(store)
        self.labels = labels(runs)
        self.console = Console(stderr=True, highlight=False)
        self.live = Live(console=self.console, auto_refresh=False) if self.console.is_terminal else None
        self._looked = 0.0
        self._said: dict[str, tuple[str, float]] = {}
        self._ended: dict[str, tuple[str, ...]] = {}
        self._failed: Mapping[str, str] = {}

    def __enter__(self) -> Progress:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self._show()
        if self.live:
            self.live.stop()

    def look(self, failed: Mapping[str, str]) -> None:
        """Show where the runs are; `failed` has the reasons of those that do not go on."""
        self._failed = failed
        if monotonic() - self._looked > REFRESH_SECONDS:
            self._looked = monotonic()
            self._show()

    def _show(self) -> None:
        rows = [self._row(run) for run in self.runs]
        if self.live:
            table = Table(*COLUMNS, box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
            for column in table.columns:
                column.no_wrap = True
            for row in fitting(rows, self.console.height - 2):
                table.add_row(*row)
            self.live.update(table, refresh=True)
            return
        for run, row in zip(self.runs, rows, strict=True):
            self._say(run, row)

    def _say(self, run: Run, row: Sequence[str]) -> None:
        """A plain line when the phase has changed, the run has ended, or nothing was said for a while."""
        before, when = self._said.get(run.id, ("", 0.0))
        waited = monotonic() - when > max(PLAIN_SECONDS, 5 * len(self.runs))
        if row[1] != before or (waited and row[1] not in ("finished", "failed", "waiting")):
            self._said[run.id] = (row[1], monotonic())
            said = "  ".join(f"{name} {cell}" for name, cell in zip(COLUMNS[2:], row[2:], strict=True) if cell)
            phase = f"phase {row[1]}" if row[1][0].isdigit() else row[1]
            said = self._failed.get(run.id, said)
            self.console.print(f"{row[0]}: {phase}  {said}", soft_wrap=True, markup=False)

    def _row(self, run: Run) -> tuple[str, ...]:
        if run.id in self._ended:  # a long log is not read again and again when nothing more can come
            return self._ended[run.id]
        row = self._fresh_row(run)
        if row[1] == "finished":
            self._ended[run.id] = row
        return row

    def _fresh_row(self, run: Run) -> tuple[str, ...]:
        folder = self.store.folder(run.id)
        try:
            log = folder.read_log()
        except LabError:  # a foreign log is its own run's trouble, and the run will say so
            log = []
        last = log[-1] if log else {}
        inside, beyond = _accuracies(run, log)
        step, skipped = int(last.get("step", 0)), int(last.get("skipped", 0))
        loss = f"{last['loss']:.4f}" if last else ""
        return (
            self.labels[run.id],
            "failed" if run.id in self._failed else _state(run, folder, last),
            f"{step:,}/{run.steps - skipped:,}{at_most(run, step + skipped)}",
            loss,
            inside,
            beyond,
            _left(run, log),
        )


def fitting(rows: Sequence[tuple[str, ...]], room: int) -> list[tuple[str, ...]]:
    """The rows that a terminal of so many lines has room for: those at work before those that wait or are done.

    >>> fitting([("a", "finished", ""), ("b", "1/2", ""), ("c", "waiting", ""), ("d", "waiting", "")], room=2)
    [('b', '1/2', ''), ('and 1 finished, 2 waiting', '', '')]
    """
    if len(rows) <= room:
        return list(rows)
    still = ("finished", "failed", "waiting")
    busy = sorted(rows, key=lambda row: row[1] in still)[: max(1, room - 1)]
    shown = [row for row in busy if row[1] not in still] or busy
    states = Counter(row[1] if row[1] in still else "at work" for row in rows if row not in shown)
    rest = f"and {', '.join(f'{number} {state}' for state, number in states.items())}"
    return [*shown, (rest, *[""] * (len(rows[0]) - 1))]


def labels(runs: Sequence[Run]) -> dict[str, str]:
    """A short name for each run: only what differs between them, and the id where that is not enough."""
    names = {run.id: (run.task.name, run.model.name, run.schedule.name, f"seed {run.seed}") for run in runs}
    differs = [len(set(column)) > 1 for column in zip(*names.values(), strict=True)]
    short = {key: " ".join(n for n, d in zip(name, differs, strict=True) if d) for key, name in names.items()}
    short = {run.id: short[run.id] or run.label for run in runs}
    told = len(set(short.values())) == len(short)
    return short if told else {run.id: f"{run.label} ({run.id[:4]})" for run in runs}


def clock(line: Mapping[str, Any]) -> int:
    """How far the schedule had come at a line of the log: the steps made, and those that were not needed.

    >>> clock({"step": 300, "skipped": 700})
    1000
    """
    return int(line["step"]) + int(line.get("skipped", 0))


def at_most(run: Run, done: int = 0) -> str:
    """What to say behind a number of steps, or of seconds, that is a bound because training itself may end a phase sooner."""
    ahead = run.schedule.phases[run.phase_at(done) :]
    return " at most" if any(isinstance(phase.length, Mastered) for phase in ahead) else ""


def _state(run: Run, folder: Any, last: dict[str, Any]) -> str:
    if folder.finished:
        return "finished"
    if (folder.path / "failure.json").exists():
        return "failed"
    if not last:
        return "waiting"
    number = run.phase_at(clock(last))
    if number == len(run.schedule.phases):
        return "measuring"
    phase = run.schedule.phases[number]
    off = f", {', '.join(phase.off)} off" if phase.off else ""
    return f"{number + 1}/{len(run.schedule.phases)}{off}"


def _accuracies(run: Run, log: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """The latest accuracy at the training length, and beyond it."""
    probed = [line["accuracy"] for line in log if "accuracy" in line]
    if not probed:
        return "", ""
    cells = [f"{value:.2f} n={length}" for length, value in sorted(probed[-1].items(), key=lambda item: int(item[0]))]
    return (cells[0], cells[-1] if len(cells) > 1 else "")


def _left(run: Run, log: Sequence[dict[str, Any]]) -> str:
    """From the pace of the last lines; a later phase with more parts on goes slower than it says."""
    left = run.steps - clock(log[-1]) if log else 0
    if not left:
        return ""
    pace = [line["samples_per_second"] for line in log[-5:] if line["samples_per_second"] > 0]
    if not pace:
        return ""
    seconds = left * run.batch * len(pace) / sum(pace)
    return duration(seconds) + at_most(run, clock(log[-1]))


def duration(seconds: float) -> str:
    """
    >>> duration(75), duration(4000)
    ('1 min 15 s', '1 h 6 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
