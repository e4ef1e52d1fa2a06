"""Both ways on one GPU: the textbook loop in two settings, and the engine's captured steps, many runs side by side."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import sleep

import torch

from lengthlab.bench.case import Case
from lengthlab.bench.loop import Loop
from lengthlab.bench.measurement import TEXTBOOK, TUNED
from lengthlab.bench.stopwatch import Trainer
from lengthlab.device import settled
from lengthlab.training.data import BLOCK
from lengthlab.training.engine import REST_SECONDS
from lengthlab.training.precision import PRECISIONS
from lengthlab.training.state import TrainState
from lengthlab.training.stepper import stepper_for


class SideBySide:
    """Runs that go by turns, as `training.engine` has them."""

    turn = BLOCK

    def __init__(self, states: Sequence[TrainState]) -> None:
        self.states = states
        self.runs = [stepper_for(state) for state in states]

    def go(self, steps: int) -> None:
        ends = {run: state.step + steps for run, state in zip(self.runs, self.states, strict=True)}
        for run in ends:
            run.start()
        left = dict(zip(self.runs, self.states, strict=True))
        while left:
            due = [run for run in left if not run.busy]
            for run in due:
                run.finish()
                if left[run].step < ends[run]:
                    run.start()
                else:
                    del left[run]
            if not due:
                sleep(REST_SECONDS)


class Gpu:
    """Where everything runs in this process."""

    textbooks: tuple[str, ...] = (TEXTBOOK, TUNED)
    engine = "engine, bf16"
    exact: tuple[str, ...] = ("engine, fp32",)

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._free = 0

    @contextmanager
    def train(self, way: str, cases: Sequence[Case]) -> Iterator[Trainer]:
        """These cases side by side; the textbook loop has one at a time."""
        gc.collect()  # a captured graph holds its memory until it is collected
        torch.cuda.empty_cache()
        self._free = self._free_now()
        if way in self.textbooks:
            (case,) = cases
            with _matmul_precision("high" if way == TUNED else torch.get_float32_matmul_precision()):
                yield Loop(case, self.device, tuned=way == TUNED)
            return
        precision = PRECISIONS[way.removeprefix("engine, ")]
        with settled(self.device):
            runs = SideBySide([TrainState(case.run, self.device, precision, models=len(cases)) for case in cases])
            torch.cuda.synchronize(self.device)  # runs go on streams of their own, and were made on another
            yield runs

    def memory(self) -> int:
        """Bytes that the GPU has fewer since `train` began. Torch gives nothing back meanwhile, so that is the peak."""
        return self._free - self._free_now()

    def _free_now(self) -> int:
        torch.cuda.synchronize(self.device)
        return torch.cuda.mem_get_info(self.device)[0]

    def close(self) -> None:
        """Nothing to end."""


@contextmanager
def _matmul_precision(name: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
