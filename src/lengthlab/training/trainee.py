"""A run in training: its network, its optimizer, the switch on its delayed parts, and the step it has come to.

The plain, readable reference: one model, one step at a time, right on any device. A faster engine is held against it.
"""

from __future__ import annotations

import math

import torch

from lengthlab.delay import Delay, find
from lengthlab.errors import RunFailed
from lengthlab.run import Run
from lengthlab.schedule import Phase
from lengthlab.seeds import seed_for
from lengthlab.tasks import Batch
from lengthlab.training.loss import answer_loss
from lengthlab.training.optimizer import adam, set_rates


class Trainee:
    """Everything of a run that changes while it trains."""

    def __init__(self, run: Run, device: torch.device) -> None:
        self.run = run
        self.device = device
        self.network = run.network().to(device)
        self.optimizer = adam(self.network, run.schedule)
        self.generator = torch.Generator(device=device)
        self.step = 0
        self._phase: Phase | None = None
        self._delay = Delay(())

    @property
    def phase(self) -> Phase:
        """The phase of the next step; the last one when all are done."""
        return self.run.schedule.phases[min(self.run.phase_at(self.step), len(self.run.schedule.phases) - 1)]

    def batch(self, step: int) -> Batch:
        """The data of a step: a function of the run's seed and the step alone, so there is no random state to keep."""
        self.generator.manual_seed(seed_for("data", self.run.seed) + step)
        return self.run.task.sample(self.run.batch, self.run.lengths, self.generator)

    def advance(self) -> float:
        """One step; its loss."""
        self.enter_phase()
        torch.manual_seed(seed_for("noise", self.run.seed) + self.step)  # for a user's model with dropout
        loss = answer_loss(self.network, self.batch(self.step), self.phase.asks or self.run.task.questions)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        value = loss.item()
        if not math.isfinite(value):
            raise RunFailed(f"the loss is {value} at step {self.step + 1}: a smaller learning rate may help")
        self.optimizer.step()
        self.step += 1
        return value

    def check_weights(self) -> None:
        """Refuse to keep what the last step may have broken: its own loss could not show it."""
        for name, parameter in self.network.named_parameters():
            if not torch.isfinite(parameter).all():
                raise RunFailed(f"{name} is not finite after step {self.step}: a smaller learning rate may help")

    def enter_phase(self) -> None:
        """Switch the parts of the phase off, if it is a new one, and the others on."""
        if self.phase is self._phase:
            return
        self._delay.open()
        self._delay = Delay(find(self.network, *self.phase.off))
        self._delay.close()
        self._delay.forget(self.optimizer)
        set_rates(self.optimizer, self.phase)
        self._phase = self.phase
