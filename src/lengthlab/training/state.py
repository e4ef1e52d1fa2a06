"""A run in training: its network, its optimizer, the switch on its delayed parts, and the step it has come to.

One model, one step at a time, right on any device. A captured step is the same `backward` and `update`, recorded once.
"""

from __future__ import annotations

import copy
import logging
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import RunFailed
from lengthlab.models.layout import PLAIN, Layout
from lengthlab.models.mixer import Mixer, padded_parts
from lengthlab.models.model import Network, logits
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Phase
from lengthlab.spec.seeds import seed_for
from lengthlab.switch import Switch
from lengthlab.tasks import IGNORE
from lengthlab.training.data import BLOCK, Block, Data, StepData
from lengthlab.training.mastery import Mastery
from lengthlab.training.optimizer import Rates, clip, optimizer_of
from lengthlab.training.precision import FP32, Precision
from lengthlab.training.switches import forget_closed, set_free, switched

log = logging.getLogger("lengthlab")


class TrainState:
    """Everything of a run that changes while it trains.

    `network` holds the weights in fp32. `compute` is the network that reads and gets gradients: the same one, or a copy in a
    shorter type that takes over the weights after every update. `padded` keeps to padded batches where documents would do, to
    compare.
    """

    def __init__(
        self, run: Run, device: torch.device, precision: Precision = FP32, padded: bool = False, models: int = 1
    ) -> None:
        self.run = run
        self.device = device
        self.precision = precision.name
        """With those before it, where a run goes on in another."""
        self.network = run.network().to(device)
        self.optimizer = optimizer_of(self.network, run)
        self._products = precision.products
        exact = precision.compute == torch.float32
        self.compute = self.network if exact else copy.deepcopy(self.network).to(precision.compute)
        self.step = 0
        self.mastery = Mastery(run)
        self.notes: list[str] = []
        """What a user should know of how this run is trained: one line each."""
        self._padded = padded
        self._shared = models >= kernels.BESIDE
        self._phase: Phase | None = None
        self._data: Data | None = None
        self._block: tuple[int, Block] | None = None
        self._switches: list[Switch] = []
        self._note_what_is_slow()

    def _note_what_is_slow(self) -> None:
        if self.data.documents is None:
            self.note(f"batches are padded, which is slower and as right: {self.data.padded_because}")
        elif isinstance(self.network, Network) and (parts := padded_parts(self.network.body)):
            names = ", ".join(dict.fromkeys(part.strip("_") for part in parts))
            self.note(f"rows of documents are padded around {names}, which knows no other way: slower, and as right as ever")
        if self.device.type != "cuda":
            return
        if self._shared and self.data.documents is None and any(isinstance(part, nn.LSTM) for part in self.network.modules()):
            self.note("beside other models an LSTM goes by its kernel, which takes longer and rounds less than cuDNN's")
        mixers = [module for module in self.network.modules() if isinstance(module, Mixer)]
        for lacks in dict.fromkeys(mixer.lacks for mixer in mixers if mixer.lacks):
            self.note(f"{lacks}: slower, and as right as ever")

    def note(self, text: str) -> None:
        """Say once what is slower than it could be, and why."""
        self.notes.append(text)
        log.info("%s: %s", self.run.title, text)

    @property
    def skipped(self) -> int:
        """Steps of the schedule that were not needed."""
        return sum(self.mastery.spared)

    @property
    def clock(self) -> int:
        """How far the schedule has come. Data and noise go by the steps made, phases and the end of the run by this."""
        return self.step + self.skipped

    @property
    def phase(self) -> Phase:
        """The phase of the next step; the last one when all are done."""
        return self.run.schedule.phases[self._number]

    @property
    def phase_end(self) -> int:
        """The step at which that phase is over, at the latest."""
        return self.mastery.ends[self._number]

    @property
    def _number(self) -> int:
        return min(self.run.phase_at(self.clock), len(self.run.schedule.phases) - 1)

    @property
    def data(self) -> Data:
        """What the phase of the next step reads."""
        if self._data is None or self.phase is not self._phase:
            self._data, self._block = Data(self.run, self.phase, self.network, self.device, self._padded, self._shared), None
        return self._data

    @property
    def rates(self) -> Rates:
        """The learning rates of the phase of the next step."""
        return self._rates_in(self._number)

    @property
    def rate_of_rest(self) -> float:
        """The learning rate of the step before, of all parts that have none of their own."""
        rates = self._rates_in(self.run.phase_at(self.clock - 1))
        return rates.value(rates.by_part["rest"], self.step - 1)

    def _rates_in(self, number: int) -> Rates:
        phase = self.run.schedule.phases[number]
        return Rates(phase, self._start_of(number), phase.steps_at(self.run.batch), self.mastery.slipped)

    def _start_of(self, number: int) -> int:
        """The step at which a phase began."""
        return self.mastery.ends[number - 1] if number else 0

    def step_data(self, step: int) -> StepData:
        """The data of a step of the phase under way."""
        data = self.data
        number, k = divmod(step, BLOCK)
        if self._block is None or self._block[0] != number:
            self._block = number, data.block(number)
        return self._block[1].step(torch.tensor([k], device=self.device))

    def advance(self) -> float:
        """One step; its loss."""
        self.enter_phase()
        self.rates.set(self.optimizer, self.step)
        torch.manual_seed(self.noise_seed)  # for a network with dropout
        value = float(self.backward(self.step_data(self.step)))
        if not math.isfinite(value):
            raise RunFailed(f"the loss is {value} at step {self.step + 1}: a smaller learning rate may help")
        self.update()
        self.step += 1
        return value

    @property
    def noise_seed(self) -> int:
        """Of the next step."""
        return seed_for("noise", self.run.seed) + self.step

    def look(self) -> None:
        """After a step, or several of one phase: whether that phase is over because what it is for is mastered, and whether
        what it is watched for has slipped.
        """
        self.mastery.look(self.network, self.step)

    def backward(self, data: StepData) -> Tensor:
        """Forward and backward pass; the loss."""
        for parameter in self.compute.parameters():
            parameter.grad = None
        with self._products():
            loss = answer_loss(self.compute, data, self.data.layout)
            if not self.data.task.asks_alike:  # a step of a mixture may ask nothing of what counts
                loss = loss.where((data.target_BQ != IGNORE).any(), 0.0)
            loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def update(self) -> None:
        """Let the optimizer move the weights by the gradients of the compute copy, and the copy take them over."""
        if self.compute is self.network:
            clip(self.network, self.run.optimizer)
            self.optimizer.step()
            return
        self.prepare()
        for own, copied in self._pairs():
            own.grad = None if copied.grad is None else own.grad
        moved = self._with_gradient()
        weights: list[Tensor] = [own for own, _ in moved]
        copies: list[Tensor] = [copied for _, copied in moved]
        with torch.no_grad():
            # Private: one launch for all parameters instead of one for each; a loop over `copy_` would be as right.
            torch._foreach_copy_(
                [own.grad for own in weights if own.grad is not None], [of.grad for of in copies if of.grad is not None]
            )
            clip(self.network, self.run.optimizer)
            self.optimizer.step()
            torch._foreach_copy_(copies, weights)  # private, as above
            for kept, buffer in self._buffers():
                # What the copy has rounded and not changed since stays exact.
                same = kept.to(buffer.dtype) == buffer
                kept.copy_(kept.where(same, buffer.to(kept.dtype)) if kept.is_floating_point() else buffer)

    def prepare(self) -> None:
        """After a first backward pass: make room for all that an update needs, so that it can be captured."""
        for own, copied in self._with_gradient():
            if own is not copied and own.grad is None:
                own.grad = torch.zeros_like(own)
            if not self.optimizer.state[own]:
                step = torch.zeros((), device=own.device)
                self.optimizer.state[own] = {
                    "step": step,
                    "exp_avg": torch.zeros_like(own),
                    "exp_avg_sq": torch.zeros_like(own),
                }

    def refresh(self) -> None:
        """After weights were loaded: let the compute copy have them too."""
        for own, copied in self._pairs():
            copied.data.copy_(own.data)
        for kept, buffer in self._buffers():
            buffer.copy_(kept)

    def _with_gradient(self) -> list[tuple[nn.Parameter, nn.Parameter]]:
        """Weights and their copies, as far as these have gradients."""
        return [(own, copied) for own, copied in self._pairs() if copied.grad is not None]

    def _pairs(self) -> list[tuple[nn.Parameter, nn.Parameter]]:
        return list(zip(self.network.parameters(), self.compute.parameters(), strict=True))

    def _buffers(self) -> list[tuple[Tensor, Tensor]]:
        """What the compute copy counts or averages while it reads (draws of random positions), beside the network's own."""
        return list(zip(self.network.buffers(), self.compute.buffers(), strict=True))

    def check_weights(self) -> None:
        """Refuse to keep what the last step may have broken: its own loss could not show it."""
        for name, parameter in self.network.named_parameters():
            if not torch.isfinite(parameter).all():
                raise RunFailed(f"{name} is not finite after step {self.step}: a smaller learning rate may help")

    def enter_phase(self) -> bool:
        """Switch the parts of the phase off, if it is a new one, and the others on; whether it is. What opens in the course of
        the phase is told the step.
        """
        new = self.phase is not self._phase
        if new:
            for switch in self._switches:
                set_free(switch)
            self._switches = [switched(of, self.run, self._number) for of in dict.fromkeys((self.network, self.compute))]
            self._phase, self._data, self._block = self.phase, None, None
        for switch in self._switches:
            switch.go_to(self.step - self._start_of(self._number))
            if new:
                forget_closed(switch, self.optimizer)
        return new


def answer_loss(network: nn.Module, data: StepData, layout: Layout = PLAIN) -> Tensor:
    """Mean cross-entropy over the tokens asked for, and nothing else."""
    logits_BQV = logits(network, data.tokens_BT, data.laid_out(layout))
    return F.cross_entropy(logits_BQV.flatten(0, 1).float(), data.target_BQ.flatten(), ignore_index=IGNORE)
