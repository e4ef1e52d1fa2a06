"""Delayed attention in real Hugging Face models and in the real Trainer."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from transformers.utils import logging

from lengthlab import Stages, delay, delay_attention, delayed, tasks, train
from lengthlab.errors import LabError
from lengthlab.integrations.huggingface import DelayedAttentionCallback, as_model
from lengthlab.spec.run import Run
from lengthlab.switch import Delay, DelayWarning
from small_lms import OWN, VOCABULARY, config_of, lm_of

logging.set_verbosity_error()
pytestmark = [pytest.mark.filterwarnings("ignore::FutureWarning"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]
DOCS = Path(__file__).parents[2] / "docs" / "delay.md"
RECURRENT = re.compile(r"(Mixer|MambaLayer|RecurrentBlock|GatedDeltaNet|DeltaAttention|ShortConv)$")
every_architecture = pytest.mark.parametrize("name", OWN)


def tokens(seed: int = 0) -> Tensor:
    return torch.randint(3, VOCABULARY, (2, 9), generator=torch.Generator().manual_seed(seed))


def logits(model: nn.Module, **named: Any) -> Tensor:
    with torch.no_grad():
        out: Tensor = model(tokens(), **named).logits
    return out


def generated(model: nn.Module, use_cache: bool) -> Tensor:
    out: Tensor = model.generate(tokens(), max_new_tokens=6, do_sample=False, use_cache=use_cache, pad_token_id=0)  # type: ignore[operator]
    return out


# Every architecture


@every_architecture
def test_attention_is_found_and_recurrent_mixers_are_left_alone(name: str) -> None:
    model = lm_of(name)
    sites = delay_attention(model).sites
    covered = {module for site in sites for module in site.module.modules()}
    rest = {type(module).__name__ for module in model.modules() if module not in covered}
    inner = {type(module).__name__ for site in sites for module in site.module.modules()}
    assert any(kind.endswith("Attention") for kind in inner)
    assert not any(RECURRENT.search(kind) for kind in inner)
    assert not [kind for kind in rest if kind.endswith("Attention") and not RECURRENT.search(kind)]
    assert name in ("GPT2", "Llama") or any(map(RECURRENT.search, rest))


@every_architecture
def test_closed_attention_never_runs_and_opening_brings_the_model_back(name: str) -> None:
    model = lm_of(name)
    before_BTV, state = logits(model), copy.deepcopy(model.state_dict())
    held, calls = delay_attention(model), []
    for site in held.sites:
        for module in site.module.modules():
            if module is not site.module:
                module.register_forward_hook(lambda *_: calls.append(1))
    assert not torch.equal(logits(model), before_BTV)
    assert not calls
    held.open()
    assert torch.equal(logits(model), before_BTV)
    assert calls
    assert all(torch.equal(old, new) for old, new in zip(state.values(), model.state_dict().values(), strict=True))


@every_architecture
def test_closed_attention_gets_no_gradient(name: str) -> None:
    model = lm_of(name).train()
    held = delay_attention(model)
    model(tokens(), labels=tokens()).loss.backward()
    assert all(parameter.grad is None for parameter in held.parameters())
    assert sum(parameter.grad is not None for parameter in model.parameters()) > 3
    held.open()
    model(tokens(), labels=tokens()).loss.backward()
    assert any(parameter.grad is not None and parameter.grad.abs().max() > 0 for parameter in held.parameters())


@every_architecture
def test_generation_with_and_without_a_cache_agrees_closed_and_open(name: str) -> None:
    model = lm_of(name)
    held = delay_attention(model)
    closed = generated(model, use_cache=True)
    assert torch.equal(closed, generated(model, use_cache=False))
    held.open()
    assert torch.equal(generated(model, use_cache=True), generated(model, use_cache=False))


@every_architecture
def test_a_whole_layer_that_is_off_passes_its_input_on(name: str) -> None:
    model = lm_of(name)
    layers = next(module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module) >= 2)
    seen: list[Tensor] = []
    for layer in layers[:2]:
        layer.register_forward_pre_hook(
            lambda module, inputs, named: seen.append(next(iter((*inputs, *named.values())))), with_kwargs=True
        )
    delay(model, layers[0])
    logits(model)
    assert torch.equal(*seen)
    assert torch.equal(generated(model, use_cache=True), generated(model, use_cache=False))


def test_attention_weights_can_be_asked_for_while_closed() -> None:
    model = lm_of("Llama", attn_implementation="eager")
    held = delay_attention(model)
    assert model(tokens(), output_attentions=True).attentions in (None, (None, None), ())
    held.open()
    assert [each.shape for each in model(tokens(), output_attentions=True).attentions] == 2 * [(2, 4, 9, 9)]


def table() -> str:
    rows = ["| architecture | switched off | left alone |", "|---|---|---|"]
    for name in OWN:
        model = lm_of(name)
        sites = delay_attention(model).sites
        off = {re.sub(r"\d+", "*", site.name): type(site.module).__name__ for site in sites}
        inside = {id(each) for site in sites for each in site.module.modules()}
        left = {
            type(module).__name__
            for module in model.modules()
            if RECURRENT.search(type(module).__name__) and id(module) not in inside
        }
        cells = ", ".join(f"`{pattern}` ({kind})" for pattern, kind in off.items())
        rows.append(f"| {name} | {cells} | {', '.join(sorted(left)) or '–'} |")
    return "\n".join(rows)


def test_the_table_in_the_docs_is_what_is_found() -> None:
    assert table() in DOCS.read_text(encoding="utf-8"), f"put this into docs/delay.md:\n{table()}"


# The Trainer


class Sentences(Dataset[dict[str, Tensor]]):
    """The same few, in order."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        row = torch.randint(3, VOCABULARY, (9,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": row, "labels": row}


