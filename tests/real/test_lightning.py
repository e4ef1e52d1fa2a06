"""The callback in a real Lightning trainer: it opens when it was told to, and a resumed run knows whether it has."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from lengthlab.errors import LabError
from lengthlab.switch import DelayWarning, Stages, delay, delay_attention

lightning = pytest.importorskip("pytorch_lightning")

from lengthlab.integrations.lightning import DelayedAttention, _lightning  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated"),
    pytest.mark.filterwarnings("ignore:You defined a `validation_step` but have no `val_dataloader`"),
]
Begun = Callable[[DelayedAttention | None], Path]
GENTLY = {"rate": 0.5, "warm_up": 3, "ramp": 3}


class Mixer(lightning.LightningModule):  # type: ignore[name-defined, misc]
    """Attention with a residual path between two maps; it logs the step as a metric, too."""

    def __init__(self, attention: str = "attention", seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
        self.add_module(attention, nn.MultiheadAttention(4, 2, batch_first=True))
        self.called = attention

    @property
    def part(self) -> nn.Module:
        return self.get_submodule(self.called)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = self.first(x_BTD)
        return self.last(x_BTD + self.part(x_BTD, x_BTD, x_BTD, need_weights=False)[0])

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        return self.loss(batch[0])

    def loss(self, x_BTD: Tensor) -> Tensor:
        return (self(x_BTD) - x_BTD.cumsum(1)).square().mean()

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        self.log("step", float(self.global_step))

    def test_step(self, batch: list[Tensor], index: int) -> None:
        self.log("loss", self.loss(batch[0]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2, weight_decay=0.1)


def batches() -> DataLoader[Any]:
    """Four of two."""
    return DataLoader(TensorDataset(torch.randn(8, 3, 4, generator=torch.Generator().manual_seed(1))), batch_size=2)


def trainer_with(*callbacks: Any, epochs: int = 1, **options: Any) -> Any:
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    return lightning.Trainer(accelerator="cpu", max_epochs=epochs, callbacks=list(callbacks), **(quiet | options))


class Recorder(lightning.Callback):  # type: ignore[name-defined, misc]
    """At which step each batch began, and whether attention was on then."""

    def __init__(self, of: DelayedAttention) -> None:
        self.of, self.lines = of, []

    def on_train_batch_start(self, trainer: Any, *_: Any) -> None:
        self.lines.append((trainer.global_step, self.of.delay.is_open))


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one | other)


def test_while_off_attention_does_not_move_and_the_optimizer_knows_nothing_of_it() -> None:
    model, callback = Mixer(), DelayedAttention(until=100)
    before = weights(model)
    trainer = trainer_with(callback)
    trainer.fit(model, batches())
    assert same(weights(model.part), weights(Mixer().part))
    assert not torch.equal(before["first.weight"], model.first.weight)
    assert all(parameter.grad is None for parameter in model.part.parameters())
    assert not any(parameter in trainer.optimizers[0].state for parameter in model.part.parameters())
    assert not callback.delay.is_open
    assert callback.delay.steps == 4


@pytest.mark.parametrize(("accumulated", "epochs"), [(1, 2), (2, 2), (3, 3)])
def test_it_opens_at_a_step_of_the_optimizer_however_many_batches_make_one(accumulated: int, epochs: int) -> None:
    callback = DelayedAttention(until=3)
    diary = Recorder(callback)
    trainer_with(callback, diary, epochs=epochs, accumulate_grad_batches=accumulated).fit(Mixer(), batches())
    assert {step >= 3 for step, _ in diary.lines} == {True, False}
    assert all(is_open == (step >= 3) for step, is_open in diary.lines)


@pytest.mark.parametrize("options", [{}, GENTLY])
def test_it_does_what_a_loop_by_hand_does(options: dict[str, Any]) -> None:
    theirs, mine = Mixer(), Mixer()
    trainer_with(DelayedAttention(until=3, **options), epochs=2).fit(theirs, batches())
    optimizer = mine.configure_optimizers()
    by_hand = delay_attention(mine, until=3, **options).watch(optimizer)
    for _ in range(2):
        for (x_BTD,) in batches():
            optimizer.zero_grad()
            mine.loss(x_BTD).backward()
            optimizer.step()
    assert by_hand.opened_at == 3
    assert same(weights(theirs), weights(mine))


@pytest.mark.parametrize("options", [{}, GENTLY])
def test_it_opens_on_a_metric_of_a_validation_and_not_of_the_sanity_check(options: dict[str, Any]) -> None:
    seen = []

    def until(metrics: dict[str, float]) -> bool:
        seen.append(metrics["step"])
        return metrics["step"] >= 4

    callback = DelayedAttention(until=until, **options)
    model, diary = Mixer(), Recorder(callback)
    trainer_with(callback, diary, epochs=3, val_check_interval=2, num_sanity_val_steps=1).fit(model, batches(), batches())
    assert seen == [2.0, 4.0]
    assert all(type(value) is float for value in seen)
    assert all(is_open == (step >= 4) for step, is_open in diary.lines)
    assert not same(weights(model.part), weights(Mixer().part))


def test_a_metric_that_is_never_logged_is_told_of() -> None:
    with pytest.warns(DelayWarning, match="until= asks for 'accuracy', and there is: step"):
        trainer_with(DelayedAttention(until=lambda metrics: metrics["accuracy"] > 0.9)).fit(Mixer(), batches(), batches())


@pytest.fixture
def begun(tmp_path: Path) -> Begun:
    """A checkpoint of a run after four steps."""

    def save(callback: DelayedAttention | None) -> Path:
        trainer = trainer_with(*[callback] if callback else [])
        trainer.fit(Mixer(), batches())
        trainer.save_checkpoint(tmp_path / "run.ckpt")
        return tmp_path / "run.ckpt"

    return save


@pytest.mark.parametrize("options", [{}, GENTLY])
@pytest.mark.parametrize("until", [2, 3, 4, 6])
def test_a_resumed_run_is_the_run_that_was_never_interrupted(begun: Begun, until: int, options: dict[str, Any]) -> None:
    path = begun(DelayedAttention(until=until, **options))
    callback = DelayedAttention(until=until, **options)
    diary, resumed, whole = Recorder(callback), Mixer(seed=1), Mixer()
    trainer_with(callback, diary, epochs=3).fit(resumed, batches(), ckpt_path=path)
    trainer_with(DelayedAttention(until=until, **options), epochs=3).fit(whole, batches())
    assert [step for step, _ in diary.lines] == list(range(4, 12))
    assert all(is_open == (step >= until) for step, is_open in diary.lines)
    assert callback.delay.opened_at == until
    assert same(weights(resumed), weights(whole))


def test_a_run_opened_by_a_metric_is_open_when_it_is_resumed(tmp_path: Path) -> None:
    first = DelayedAttention(until=lambda metrics: metrics["step"] >= 2)
    trainer = trainer_with(first)
    trainer.fit(Mixer(), batches(), batches())
    trainer.save_checkpoint(tmp_path / "run.ckpt")
    assert first.delay.opened_at == 4
    callback = DelayedAttention(until=lambda metrics: False)
    diary = Recorder(callback)
    trainer_with(callback, diary, epochs=2).fit(Mixer(), batches(), ckpt_path=tmp_path / "run.ckpt")
    assert diary.lines == [(step, True) for step in range(4, 8)]


def test_a_run_resumed_under_another_schedule_is_told_of(begun: Begun) -> None:
    path, callback = begun(DelayedAttention(until=6)), DelayedAttention(until=7)
    with pytest.warns(DelayWarning, match="this run was begun with until=6 and goes on with until=7"):
        trainer_with(callback, epochs=2).fit(Mixer(), batches(), ckpt_path=path)
    assert callback.delay.opened_at == 7


def is_untouched(model: nn.Module) -> bool:
    return not any("forward" in vars(module) or module._forward_pre_hooks for module in model.modules())


@pytest.mark.filterwarnings("ignore:this run was begun with until=100")
@pytest.mark.parametrize("kept", [DelayedAttention(until=100), None])
def test_a_step_in_the_past_is_refused(begun: Begun, kept: DelayedAttention | None) -> None:
    path, model = begun(kept), Mixer()
    with pytest.raises(
        LabError, match=r"until=3 is in the past: the (checkpoint is closed after 4|trainer goes on from step 4)"
    ):
        trainer_with(DelayedAttention(until=3), epochs=2).fit(model, batches(), ckpt_path=path)
    assert is_untouched(model)


def test_a_checkpoint_without_a_delay_can_go_on_with_one(begun: Begun) -> None:
    path, callback = begun(None), DelayedAttention(until=6)
    trainer_with(callback, epochs=2).fit(Mixer(), batches(), ckpt_path=path)
    assert callback.delay.opened_at == 6


def test_a_checkpoint_of_a_model_with_other_parts_is_refused(begun: Begun) -> None:
    path, model = begun(DelayedAttention(until=100)), Mixer("mixer")
    checkpoint = torch.load(path, weights_only=False)
    checkpoint["state_dict"] = weights(model)
    torch.save(checkpoint, path)
    with pytest.raises(LabError, match="other parts are delayed: attention is not among those of this one"):
        trainer_with(DelayedAttention(until=100), epochs=2).fit(model, batches(), ckpt_path=path)
    assert is_untouched(model)


@torch.no_grad()
def mean_loss(model: Mixer) -> float:
    return float(torch.stack([model.loss(x_BTD) for (x_BTD,) in batches()]).mean())


@pytest.mark.parametrize("until", [2, 100])
def test_a_checkpoint_is_evaluated_as_it_was_made(begun: Begun, until: int) -> None:
    path, model = begun(DelayedAttention(until=until)), Mixer()
    callback = DelayedAttention(until=until)
    (found,) = trainer_with(callback).test(model, batches(), ckpt_path=path, verbose=False)
    assert callback.delay.is_open == (until == 2)
    wanted = mean_loss(model)
    assert found["loss"] == pytest.approx(wanted, rel=1e-6)
    callback.delay.open()
    assert (mean_loss(model) == wanted) == (until == 2)


def test_a_second_fit_goes_on_and_nothing_is_left_on_the_optimizer() -> None:
    model, callback = Mixer(), DelayedAttention(until=6, rate=0.5)
    diary = Recorder(callback)
    trainer = trainer_with(callback, diary)
    trainer.fit(model, batches())
    assert not callback.delay.is_open
    assert not trainer.optimizers[0]._optimizer_step_pre_hooks
    trainer.fit_loop.max_epochs = 2
    trainer.fit(model, batches())
    assert diary.lines == [(step, step >= 6) for step in range(8)]
    assert not trainer.optimizers[0]._optimizer_step_post_hooks
    assert is_untouched(model)


class Trip(lightning.Callback):  # type: ignore[name-defined, misc]
    def on_train_batch_start(self, trainer: Any, model: Any, batch: Any, index: int) -> None:
        if index == 2:
            raise ValueError("tripped")


def test_a_fit_that_breaks_off_leaves_nothing_on_the_optimizer_and_can_be_taken_up() -> None:
    model, callback = Mixer(), DelayedAttention(until=6)
    trainer = trainer_with(callback, Trip())
    with pytest.raises(ValueError, match="tripped"):
        trainer.fit(model, batches())
    assert not trainer.optimizers[0]._optimizer_step_pre_hooks
    assert (callback.delay.steps, callback.delay.is_open) == (2, False)
    trainer_with(callback, epochs=2).fit(model, batches())
    assert callback.delay.opened_at == 6


def test_a_fit_by_another_trainer_counts_on() -> None:
    model, callback = Mixer(), DelayedAttention(until=6, warm_up=4)
    trainer_with(callback).fit(model, batches())
    trainer_with(callback).fit(model, batches())
    assert callback.delay.opened_at == 6
    assert callback.delay.steps == 8
    trainer_with(callback).fit(model, batches())
    assert callback.delay.steps == 12


def test_a_fit_of_another_model_starts_afresh() -> None:
    callback, second = DelayedAttention(until=3), Mixer()
    trainer_with(callback).fit(Mixer(), batches())
    trainer_with(callback).fit(second, batches())
    assert callback.delay.sites[0].module is second.part
    assert callback.delay.opened_at == 3


def test_a_delay_that_is_made_already_can_be_given() -> None:
    model = Mixer()
    stages = Stages(delay(model, "attention", until=1), delay(model, "first", until=3, instead="input"))
    callback = DelayedAttention(delay=stages)
    diary = Recorder(callback)
    trainer_with(callback, diary, epochs=2, gradient_clip_val=1.0).fit(model, batches())
    assert diary.lines == [(step, step >= 3) for step in range(8)]
    assert [each.opened_at for each in stages.delays] == [1, 3]


def test_a_delay_that_watches_the_optimizer_already_counts_each_step_once() -> None:
    model = Mixer()
    optimizer = model.configure_optimizers()
    model.configure_optimizers = lambda: optimizer
    made = delay_attention(model, until=3).watch(optimizer)
    trainer_with(DelayedAttention(delay=made)).fit(model, batches())
    assert (made.steps, made.opened_at) == (4, 3)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "DelayedAttention needs until=, a step or a function of metrics, or a delay"),
        ({"until": 3, "delay": delay_attention(Mixer())}, "leave out the others"),
    ],
)
def test_what_is_missing_or_too_much_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(LabError, match=text):
        DelayedAttention(**options)


def test_a_delay_of_another_model_is_refused() -> None:
    callback = DelayedAttention(delay=delay_attention(Mixer(), until=3))
    with pytest.raises(LabError, match="the delay is of another model than the one that is fitted"):
        trainer_with(callback).fit(Mixer(), batches())


def test_a_model_without_attention_is_refused() -> None:
    model = Mixer()
    model.forward = model.first
    del model._modules["attention"]
    with pytest.raises(LabError, match="no softmax attention found"):
        trainer_with(DelayedAttention(until=3)).fit(model, batches())


def test_two_of_them_are_refused() -> None:
    with pytest.raises(RuntimeError, match="more than one stateful callback of type `DelayedAttention`"):
        trainer_with(DelayedAttention(until=3), DelayedAttention(until=4))
    trainer = trainer_with(DelayedAttention(until=3))
    trainer.callbacks.append(DelayedAttention(until=4))
    with pytest.raises(LabError, match=r"DelayedAttention is there twice: give the trainer one"):
        trainer.fit(Mixer(), batches())


@pytest.fixture
def alone() -> Iterator[None]:
    """A DDP strategy leaves a process group of one, and the variables that it was made from."""
    before = dict(os.environ)
    yield
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    for name in set(os.environ) - set(before):
        del os.environ[name]


@pytest.mark.usefixtures("alone")
def test_ddp_has_to_expect_parameters_without_a_gradient() -> None:
    model = Mixer()
    with pytest.raises(LabError, match='set strategy="ddp_find_unused_parameters_true"'):
        trainer_with(DelayedAttention(until=3), strategy="ddp", devices=1).fit(model, batches())
    assert is_untouched(model)
    callback = DelayedAttention(until=3)
    trainer_with(callback, strategy="ddp_find_unused_parameters_true", devices=1).fit(model, batches())
    assert callback.delay.opened_at == 3


def test_the_lightning_that_is_in_use_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _lightning() is lightning
    other = ModuleType("lightning.pytorch")
    monkeypatch.setitem(sys.modules, "lightning.pytorch", other)
    monkeypatch.delitem(sys.modules, "pytorch_lightning")
    assert _lightning() is other
    monkeypatch.delitem(sys.modules, "lightning.pytorch")
    monkeypatch.setattr("lengthlab.integrations.lightning.PACKAGES", ("no_such_lightning",))
    with pytest.raises(LabError, match="Lightning is not installed"):
        _lightning()
