"""Delayed attention in a Lightning trainer.

    trainer = Trainer(max_steps=20_000, callbacks=[DelayedAttention(until=2_000)])

Lightning's own callbacks for finetuning freeze weights, and what is frozen goes on feeding the rest of the model. What is off
is skipped.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Unpack

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from lengthlab.errors import LabError, require
from lengthlab.integrations.first_batch import FirstBatch
from lengthlab.switch import Delay, DelayOptions, Stages
from lengthlab.switch.closing import delay_as_kept, require_delay_or_until
from lengthlab.switch.record import FIELD, records_of

PACKAGES = ("pytorch_lightning", "lightning.pytorch")
"""The two names under which Lightning is published."""


def _lightning() -> Any:
    """The package that is in use already, or else the one that is installed."""
    loaded = [name for name in PACKAGES if name in sys.modules]
    for name in loaded or PACKAGES:
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    raise LabError("Lightning is not installed: pip install 'lengthlab[lightning]'")


class DelayedAttention(_lightning().Callback):  # type: ignore[misc]
    """Attention is off until a step of the optimizer, or until a function of the metrics of a validation is true.

    The options are those of `delay_attention`; or give it a delay that is made already: `DelayedAttention(stages)`. Steps
    are `trainer.global_step`, so that batches of which several make one step count once. Checkpoints keep whether attention is
    on, and after a fit it stays as it is. Before the first update `delay.check` is run on the first batch. `callback.delay` is
    the switch.

    >>> callback = DelayedAttention(until=lambda metrics: metrics["val_loss"] < 0.1, rate=0.5)
    >>> callback.delay is None  # attention is looked for when fitting begins
    True
    """

    def __init__(self, delay: Delay | Stages | None = None, **options: Unpack[DelayOptions]) -> None:
        super().__init__()
        require_delay_or_until("DelayedAttention", delay, options)
        self._given = delay is not None
        self._options = options
        self._kept: dict[str, Any] = {}
        """The state in a checkpoint, until there is a delay to load it."""
        self._before = 0
        """Steps that were made before the trainer's own count began."""
        self._first: FirstBatch | None = None
        self.delay = delay

    @property
    def state_key(self) -> str:
        """The name in checkpoints: the same for every schedule, so that a run can go on under another one."""
        return type(self).__name__

    def state_dict(self) -> dict[str, Any]:
        return self._kept if self.delay is None else self.delay.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self.delay is None:
            self._kept = state_dict
        else:
            self.delay.load_state_dict(state_dict)

    def on_save_checkpoint(self, trainer: Any, pl_module: nn.Module, checkpoint: dict[str, Any]) -> None:
        """For those who load it without this callback: `lengthlab.close_again(model, path)` reads it."""
        if self.delay is not None and not self.delay.is_open:
            checkpoint[FIELD] = [
                record.as_json() for record in records_of(self.delay.delays if isinstance(self.delay, Stages) else [self.delay])
            ]

    def setup(self, trainer: Any, pl_module: nn.Module, stage: str) -> None:
        others = [each for each in trainer.callbacks if isinstance(each, DelayedAttention) and each is not self]
        require(not others, "DelayedAttention is there twice: give the trainer one, with delay=Stages(...) for several parts")
        if self.delay is not None and not self.delay.is_of(pl_module):
            require(not self._given, "the delay is of another model than the one that is fitted: make it from this one")
            self.delay = None

    def on_fit_start(self, trainer: Any, pl_module: nn.Module) -> None:
        if self.delay is None:
            self.delay = self._made(pl_module, trainer)
        else:
            _require_unused_are_found(self.delay, trainer)

    def on_train_start(self, trainer: Any, pl_module: nn.Module) -> None:
        delay = self._present()
        self._before = max(0, delay.steps - trainer.global_step)
        steps = self._before + trainer.global_step
        try:
            _require_future(delay, steps)
        except LabError:
            self._drop()
            raise
        delay.go_to(steps)
        for optimizer in trainer.optimizers:
            delay.unwatch(optimizer)  # somebody may have asked for it to be counted, too
            delay.watch(optimizer, counts=False)
        self._first = FirstBatch(delay, pl_module)

    def on_before_optimizer_step(self, trainer: Any, pl_module: nn.Module, optimizer: Any) -> None:
        if self._first is not None:
            self._first.check()

    def on_train_batch_end(self, trainer: Any, pl_module: nn.Module, *batch: Any) -> None:
        self._present().go_to(self._before + trainer.global_step)

    def on_validation_end(self, trainer: Any, pl_module: nn.Module) -> None:
        if self.delay is not None and trainer.state.fn == "fit" and not trainer.sanity_checking:
            metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
            self.delay.observe(trainer.strategy.broadcast(metrics))  # that all processes decide alike

    def on_train_end(self, trainer: Any, pl_module: nn.Module) -> None:
        if self._first is not None:
            self._first.end()
        for optimizer in trainer.optimizers if self.delay is not None else ():
            self._present().unwatch(optimizer)

    def on_exception(self, trainer: Any, pl_module: nn.Module, exception: BaseException) -> None:
        self.on_train_end(trainer, pl_module)

    def on_validation_start(self, trainer: Any, pl_module: nn.Module) -> None:
        self._recall(pl_module)

    def on_test_start(self, trainer: Any, pl_module: nn.Module) -> None:
        self._recall(pl_module)

    def on_predict_start(self, trainer: Any, pl_module: nn.Module) -> None:
        self._recall(pl_module)

    def _recall(self, pl_module: nn.Module) -> None:
        """A checkpoint that is evaluated without a fit is evaluated as it was made: closed, if it was."""
        if self.delay is None and self._kept:
            self.delay = self._made(pl_module)

    def _made(self, pl_module: nn.Module, trainer: Any = None) -> Delay:
        """A delay of this model, in the state of the checkpoint; where that fails, the model is left as it was."""
        made = delay_as_kept(pl_module, self._options, self._kept)
        try:
            _require_unused_are_found(made, trainer)
        except LabError:
            made.remove()
            raise
        self._kept = {}
        return made

    def _drop(self) -> None:
        """Leave the model as it was, unless the delay is somebody else's."""
        if self.delay is not None and not self._given:
            self.delay.remove()
            self.delay = None

    def _present(self) -> Delay | Stages:
        assert self.delay is not None
        return self.delay


def _require_unused_are_found(delay: Delay | Stages, trainer: Any) -> None:
    wrapper = getattr(getattr(trainer, "strategy", None), "model", None)
    if isinstance(wrapper, DistributedDataParallel) and not delay.is_open:
        require(
            wrapper.find_unused_parameters and not wrapper.static_graph,
            'DDP waits for gradients of attention, which is off: set strategy="ddp_find_unused_parameters_true"',
        )


def _require_future(delay: Delay | Stages, steps: int) -> None:
    """A checkpoint that was made without a delay may be past the step at which this one should open."""
    for each in delay.delays if isinstance(delay, Stages) else (delay,):
        late = not each.is_open and isinstance(each.until, int) and steps > each.steps and steps >= each.until
        require(not late, f"until={each.until} is in the past: the trainer goes on from step {steps}")
