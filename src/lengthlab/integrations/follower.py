"""A process that tells one tracker what the folders of runs say, as it is written: `python -m lengthlab.integrations.follower`.

It reads standard input: first a line of JSON that names the tracker, the store and the runs, then nothing, until the end says
that the work is over, or whoever did it is gone. It writes one line to standard output where it cannot go on. Training neither
waits for it nor hears of it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from pathlib import Path
from threading import Event, Thread
from typing import Any

from filelock import FileLock, Timeout

from lengthlab.errors import LabError, cut, explain
from lengthlab.integrations.trackers import TRACKERS, Tracked, Tracker
from lengthlab.store import Folder, Store
from lengthlab.store.disk import replace_file
from lengthlab.store.ids import SHORT
from lengthlab.store.log import FILE, Summary, Tail
from lengthlab.store.rows import Count

LOOK_SECONDS = 1.0
SENT = ".sent"
"""In the folder of a tracker: up to which step it was told of each run."""
MEASURES = {"loss": "train/loss", "lr": "train/lr", "phase": "train/phase", "samples_per_second": "train/samples_per_second"}
"""What of a line of a log is told, and how it is called."""


class Rows(Summary):
    """A summary that hands on every line, too."""

    def __init__(self, hand_on: Callable[[Mapping[str, Any]], None]) -> None:
        super().__init__()
        self._hand_on = hand_on

    def take(self, lines: Sequence[Mapping[str, Any] | None]) -> None:
        for line in lines:
            if line is not None:
                self._hand_on(line)


def values_of(line: Mapping[str, Any]) -> dict[str, float]:
    """What of a line of a log is told to trackers: numbers that are finite.

    >>> values_of({"step": 50, "loss": 0.5, "lr": 1e-3, "accuracy": {"25": 0.75}, "notes": ["slow"]})
    {'train/loss': 0.5, 'train/lr': 0.001, 'accuracy/25': 0.75}
    """
    found = {told: line[name] for name, told in MEASURES.items() if name in line}
    found |= {f"accuracy/{length}": share for length, share in line.get("accuracy", {}).items()}
    return {name: float(value) for name, value in found.items() if type(value) in (int, float) and isfinite(value)}


class Following:
    """One run and one tracker. `step` is the last it was told of: no step is told twice, whoever was killed meanwhile."""

    def __init__(self, run: Tracked, folder: Folder, tracker: Tracker, place: Path) -> None:
        self.run, self._folder, self._tracker = run, folder, tracker
        self._kept = place / SENT / f"{run.id}.json"
        self._lock = FileLock(self._kept.with_suffix(".lock"))
        self._lines: list[Mapping[str, Any]] = []
        self._tail = Tail(folder.path / FILE, lambda: Rows(self._lines.append))
        self._open = False
        self.step, self.over = -1, False

    def look(self) -> None:
        """Tell what is new."""
        if self.over or not (self._lock.is_locked or self._begin()):
            return
        finished = self._folder.finished  # first this, then the log: no line comes after the result
        self._tail.read()
        lines, self._lines[:] = [line for line in self._lines if line["step"] > self.step], []
        if (lines or finished) and not self._open:
            self.run = replace(self.run, config=_config(self._folder))
            self._tracker.open(self.run)
            self._open = True
        for line in lines:
            if line["step"] > self.step:  # a log that was written anew has some lines twice
                self._tracker.write(self.run, line["step"], values_of(line))
                self.step = line["step"]
        if finished:
            self._tracker.conclude(self.run, max(0, self.step), _counts(self._folder))
            self.close(True)
        elif lines:
            self._tracker.flush(self.run)
            self._keep(False)

    def close(self, finished: bool = False) -> None:
        """No more is to come; of a run that was stopped, the next command tells the rest."""
        if self._open:
            self._open = False
            self._tracker.close(self.run, finished)
            self._keep(finished)
        self.over = True
        self._lock.release()

    def _begin(self) -> bool:
        """Whether this run is ours to tell of. Another process may be at it, or may have told all of it."""
        if not (self._folder.path / FILE).exists() and not self._folder.finished:
            return False
        self._kept.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        with suppress(OSError, ValueError, KeyError, TypeError):  # a file that is not ours: all is told again
            kept = json.loads(self._kept.read_bytes())
            told, name, over = int(kept["step"]), str(kept["name"]), bool(kept["over"])
            self.run, self.step, self.over = replace(self.run, name=name), told, over
        if self.over:
            self._lock.release()
        return not self.over

    def _keep(self, over: bool) -> None:
        replace_file(self._kept, json.dumps({"name": self.run.name, "step": self.step, "over": over}).encode())


def _counts(folder: Folder) -> list[Count]:
    try:
        return [Count.from_json(count) for count in folder.read_json("result.json").get("counts", ())]
    except (LabError, AttributeError, KeyError, TypeError, ValueError):
        return []


def _config(folder: Folder) -> dict[str, Any]:
    """The content of a run; of users' files their names alone."""
    try:
        content = folder.read_json("run.json")
    except LabError:
        return {}
    files = content.get("files")
    return content | ({"files": sorted(files)} if isinstance(files, dict) else {})


def follow(tracker: Tracker, place: Path, store: Store, runs: Mapping[str, Sequence[str]], pause: Callable[[], bool]) -> None:
    """Tell of these runs (by id: name and group) until `pause` says that no more is to come."""
    called = [Tracked(run_id, f"{name} ({run_id[:SHORT]})", group) for run_id, (name, group) in runs.items()]
    followed = [Following(run, store.folder(run.id), tracker, place) for run in called]
    more = True
    while more:
        more = pause()
        for each in followed:
            each.look()
    for each in followed:
        each.close()


def main() -> int:
    """Follow the runs that standard input names."""
    said = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a tracker prints is nobody's answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it, too, and lets go
    asked = json.loads(sys.stdin.buffer.readline())
    place = Path(asked["store"]) / asked["tracker"]
    try:
        follow(TRACKERS[asked["tracker"]](place), place, Store(asked["store"]), asked["runs"], _until_the_end())
    except BaseException as error:  # some libraries exit
        print(cut(explain(error), 300), file=said, flush=True)
        os._exit(1)  # not private, whatever its name: without what a broken tracker would still like to do, which may never end
    return 0


def _until_the_end() -> Callable[[], bool]:
    """What waits for a moment, and says whether standard input is still open."""
    over = Event()

    def listen() -> None:
        while os.read(0, 4096):
            pass
        over.set()

    Thread(target=listen, daemon=True).start()
    return lambda: not over.wait(LOOK_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
