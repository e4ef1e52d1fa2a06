"""Long work, watched: where the runs of a store are, live in a terminal and in a notebook, as plain lines elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from lengthlab.errors import explain
from lengthlab.launch.table import Drawing, phase_of, plain, summary, table
from lengthlab.spec.run import Run
from lengthlab.store import Status, Store, Watch
from lengthlab.store.settings import called, name_runs
from lengthlab.store.status import visible

REFRESH_SECONDS = 0.5
PLAIN_SECONDS = 10.0
"""Between two plain lines, unless a run comes to another phase or to its end."""
QUIET_SECONDS = 2.0
"""Of work that is shorter than this, a plain line tells the end alone."""
NOTEBOOK_ROWS = 40


class Progress:
    """`with Progress(runs, store, "training on cpu, 1 thread"): …` shows where the runs are until it is left.

    It speaks on standard error, from a thread of its own: a step may take long, and so may a measurement.
    """

    def __init__(self, runs: Sequence[Run], store: Path, heading: str) -> None:
        folders = {run.id: Store(store).folder(run.id) for run in runs}
        self._watch = Watch(folders.values())
        self._ids = {folder.id: run_id for run_id, folder in folders.items()}  # folders of version 0.1 have short names
        contents = {run.id: called(run.to_json(), run.task.name, run.model.name, run.schedule.name) for run in runs}
        self._labels = {run: visible(name) for run, name in name_runs(contents).with_seeds(contents).items()}
        self._heading, self._console = heading, Console(stderr=True, highlight=False)
        self._failed: Mapping[str, str] = {}
        self._noted: set[str] = set()
        self._over = threading.Event()
        # In the context of whoever asked: a notebook knows by it which cell to write below.
        self._thread = threading.Thread(target=copy_context().run, args=(self._look_on,), daemon=True)

    def __enter__(self) -> Progress:
        self._way = _way(self._console, self._labels, self._heading)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        try:
            self._thread.join()
            if kind is None:
                self._try(self._way.end)
        finally:  # a second Ctrl-C must not leave the terminal without its cursor
            with suppress(Exception):
                self._way.close()

    def tell(self, failed: Mapping[str, str]) -> None:
        """The reasons of the runs that do not go on, by id: a worker that died left none in the folder."""
        self._failed = dict(failed)

    def _look_on(self) -> None:
        while not self._over.wait(REFRESH_SECONDS):
            self._try(self._way.show)

    def _try(self, show: Callable[[Sequence[Status]], None]) -> None:
        """Who looks on does not stop who works: what cannot be shown is given up."""
        try:
            show(self._look())
        except Exception as error:
            self._over.set()
            with suppress(Exception):
                self._way.say(f"no progress can be shown: {visible(explain(error))}")

    def _look(self) -> list[Status]:
        statuses = [self._known(status) for status in self._watch.look().statuses]
        for status in statuses:
            self._note(status)
        return statuses

    def _known(self, status: Status) -> Status:
        """What the folder does not know, but whoever trains does: why a worker gave up, and that a stopped run will go on."""
        status = replace(status, run=self._ids[status.run])
        if status.run in self._failed:
            return replace(status, state="failed", failure=self._failed[status.run])
        return replace(status, state="waiting") if status.state == "stopped" else status

    def _note(self, status: Status) -> None:
        """What a run says of its parts, once for all runs that say the same."""
        for note in status.notes:
            if note not in self._noted:
                self._noted.add(note)
                self._way.say(f"{self._labels[status.run]}: {visible(note)}")


class Way(Protocol):
    """A way to show where runs are: again and again, then at the end; and to say a line besides."""

    def show(self, statuses: Sequence[Status]) -> None: ...

    def end(self, statuses: Sequence[Status]) -> None: ...

    def say(self, line: str) -> None: ...

    def close(self) -> None: ...


def _way(console: Console, labels: Mapping[str, str], heading: str) -> Way:
    if console.is_jupyter:
        return Notebook(console, labels, heading)
    return Terminal(console, labels, heading) if console.is_terminal else Lines(console, labels, heading)


class Terminal:
    """A live table."""

    def __init__(self, console: Console, labels: Mapping[str, str], heading: str) -> None:
        self._console, self._labels = console, labels
        self.say(heading)
        self._live = Live(console=console, auto_refresh=False)
        self._live.start()

    def show(self, statuses: Sequence[Status]) -> None:
        self._live.update(table(statuses, self._labels, self._console.width, self._console.height - 2), refresh=True)

    end = show

    def say(self, line: str) -> None:
        _print(self._console, line)

    def close(self) -> None:
        self._live.stop()


class Notebook:
    """A table below the cell, replaced by the next one."""

    def __init__(self, console: Console, labels: Mapping[str, str], heading: str) -> None:
        self._console, self._labels, self._heading = console, labels, Text(heading)
        self._place: Any = None

    def show(self, statuses: Sequence[Status]) -> None:
        from IPython.display import display

        drawn = Drawing(self._heading, table(statuses, self._labels, 100, NOTEBOOK_ROWS))
        if self._place is None:
            self._place = display(drawn, display_id=True)
        else:
            self._place.update(drawn)

    end = show

    def say(self, line: str) -> None:
        _print(self._console, line)

    def close(self) -> None:
        pass


class Lines:
    """A line when a run comes to another phase or to its end, and one now and then in between."""

    def __init__(self, console: Console, labels: Mapping[str, str], heading: str) -> None:
        self._console, self._labels, self._heading = console, labels, heading
        self._began = self._spoke = monotonic()
        self._phases: dict[str, str] = {}

    def show(self, statuses: Sequence[Status]) -> None:
        if monotonic() - self._began > QUIET_SECONDS:
            self._tell([status for status in statuses if status.state != "waiting"])
            if monotonic() - self._spoke > PLAIN_SECONDS:
                self.say(summary(statuses) if len(statuses) > 1 else self._line(statuses[0]))

    def end(self, statuses: Sequence[Status]) -> None:
        self._tell(statuses)

    def say(self, line: str) -> None:
        for each in (self._heading, line):
            if each:
                _print(self._console, each)
        self._heading, self._spoke = "", monotonic()

    def close(self) -> None:
        pass

    def _tell(self, statuses: Sequence[Status]) -> None:
        for status in statuses:
            phase = phase_of(status)
            if phase != self._phases.get(status.run):
                self._phases[status.run] = phase
                self.say(self._line(status))

    def _line(self, status: Status) -> str:
        return f"{self._labels[status.run]}: {plain(status)}"


def _print(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, markup=False, emoji=False)
