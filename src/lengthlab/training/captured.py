"""A run on a GPU whose training step is captured once a phase and replayed: no Python and no launches between two steps.

A turn is a block of steps. It is enqueued at once on the run's own stream, and nobody waits for it: the runs beside it fill
what it leaves idle. The host learns the losses when the turn is over.
"""

from __future__ import annotations

import math

import torch

from lengthlab.errors import RunFailed
from lengthlab.training.feed import BLOCK, Block
from lengthlab.training.trainee import Trainee

WARM_UP = 2
"""Steps without consequence before a capture, in which libraries set themselves up and kernels are compiled."""


class Captured:
    """A trainee that goes on by turns. Between `start` and `finish` its weights belong to the GPU."""

    def __init__(self, trainee: Trainee) -> None:
        self.trainee = trainee
        self.stream = torch.cuda.Stream(trainee.device)  # type: ignore[no-untyped-call]
        self.over = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._k_1 = torch.zeros(1, dtype=torch.long, device=trainee.device)
        self._losses_K = torch.zeros(BLOCK, device=trainee.device)
        self._heard_K = torch.zeros(BLOCK, pin_memory=True)
        self._block: Block | None = None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._end = trainee.step

    @property
    def busy(self) -> bool:
        return self._end > self.trainee.step and not self.over.query()  # type: ignore[no-untyped-call]

    def start(self) -> None:
        """Enqueue the steps to the end of the block, of the phase or of the run, whichever comes first."""
        trainee = self.trainee
        # Weights, checkpoints and counters were made on the stream of whoever made them.
        self.stream.wait_stream(torch.cuda.current_stream(trainee.device))
        with torch.cuda.stream(self.stream):
            number, k = divmod(trainee.step, BLOCK)
            fresh = trainee.feed.block(number)
            if self._block is None:
                self._block = fresh
            else:
                self._block.copy_(fresh)
            self._k_1.fill_(k)
            if trainee.enter_phase() or self._graph is None:
                self._graph = None  # its memory is for the next
                self._graph = self._capture(self._block)
            self._end = min(BLOCK * (number + 1), trainee.phase_end)
            for _ in range(self._end - trainee.step):
                self._graph.replay()
            self._heard_K.copy_(self._losses_K, non_blocking=True)
            self.over.record()

    def finish(self) -> float:
        """Wait for the turn; the loss of its last step. A loss that is not finite ends the run."""
        self.over.synchronize()
        start = self.trainee.step
        losses: list[float] = self._heard_K[start % BLOCK :][: self._end - start].tolist()
        for place, loss in enumerate(losses):
            if not math.isfinite(loss):
                raise RunFailed(f"the loss is {loss} at step {start + place + 1}: a smaller learning rate may help")
        self.trainee.step = self._end
        return losses[-1]

    def _step(self, block: Block) -> None:
        loss = self.trainee.blame(block.lesson(self._k_1))
        self.trainee.learn()
        self._losses_K.index_copy_(0, self._k_1, loss[None])
        self._k_1 += 1

    def _capture(self, block: Block) -> torch.cuda.CUDAGraph:
        for _ in range(WARM_UP):
            self.trainee.blame(block.lesson(self._k_1))
        self.trainee.prepare()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            self._step(block)
        return graph
