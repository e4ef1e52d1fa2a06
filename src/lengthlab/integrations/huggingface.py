"""Delayed attention in Hugging Face's Trainer, and its models on our tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Unpack

from lengthlab.errors import LabError, require
from lengthlab.integrations.first_batch import FirstBatch
from lengthlab.models import CausalLm
from lengthlab.switch import Delay, DelayOptions, Stages
from lengthlab.switch.closing import delay_as_kept, require_delay_or_until
from lengthlab.switch.record import FIELD

try:
    from transformers import PreTrainedConfig, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
    from transformers.trainer import TRAINER_STATE_NAME
    from transformers.training_args import ParallelMode
except ImportError:
    raise LabError("Hugging Face's transformers is not installed: pip install 'lengthlab[huggingface]'") from None

KEPT = "lengthlab.delay"
"""Under this name the state lies in `trainer_state.json`, which the Trainer reads back by itself. (What it calls stateful
callbacks are made anew from their JSON on resume, and a metric's function does not go into JSON.)"""


class DelayedAttentionCallback(TrainerCallback):
    """Attention is off when training begins, and opens `until` a step or a metric of an evaluation says so.

        Trainer(model, ..., callbacks=[DelayedAttentionCallback(until=2_000)])

    The options are those of `delay_attention`. A delay of your own, or several in `Stages`, can be handed over instead. The
    state is saved with every checkpoint and restored from it. Before the first update `delay.check` is run on the first batch.
    """

    def __init__(self, delay: Delay | Stages | None = None, **options: Unpack[DelayOptions]) -> None:
        require_delay_or_until("DelayedAttentionCallback", delay, options)
        self.delay = delay
        self._given = delay is not None
        self._options = options
        self._before = 0
        """Steps that were made before the trainer's own count began."""
        self._watched: Any = None
        self._first: FirstBatch | None = None

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any) -> None:
        _check_ddp(args)
        kept = _callbacks(state).get(KEPT)
        if self.delay is not None and not self.delay.is_of(rest["model"]):
            require(not self._given, "the delay is of another model than the one that is trained: make it from this one")
            self.delay = None
        if self.delay is None:
            self._check_past(state, kept)
            self.delay = delay_as_kept(rest["model"], self._options, kept)
        elif kept:
            self.delay.load_state_dict(kept)
        self._before = max(0, self.delay.steps - state.global_step)
        self.delay.go_to(self._before + state.global_step)
        self._watch(rest.get("optimizer"))
        self._keep(state)
        self._first = FirstBatch(self.delay, rest["model"])

    def on_pre_optimizer_step(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any) -> None:
        if self._first is not None:
            self._first.check()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any) -> None:
        self._delay.go_to(self._before + state.global_step)
        self._keep(state)

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any) -> None:
        if self.delay is not None:  # an evaluation may come before any training
            self.delay.observe(rest.get("metrics") or {})
            self._keep(state)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any) -> None:
        if self._watched is not None:
            self._delay.unwatch(self._watched)
            self._watched = None
        if self._first is not None:
            self._first.end()
        best = Path(state.best_model_checkpoint or "") / TRAINER_STATE_NAME
        if args.load_best_model_at_end and best.is_file():  # the weights are those of that step, and so must the switch be
            self._delay.load_state_dict(_callbacks(TrainerState.load_from_json(str(best)))[KEPT])

    @property
    def _delay(self) -> Delay | Stages:
        assert self.delay is not None
        return self.delay

    def _check_past(self, state: TrainerState, kept: object) -> None:
        until = self._options.get("until")
        late = not kept and isinstance(until, int) and until <= state.global_step > 0
        require(not late, f"until={until} is in the past: the checkpoint is at step {state.global_step} and knows of no delay")

    def _watch(self, optimizer: Any) -> None:
        if optimizer is not None:
            self._delay.unwatch(optimizer)  # somebody may have asked for it to be counted, too
            self._delay.watch(optimizer, counts=False)
            self._watched = optimizer

    def _keep(self, state: TrainerState) -> None:
        _callbacks(state)[KEPT] = self._delay.state_dict()


def _callbacks(state: TrainerState) -> dict[str, Any]:
    kept = state.stateful_callbacks
    assert isinstance(kept, dict)
    return kept


def _check_ddp(args: TrainingArguments) -> None:
    """While attention is off its parameters have no gradient, and DDP would wait for one."""
    found = args.ddp_find_unused_parameters
    looks = not args.gradient_checkpointing if found is None else found  # the Trainer's own rule
    if args.parallel_mode == ParallelMode.DISTRIBUTED and not looks:
        raise LabError("several processes need TrainingArguments(ddp_find_unused_parameters=True) while attention is off")


def as_model(config: PreTrainedConfig, name: str | None = None) -> CausalLm:
    """A causal language model of this configuration as the `model` of a run: trained and measured on our tasks as ours are.

    >>> from transformers import LlamaConfig
    >>> sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    >>> llama = as_model(LlamaConfig(**sizes))
    >>> llama.name, sum(each.numel() for each in llama.build(vocabulary=20).parameters())
    ('llama', 2480)
    """
    fields = config.to_diff_dict() | {"model_type": config.model_type}
    dropped = ("transformers_version", "architectures", "dtype", "vocab_size", FIELD)
    return CausalLm(name or config.model_type, json.dumps({key: fields[key] for key in sorted(fields) if key not in dropped}))
