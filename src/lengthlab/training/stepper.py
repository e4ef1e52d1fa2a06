"""How a run goes on: step by step, or on a GPU by a step that is captured once a phase and replayed.

The engine starts a turn, looks whether it is still busy, and finishes it. A captured turn is a block of steps, enqueued at once
on the run's own stream, and nobody waits for it: the runs beside it fill what it leaves idle. Between two of its steps there is
no Python and there are no launches; the host hears the losses when the turn is over.

Shapes: K steps of a block.
"""

from __future__ import annotations

import math
from traceback import walk_tb
from typing import Protocol

import torch

from lengthlab.errors import RunFailed, explain
from lengthlab.training.data import BLOCK, Block
from lengthlab.training.optimizer import RateTable
from lengthlab.training.state import TrainState

WARM_UP = 2
"""Backward passes without consequence before a capture, in which libraries set themselves up and kernels are compiled."""


class Stepper(Protocol):
    """A turn is started, is busy for a while, and is finished with the loss of its last step."""

    @property
    def busy(self) -> bool: ...

    def start(self) -> None: ...

    def finish(self) -> float: ...


class EagerStepper:
    """One step a turn, made when the turn is finished."""

    busy = False

    def __init__(self, state: TrainState) -> None:
        self.state = state

    def start(self) -> None:
        pass

    def finish(self) -> float:
        return self.state.advance()


class GraphStepper:
    """A block of steps a turn, captured. Between `start` and `finish` the weights belong to the GPU.

    A network whose step cannot be captured (its forward asks the GPU for a number, say) goes on step by step, and says so.
    """

    def __init__(self, state: TrainState) -> None:
        self.state = state
        device = state.device
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.over = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._k_1 = torch.zeros(1, dtype=torch.long, device=device)
        self._losses_K = torch.zeros(BLOCK, device=device)
        self._heard_K = torch.zeros(BLOCK, pin_memory=True)
        self._rates = RateTable(state.optimizer, device, BLOCK)
        self._noise = torch.Generator(device=device)
        self._block: Block | None = None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._eager: EagerStepper | None = None
        self._end = state.step

    @property
    def busy(self) -> bool:
        return self._end > self.state.step and not self.over.query()  # type: ignore[no-untyped-call]

    def start(self) -> None:
        """Enqueue the steps to the end of the block, of the phase or of the run, whichever comes first."""
        if self._by_itself is not None:
            return
        state = self.state
        # Weights, checkpoints and counters were made on the stream of whoever made them.
        self.stream.wait_stream(torch.cuda.current_stream(state.device))
        with torch.cuda.stream(self.stream):
            number, k = divmod(state.step, BLOCK)
            if state.enter_phase():
                self._block = self._graph = None  # another phase reads and asks something else
            self._load(state.data.block(number))
            self._rates.fill(state.rates, BLOCK * number)
            self._k_1.fill_(k)
            if self._graph is None and not self._capture():
                return
            self._end = min(BLOCK * (number + 1), state.phase_end)
            self._replay(self._end - state.step)
            self._heard_K.copy_(self._losses_K, non_blocking=True)
            self.over.record()

    def finish(self) -> float:
        """Wait for the turn; the loss of its last step. A loss that is not finite ends the run."""
        if self._by_itself is not None:
            return self._by_itself.finish()
        self.over.synchronize()
        start = self.state.step
        losses: list[float] = self._heard_K[start % BLOCK :][: self._end - start].tolist()
        for place, loss in enumerate(losses):
            if not math.isfinite(loss):
                raise RunFailed(f"the loss is {loss} at step {start + place + 1}: a smaller learning rate may help")
        self.state.step = self._end
        return losses[-1]

    @property
    def _by_itself(self) -> EagerStepper | None:
        """Who makes the next step where none is captured: what opens in the course of a phase changes from step to step."""
        return EagerStepper(self.state) if self.state.phase.opens is not None else self._eager

    def _load(self, fresh: Block) -> None:
        """The data into the tensors that the captured step reads; other shapes need another capture."""
        if self._block is not None and self._block.fits(fresh):
            self._block.copy_(fresh)
        else:
            self._block, self._graph = fresh, None

    def _replay(self, steps: int) -> None:
        """Every step with a seed of its own for whatever is random in the network, as if it were made alone."""
        assert self._graph is not None
        seed = self.state.noise_seed
        for step in range(steps):
            self._noise.manual_seed(seed + step)
            self._graph.replay()

    def _step(self, block: Block) -> None:
        loss = self.state.backward(block.step(self._k_1))
        self._rates.take(self._k_1)
        self.state.update()
        self._losses_K.index_copy_(0, self._k_1, loss[None])
        self._k_1 += 1

    def _capture(self) -> bool:
        """Record a step; False where that cannot be, and from then on every step is made by itself."""
        assert self._block is not None
        state, before = self.state, [buffer.clone() for buffer in self.state.compute.buffers()]
        default = torch.cuda.default_generators[state.device.index or 0]
        mine = default.graphsafe_get_state()
        try:
            # The graph keeps the generator that is the default while it is captured: one of this run's own, so that no run
            # beside it draws from the same.
            default.graphsafe_set_state(self._noise.graphsafe_get_state())
            for _ in range(WARM_UP):
                state.backward(self._block.step(self._k_1))
            state.prepare()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                self._step(self._block)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, ValueError) as error:
            torch.cuda.synchronize(state.device)
            part = _innermost(error)
            slower = "so every step is made by itself, which is slower"
            state.note(f"a step cannot be captured because of {part}, {slower}: {explain(error)}")
            self._eager = EagerStepper(state)
            return False
        finally:
            default.graphsafe_set_state(mine)
            for buffer, value in zip(state.compute.buffers(), before, strict=True):
                buffer.copy_(value)  # a warm-up is no step: what it counted does not count
        self._graph = graph
        return True


def _innermost(error: BaseException) -> str:
    """The class of the module in whose forward an error came up; ending a capture that has failed raises one of its own."""
    while error.__context__ is not None:
        error = error.__context__
    # By the names of functions: looking at the frames' own variables would keep the autograd graph alive.
    names = [frame.f_code.co_qualname.split(".") for frame, _ in walk_tb(error.__traceback__)]
    modules = [kind for *_, kind, function in (name for name in names if len(name) > 1) if function in ("forward", "mix")]
    return modules[-1] if modules else "something outside the network"


def stepper_for(state: TrainState) -> Stepper:
    """Captured where there is a GPU."""
    return GraphStepper(state) if state.device.type == "cuda" else EagerStepper(state)
