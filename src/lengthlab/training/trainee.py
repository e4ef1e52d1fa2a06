"""A run in training: its network, its optimizer, the switch on its delayed parts, and the step it has come to.

One model, one step at a time, right on any device. The engine captures the same `blame` and `learn` and replays them.
"""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn

from lengthlab.errors import RunFailed
from lengthlab.models.documents import lay_out
from lengthlab.run import Run
from lengthlab.schedule import Phase
from lengthlab.seeds import seed_for
from lengthlab.switch import Delay, find
from lengthlab.training.feed import BLOCK, Block, Feed, Lesson, documents_of
from lengthlab.training.loss import answer_loss
from lengthlab.training.mastery import Mastery
from lengthlab.training.optimizer import adam, set_rates
from lengthlab.training.precision import FP32, Precision


class Trainee:
    """Everything of a run that changes while it trains.

    `network` holds the weights in fp32. `student` is who reads and is blamed: the same network, or a copy of it in a shorter
    type that takes over the weights after every step. `padded` keeps to padded batches where documents would do, to compare.
    """

    def __init__(self, run: Run, device: torch.device, precision: Precision = FP32, padded: bool = False) -> None:
        self.run = run
        self.device = device
        self.precision = precision.name
        """With those before it, where a run goes on in another."""
        self.network = run.network().to(device)
        self.optimizer = adam(self.network, run)
        exact = precision.compute == torch.float32
        self.student = self.network if exact else copy.deepcopy(self.network).to(precision.compute)
        self.feed = Feed(run, device, None if padded else documents_of(run, self.network, device))
        self.step = 0
        self.mastery = Mastery(run)
        self._block: tuple[int, Block] | None = None
        self._phase: Phase | None = None
        self._delays: list[Delay] = []

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

    def lesson(self, step: int) -> Lesson:
        """The data of a step."""
        number, k = divmod(step, BLOCK)
        if self._block is None or self._block[0] != number:
            self._block = number, self.feed.block(number)
        return self._block[1].lesson(torch.tensor([k], device=self.device))

    def advance(self) -> float:
        """One step; its loss."""
        self.enter_phase()
        torch.manual_seed(seed_for("noise", self.run.seed) + self.step)  # for a user's model with dropout
        value = float(self.blame(self.lesson(self.step)))
        if not math.isfinite(value):
            raise RunFailed(f"the loss is {value} at step {self.step + 1}: a smaller learning rate may help")
        self.learn()
        self.step += 1
        return value

    def look(self) -> None:
        """After a step, or several of one phase: whether that phase is over because what it is for is mastered."""
        self.mastery.look(self.network, self.step)

    def blame(self, lesson: Lesson) -> Tensor:
        """Forward and backward; the loss."""
        for parameter in self.student.parameters():
            parameter.grad = None
        lay_out(self.student, self.feed.documents)
        try:
            loss = answer_loss(self.student, lesson, self.phase.asks or self.run.task.questions)
        finally:
            lay_out(self.student, None)  # whoever measures the network reads single sequences
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def learn(self) -> None:
        """Let the optimizer move the weights as the student was blamed."""
        if self.student is self.network:
            self.optimizer.step()
            return
        self.prepare()
        for own, of in self._pairs():
            own.grad = None if of.grad is None else own.grad
        blamed = self._blamed()
        weights: list[Tensor] = [own for own, _ in blamed]
        copies: list[Tensor] = [of for _, of in blamed]
        with torch.no_grad():
            torch._foreach_copy_(
                [own.grad for own in weights if own.grad is not None], [of.grad for of in copies if of.grad is not None]
            )
            self.optimizer.step()
            torch._foreach_copy_(copies, weights)
            for own_count, count in self._counts():
                own_count.copy_(count)

    def prepare(self) -> None:
        """After a first blame: make room for all that learning needs, so that it can be captured."""
        for own, of in self._blamed():
            if own is not of and own.grad is None:
                own.grad = torch.zeros_like(own)
            if not self.optimizer.state[own]:
                step = torch.zeros((), device=own.device)
                self.optimizer.state[own] = {
                    "step": step,
                    "exp_avg": torch.zeros_like(own),
                    "exp_avg_sq": torch.zeros_like(own),
                }

    def refresh(self) -> None:
        """After weights were loaded: let the student have them too."""
        for own, of in self._pairs():
            of.data.copy_(own.data)
        for own_count, count in self._counts():
            count.copy_(own_count)

    def _blamed(self) -> list[tuple[nn.Parameter, nn.Parameter]]:
        """Weights and the student's copies of them, as far as the student has gradients."""
        return [(own, of) for own, of in self._pairs() if of.grad is not None]

    def _pairs(self) -> list[tuple[nn.Parameter, nn.Parameter]]:
        return list(zip(self.network.parameters(), self.student.parameters(), strict=True))

    def _counts(self) -> list[tuple[Tensor, Tensor]]:
        """What the student counts while it reads, beside the network's own."""
        pairs = zip(self.network.buffers(), self.student.buffers(), strict=True)
        return [(own, of) for own, of in pairs if not own.is_floating_point()]

    def check_weights(self) -> None:
        """Refuse to keep what the last step may have broken: its own loss could not show it."""
        for name, parameter in self.network.named_parameters():
            if not torch.isfinite(parameter).all():
                raise RunFailed(f"{name} is not finite after step {self.step}: a smaller learning rate may help")

    def enter_phase(self) -> bool:
        """Switch the parts of the phase off, if it is a new one, and the others on; whether it is."""
        if self.phase is self._phase:
            return False
        for delay in self._delays:
            delay.open()
        self._delays = [Delay(find(of, *self.phase.off)) for of in dict.fromkeys((self.network, self.student))]
        for delay in self._delays:
            delay.close()
            delay.forget(self.optimizer)
        set_rates(self.optimizer, self.phase)
        self._phase = self.phase
        return True