def trainer_of(model: nn.Module, folder: Path, callback: DelayedAttentionCallback, **changes: Any) -> Trainer:
    usual = {
        "max_steps": 8,
        "per_device_train_batch_size": 2,
        "learning_rate": 1e-2,
        "weight_decay": 0.1,
        "report_to": "none",
        "disable_tqdm": True,
        "save_strategy": "no",
        "use_cpu": True,
        "logging_strategy": "no",
    }
    args = TrainingArguments(output_dir=str(folder), **usual | changes)
    return Trainer(model=model, args=args, train_dataset=Sentences(), eval_dataset=Sentences(), callbacks=[callback])


def train_quietly(trainer: Trainer, **named: Any) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, message=".*pin_memory.*")
        trainer.train(**named)


def copies(held: Delay) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in held.parameters()]


def watch_openings(callback: DelayedAttentionCallback) -> list[tuple[int, bool]]:
    """(step, open) after every step."""
    seen: list[tuple[int, bool]] = []
    own = callback.on_step_end

    def heard(args: Any, state: Any, control: Any, **rest: Any) -> None:
        own(args, state, control, **rest)
        assert callback.delay is not None
        seen.append((state.global_step, callback.delay.is_open))

    callback.on_step_end = heard  # type: ignore[method-assign]
    return seen


@pytest.mark.parametrize("accumulation", [1, 2])
def test_attention_stands_still_until_its_step_and_learns_then(tmp_path: Path, accumulation: int) -> None:
    model = lm_of("Jamba")
    before = copies(delay_attention(copy.deepcopy(model)))
    callback = DelayedAttentionCallback(until=5)
    seen = watch_openings(callback)
    trainer = trainer_of(model, tmp_path, callback, max_steps=4, gradient_accumulation_steps=accumulation)
    train_quietly(trainer)
    held = callback.delay
    assert isinstance(held, Delay)
    assert all(torch.equal(*pair) for pair in zip(before, held.parameters(), strict=True))
    state = trainer.optimizer.optimizer.state
    assert not any(parameter in state for parameter in held.parameters())
    trainer.args.max_steps = 8
    train_quietly(trainer_of(model, tmp_path, DelayedAttentionCallback(held), max_steps=8))
    assert not any(torch.equal(*pair) for pair in zip(before, held.parameters(), strict=True))
    assert seen == [(1, False), (2, False), (3, False), (4, False)]


def test_it_opens_at_its_step_and_its_optimizer_state_is_fresh(tmp_path: Path) -> None:
    callback = DelayedAttentionCallback(until=5)
    seen = watch_openings(callback)
    trainer = trainer_of(lm_of("Llama"), tmp_path, callback)
    train_quietly(trainer)
    assert seen == [(step, step >= 5) for step in range(1, 9)]
    state = trainer.optimizer.optimizer.state
    assert isinstance(callback.delay, Delay)
    assert {float(state[parameter]["step"]) for parameter in callback.delay.parameters()} == {3.0}


def test_it_opens_on_a_metric_of_an_evaluation(tmp_path: Path) -> None:
    callback = DelayedAttentionCallback(until=lambda metrics: metrics["eval_loss"] > 0)
    seen = watch_openings(callback)
    trainer = trainer_of(lm_of("Llama"), tmp_path, callback, eval_strategy="steps", eval_steps=3)
    train_quietly(trainer)
    assert [is_open for _, is_open in seen] == 3 * [False] + 5 * [True]


