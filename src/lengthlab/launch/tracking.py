"""Trackers beside training: a process each (integrations/follower.py), which reads the store. What goes wrong there is said in
a line; the runs do not notice, and their folders stay the truth.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread

from lengthlab.errors import cut
from lengthlab.integrations.trackers import missing, seen_with
from lengthlab.spec.run import Run
from lengthlab.store.settings import called, name_runs
from lengthlab.store.status import visible

PATIENCE = 60.0
"""Seconds that trackers get after the last run to write down what they were told."""

log = logging.getLogger("lengthlab")


@contextmanager
def tracked(names: Sequence[str], runs: Sequence[Run], store: Path, say: Callable[[str], None] | None) -> Iterator[None]:
    """While inside, these trackers are told what the folders of these runs say; of finished ones, what they never heard. At the
    end `say` gets a line on how to see it.
    """
    told = named(runs) if names else {}
    following = [Follower(name, store, told) for name in names if told and _is_there(name)]
    try:
        yield
    finally:
        for follower in following:
            follower.let_go()
        for follower in following:
            if follower.end() and say:
                say(f"tracked: {seen_with(follower.name, store)}")


def named(runs: Sequence[Run]) -> dict[str, tuple[str, str]]:
    """By id: the name of a run and that of its setting, by what differs between these runs."""
    contents = {run.id: called(run.to_json(), run.task.name, run.model.name, run.schedule.name) for run in runs}
    names = name_runs(contents).names
    return {run.id: (visible(f"{names[run.id]}, seed {run.seed}"), visible(names[run.id])) for run in runs}


def _is_there(name: str) -> bool:
    if why := missing(name):
        log.warning("no tracking by %s: %s; the runs go on without it", name, why)
    return not why


class Follower:
    """The process of one tracker, as whoever trains sees it."""

    def __init__(self, name: str, store: Path, runs: Mapping[str, tuple[str, str]]) -> None:
        self.name, self._dismissed = name, False
        self._chatter = TemporaryFile()  # noqa: SIM115  it is closed when the process is gone
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lengthlab.integrations.follower"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._chatter,
            start_new_session=True,
        )
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()
        assert self._process.stdin is not None
        with suppress(OSError):  # one that is gone already: whoever listens says why
            self._process.stdin.write(json.dumps({"tracker": name, "store": str(store), "runs": runs}).encode() + b"\n")
            self._process.stdin.flush()

    def let_go(self) -> None:
        """No more is to come: it may tell the rest and end."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def end(self) -> bool:
        """Wait for it, but not for ever; whether it told all."""
        try:
            self._thread.join(PATIENCE)
            if self._thread.is_alive():
                self._dismissed = True
                log.warning("tracking by %s was cut short: it was not done %.0f s after the last run", self.name, PATIENCE)
        finally:  # Ctrl-C: nobody wants to wait
            self._process.kill()
        return self._process.wait() == 0

    def _listen(self) -> None:
        """Say what it says, and that it is gone, if it went without a word."""
        assert self._process.stdout is not None
        said = self._process.stdout.read().decode("utf-8", "replace").splitlines()
        code = self._process.wait()
        if code and not self._dismissed:
            if code > 0 and not said:  # a crash of the interpreter's
                self._chatter.seek(0)
                said = self._chatter.read().decode("utf-8", "replace").splitlines()[-1:]
            why = visible(cut(said[0], 300)) if said else f"its process ended with {code}"
            log.warning("tracking by %s is over: %s; the runs go on without it", self.name, why)
        self._chatter.close()
