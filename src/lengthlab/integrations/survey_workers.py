"""Processes that survey one type of model after the other: one that hangs, or takes its process down, costs itself alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import cast

from lengthlab.errors import cut
from lengthlab.integrations.small_models import SmallModel
from lengthlab.integrations.survey import Row, Verdict, survey_one

WORKERS, SECONDS = 2, 120.0
SPAWNED = get_context("spawn")
"""A fresh interpreter: a fork of one with torch's threads in it may hang."""


def survey(
    models: Iterable[SmallModel], tell: Callable[[Row], None], workers: int = WORKERS, seconds: float = SECONDS
) -> list[Row]:
    """A row for each of these, in their order; `tell` hears of each as it is found."""
    waiting = list(models)
    order = {model: number for number, model in enumerate(waiting)}
    rows: dict[SmallModel, Row] = {}
    busy: list[_Worker] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                busy.append(_Worker(waiting.pop(0), seconds))
            wait([each.pipe for each in busy], max(0.0, min(each.deadline for each in busy) - monotonic()))
            for worker in list(busy):
                row = worker.listen()
                if row is None:
                    continue
                rows[worker.model] = row
                tell(row)
                if worker.is_gone or not waiting:
                    worker.end()
                    busy.remove(worker)
                else:
                    worker.give(waiting.pop(0))
    finally:
        for worker in busy:
            worker.end()
    return [rows[model] for model in sorted(rows, key=order.__getitem__)]


class _Worker:
    """One process, and the model that it has before it."""

    def __init__(self, model: SmallModel, seconds: float) -> None:
        self.pipe, theirs = SPAWNED.Pipe()
        self.process = SPAWNED.Process(target=_work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.seconds, self.is_gone = seconds, False
        self.give(model)

    def give(self, model: SmallModel) -> None:
        self.model, self.deadline = model, monotonic() + self.seconds
        self.pipe.send(model)

    def listen(self) -> Row | None:
        """What it found, if it has; or what became of it."""
        try:
            if self.pipe.poll():
                return cast(Row, self.pipe.recv())
        except (EOFError, OSError):
            self.process.join()
            return self._lost(f"its process ended with {self.process.exitcode}")
        return self._lost(f"it took more than {self.seconds:g} s") if monotonic() > self.deadline else None

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def _lost(self, why: str) -> Row:
        self.is_gone = True
        verdict: Verdict = "wrong"  # nobody knows, and that is no better
        return Row(self.model.name, self.model.kind, verdict, cut(why))


def _work(pipe: Connection) -> None:
    """Until nobody asks any more."""
    import torch

    torch.set_num_threads(1)
    while True:
        try:
            model = pipe.recv()
        except EOFError:
            return
        pipe.send(survey_one(model))