@pytest.mark.parametrize("stop", [3, 6], ids=["before the opening", "after the opening"])
@pytest.mark.parametrize("name", ["Llama", "Bamba"])
def test_a_resumed_training_ends_as_an_uninterrupted_one(tmp_path: Path, name: str, stop: int) -> None:
    choices = {"until": 5, "rate": 0.5, "warm_up": 4}
    whole = lm_of(name)
    saving = {"save_strategy": "steps", "save_steps": stop}
    train_quietly(trainer_of(whole, tmp_path / "whole", DelayedAttentionCallback(**choices), **saving))
    resumed, callback = lm_of(name), DelayedAttentionCallback(**choices)
    seen = watch_openings(callback)
    trainer = trainer_of(resumed, tmp_path / "resumed", callback)
    train_quietly(trainer, resume_from_checkpoint=str(tmp_path / "whole" / f"checkpoint-{stop}"))
    assert seen == [(step, step >= 5) for step in range(stop + 1, 9)]
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)


def checkpoint(folder: Path, name: str = "Llama", until: int = 5, step: int = 3) -> str:
    trainer = trainer_of(lm_of(name), folder, DelayedAttentionCallback(until=until), save_strategy="steps", save_steps=step)
    trainer.args.max_steps = step
    train_quietly(trainer)
    return str(folder / f"checkpoint-{step}")


def test_a_training_resumed_under_another_schedule_says_so(tmp_path: Path) -> None:
    kept = checkpoint(tmp_path / "first")
    trainer = trainer_of(lm_of("Llama"), tmp_path / "second", DelayedAttentionCallback(until=7))
    with pytest.warns(DelayWarning, match="was begun with until=5 and goes on with until=7"):
        train_quietly(trainer, resume_from_checkpoint=kept)


def test_a_checkpoint_of_a_model_with_other_parts_is_refused(tmp_path: Path) -> None:
    kept = checkpoint(tmp_path / "first")
    trainer = trainer_of(lm_of("Llama"), tmp_path / "second", DelayedAttentionCallback(modules="layers.1.self_attn", until=5))
    with pytest.raises(LabError, match=r"other parts are delayed: model\.layers\.0\.self_attn"):
        train_quietly(trainer, resume_from_checkpoint=kept)


def test_an_opening_in_the_past_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="until=0 is in the past"):
        train_quietly(trainer_of(lm_of("Llama"), tmp_path, DelayedAttentionCallback(until=0)))
    kept = checkpoint(tmp_path / "first")
    with pytest.warns(DelayWarning), pytest.raises(LabError, match="until=2 is in the past"):
        train_quietly(
            trainer_of(lm_of("Llama"), tmp_path / "second", DelayedAttentionCallback(until=2)), resume_from_checkpoint=kept
        )


def test_a_callback_that_is_added_twice_is_refused(tmp_path: Path) -> None:
    trainer = trainer_of(lm_of("Llama"), tmp_path, DelayedAttentionCallback(until=5))
    trainer.add_callback(DelayedAttentionCallback(until=5))
    with pytest.raises(LabError, match=r"'model\.layers\.0\.self_attn' is delayed already"):
        train_quietly(trainer)


def test_stages_open_one_after_another(tmp_path: Path) -> None:
    model = lm_of("Llama")
    stages = Stages(delay(model, "layers.0.self_attn", until=2), delay(model, "layers.1.self_attn", until=4))
    train_quietly(trainer_of(model, tmp_path, DelayedAttentionCallback(stages), max_steps=3))
    assert [stage.is_open for stage in stages.delays] == [True, False]


def test_saving_and_loading_a_pretrained_model_knows_nothing_of_the_delay(tmp_path: Path) -> None:
    model = lm_of("Jamba")
    open_BTV = logits(model)
    delay_attention(model)
    model.save_pretrained(tmp_path)  # type: ignore[operator]
    assert torch.equal(logits(AutoModelForCausalLM.from_pretrained(tmp_path).eval()), open_BTV)


def test_adapters_on_attention_are_delayed_with_it(tmp_path: Path) -> None:
    adapters = LoraConfig(r=2, target_modules=["q_proj", "v_proj", "down_proj"], task_type="CAUSAL_LM")
    model, callback = get_peft_model(lm_of("Llama"), adapters), DelayedAttentionCallback(until=3)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters() if "lora" in name}

    def moved() -> set[str]:
        after = dict(model.named_parameters())
        return {name.split(".")[-5] for name in before if not torch.equal(after[name], before[name])}

    train_quietly(trainer_of(model, tmp_path, callback, max_steps=2))
    assert moved() == {"mlp"}
    train_quietly(trainer_of(model, tmp_path, DelayedAttentionCallback(callback.delay), max_steps=5))
    assert moved() == {"mlp", "self_attn"}


