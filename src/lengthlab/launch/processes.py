"""Worker processes of this machine, and packs of runs for them. They talk through the store, but for what failed."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from time import sleep

from lengthlab.launch.in_process import Tell

log = logging.getLogger("lengthlab")
POLL_SECONDS = 0.1


def work(packs: Sequence[list[str]], command: list[str], number: int, tell: Tell) -> dict[str, str]:
    """Keep so many workers busy until nothing is left; the errors, by run."""
    waiting = list(packs)
    workers: list[Worker] = []
    errors: dict[str, str] = {}
    try:
        while waiting or workers:
            while waiting and len(workers) < number:
                workers.append(Worker(command, waiting.pop(0)))
            for worker in list(workers):
                errors |= worker.listen()
                if worker.gone:
                    workers.remove(worker)
                elif worker.idle:
                    worker.give(waiting.pop(0) if waiting else [])
            tell(errors)
            sleep(POLL_SECONDS)
    finally:
        for worker in workers:
            worker.process.send_signal(signal.SIGINT)
        for worker in workers:
            worker.process.communicate()
            worker.said.unlink(missing_ok=True)
    return errors


class Worker:
    """A process that trains one pack of runs after the other: to start one takes longer than a small run.

    It is in a session of its own, so that Ctrl-C reaches the parent alone, which passes it on once; and it speaks to a file,
    because a pipe would stop one that says more than a pipe holds.
    """

    def __init__(self, command: list[str], pack: list[str]) -> None:
        number, said = mkstemp(prefix="lengthlab-")
        with os.fdopen(number, "wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "lengthlab.launch.worker", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=file,
                text=True,
                start_new_session=True,
            )
        self.said = Path(said)
        self.gone = False
        self._heard, self._last = 0, "no text"
        self.give(pack)

    def give(self, pack: list[str]) -> None:
        """The next runs to train; none says that there will be no more."""
        self.pack, self._dismissed = set(pack), not pack
        assert self.process.stdin is not None
        with suppress(OSError):  # a worker that died meanwhile: the next look finds out
            self.process.stdin.write(" ".join(pack) + "\n")
            self.process.stdin.flush()

    @property
    def idle(self) -> bool:
        """Waits for runs."""
        return not self.pack and not self._dismissed

    def listen(self) -> dict[str, str]:
        """What failed since the last time; warnings go on, and whether the pack is done and the process gone is noted."""
        code = self.process.poll()  # before its words are read, so that the last ones are among them
        errors: dict[str, str] = {}
        for line in self._new_lines(all_of_it=code is not None):
            try:
                said = json.loads(line)
                errors |= {said["run"]: said["error"]} if "run" in said else {}
                if "warning" in said:
                    log.warning("%s", said["warning"])
                self.pack -= {*said.get("done", ()), said.get("run")}
            except (ValueError, KeyError, TypeError, AttributeError):
                self._last = line.strip() or self._last  # of libraries, or of an interpreter that gives up
        if code is not None:
            self.gone = True
            self.process.communicate()
            for run_id in self.pack:
                errors[run_id] = f"the process that trained run {run_id} ended with {code}: {self._last}"
            self.said.unlink()
        return errors

    def _new_lines(self, all_of_it: bool) -> list[str]:
        """Since the last time; a line that is being written is read when it is whole, or when nobody writes any more."""
        with self.said.open("rb") as file:
            file.seek(self._heard)
            new = file.read()
        read = new if all_of_it else new[: new.rfind(b"\n") + 1]
        self._heard += len(read)
        return read.decode("utf-8", "replace").splitlines()