def test_gradient_checkpointing_goes_on_across_the_opening(tmp_path: Path) -> None:
    plain, saving = lm_of("Llama"), lm_of("Llama")
    train_quietly(trainer_of(plain, tmp_path / "plain", DelayedAttentionCallback(until=3), max_steps=5))
    train_quietly(
        trainer_of(saving, tmp_path / "saving", DelayedAttentionCallback(until=3), max_steps=5, gradient_checkpointing=True)
    )
    for one, other in zip(plain.parameters(), saving.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_a_callback_without_an_opening_or_with_too_much_is_refused() -> None:
    with pytest.raises(LabError, match="DelayedAttentionCallback needs until="):
        DelayedAttentionCallback(modules="self_attn")
    with pytest.raises(LabError, match="leave out the others"):
        DelayedAttentionCallback(delay_attention(lm_of("Llama")), rate=0.5)


def test_a_model_is_left_as_it_was_where_its_checkpoint_is_refused(tmp_path: Path) -> None:
    kept, model = checkpoint(tmp_path / "first"), lm_of("Llama")
    trainer = trainer_of(model, tmp_path / "second", DelayedAttentionCallback(modules="layers.1.self_attn", until=5))
    with pytest.raises(LabError, match="other parts are delayed"):
        train_quietly(trainer, resume_from_checkpoint=kept)
    assert not any("forward" in vars(module) for module in model.modules())
    delay_attention(model)


def test_a_callback_closes_attention_in_every_model_that_it_meets(tmp_path: Path) -> None:
    callback = DelayedAttentionCallback(until=2)
    for name in ("Llama", "Llama"):
        model = lm_of(name)
        train_quietly(trainer_of(model, tmp_path, callback, max_steps=1))
        assert callback.delay is not None
        assert callback.delay.is_of(model)
        assert not callback.delay.is_open
    with pytest.raises(LabError, match="the delay is of another model"):
        train_quietly(trainer_of(lm_of("Llama"), tmp_path, DelayedAttentionCallback(callback.delay)))


def test_a_delay_that_watches_the_optimizer_already_can_be_handed_over(tmp_path: Path) -> None:
    model = lm_of("Llama")
    held = delay_attention(model, until=3, rate=0.5)
    trainer = trainer_of(model, tmp_path, DelayedAttentionCallback(held), max_steps=4)
    trainer.create_optimizer()
    held.watch(trainer.optimizer)
    train_quietly(trainer)
    assert (held.steps, held.opened_at) == (4, 3)


def test_the_best_model_has_attention_as_it_was_then(tmp_path: Path) -> None:
    callback = DelayedAttentionCallback(until=3)
    best = {"load_best_model_at_end": True, "metric_for_best_model": "eval_loss", "greater_is_better": True}  # the first is
    every = {"eval_strategy": "steps", "eval_steps": 2, "save_strategy": "steps", "save_steps": 2}
    trainer = trainer_of(lm_of("Llama"), tmp_path, callback, **best, **every)
    train_quietly(trainer)
    assert trainer.state.best_model_checkpoint.endswith("checkpoint-2")
    assert callback.delay is not None
    assert not callback.delay.is_open


# On our tasks


@pytest.mark.parametrize("make", [lambda: config_of("Jamba"), lambda: config_of("Llama")])
def test_any_causal_lm_can_be_the_model_of_a_run(tmp_path: Path, make: Callable[[], Any]) -> None:
    task = tasks.ModuloRecall(modulus=2, values=4, keys=12)
    run = Run(task, as_model(make()), delayed(3, joint=3, lr=1e-3), lengths=(1, 3), batch=4, evaluate=(3, 6))
    assert Run.from_json(run.to_json()) == run
    before = run.network().state_dict()
    result = train(run, tmp_path)
    assert result.accuracy(length=6) >= 0
    assert list(before) == list(result.network().state_dict())


def test_a_run_keeps_the_initialisation_of_the_library() -> None:
    network = as_model(config_of("Jamba")).build(VOCABULARY)
    torch.manual_seed(0)
    ours = as_model(config_of("Jamba")).build(VOCABULARY)
    torch.manual_seed(0)
    changes = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"))
    theirs = AutoModelForCausalLM.from_config(config_of("Jamba", **changes))
    assert all(torch.equal(one, other) for one, other in zip(ours.parameters(), theirs.parameters(), strict=True))
    assert sum(1 for _ in network.parameters()) == sum(1 for _ in theirs.parameters())
