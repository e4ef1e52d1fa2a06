"""The callbacks check a delay on the first batch of a training, and the training does not notice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainingArguments

from lengthlab.integrations.huggingface import DelayedAttentionCallback
from lengthlab.switch import Delay, DelayWarning, delay_attention
from lengthlab.switch.check import DelayReport
from small_lms import VOCABULARY, lm_of

lightning = pytest.importorskip("pytorch_lightning")
from lengthlab.integrations.lightning import DelayedAttention  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated"),
    pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
Seen = list[tuple[nn.Module, Any]]


def checked(held: Delay) -> Seen:
    """Who was checked and on what, by the check itself."""
    seen: Seen = []
    check = held.check

    def spied(batch: Any, model: nn.Module | None = None) -> DelayReport:
        assert model is not None
        seen.append((model, batch))
        return check(batch, model)

    held.check = spied  # type: ignore[method-assign]
    return seen


class Body(nn.Module):
    """With dropout and running statistics: what a forward more would change."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=8, dropout=0.5, batch_first=True)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x_BTD: Tensor, scale: float = 1.0) -> Tensor:
        out: Tensor = self.norm(self.layer(x_BTD) * scale)
        return out


class Holder(lightning.LightningModule):  # type: ignore[name-defined, misc]
    """Holds its model, and calls it as it likes."""

    def __init__(self, call: str = "held") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.called, self.losses = Body(), call, []

    def forward(self, x_BTD: Tensor) -> Tensor:
        out: Tensor = self.body(x_BTD, scale=2.0)
        return out

    def training_step(self, batch: Tensor, index: int) -> Tensor:
        out = {
            "itself": lambda: self(batch),
            "held": lambda: self.body(batch, scale=2.0),
            "parts": lambda: self.body.layer.linear1(batch),
        }[self.called]()
        loss: Tensor = out.cos().mean()
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def fit(model: Holder, callback: DelayedAttention, **options: Any) -> None:
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    data = torch.randn(8, 3, 8, generator=torch.Generator().manual_seed(1))
    trainer = lightning.Trainer(accelerator="cpu", max_epochs=1, callbacks=[callback], **quiet | options)
    torch.manual_seed(2)
    trainer.fit(model, DataLoader(data, batch_size=2))


def no_hook(model: nn.Module) -> bool:
    return not any(module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("call", ["itself", "held"])
def test_lightning_checks_the_outermost_module_that_is_called_once(call: str) -> None:
    model = Holder(call)
    held = delay_attention(model, until=3)
    seen = checked(held)
    fit(model, DelayedAttention(held))
    ((module, batch),) = seen
    assert module is (model if call == "itself" else model.body)
    assert (len(batch.args), dict(batch.kwargs)) == (1, {"scale": 2.0} if call == "held" else {})
    assert no_hook(model)


@pytest.mark.parametrize("options", [{}, {"accumulate_grad_batches": 2}, {"precision": "bf16-mixed"}])
def test_lightning_trains_bit_for_bit_as_without_the_check(options: dict[str, Any]) -> None:
    results = []
    for with_check in (True, False):
        model = Holder()
        held = delay_attention(model, until=3)
        seen = checked(held)
        if not with_check:
            held.check = lambda batch, model=None: None  # type: ignore[method-assign, assignment]
        fit(model, DelayedAttention(held), **options)
        assert len(seen) == with_check
        results.append((model.losses, [each.clone() for each in model.state_dict().values()], torch.rand(1)))
    (losses, weights, draw), (other_losses, other_weights, other_draw) = results
    assert losses == other_losses
    assert torch.equal(draw, other_draw)
    assert all(torch.equal(one, other) for one, other in zip(weights, other_weights, strict=True))


def test_a_step_that_calls_parts_one_by_one_is_told_of() -> None:
    model = Holder("parts")
    held = delay_attention(model, until=3)
    seen = checked(held)
    with pytest.warns(DelayWarning, match="were not checked: the training step does not call one module that has them all"):
        fit(model, DelayedAttention(held))
    assert not seen
    assert no_hook(model)


def test_an_open_delay_is_not_checked() -> None:
    model = Holder()
    held = delay_attention(model, until=3)
    seen = checked(held)
    held.open()
    fit(model, DelayedAttention(held))
    assert not seen


class Losses(TrainerCallback):
    def __init__(self) -> None:
        self.seen: list[float] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **rest: Any) -> None:
        self.seen += [logs["loss"], logs["grad_norm"]] if "loss" in logs else []


def train(folder: Path, with_check: bool, **options: Any) -> tuple[nn.Module, list[float], Seen]:
    model = lm_of("Llama", attention_dropout=0.3).train()
    rows = [torch.randint(3, VOCABULARY, (9,), generator=torch.Generator().manual_seed(row)) for row in range(16)]
    held, losses = delay_attention(model, until=3), Losses()
    seen = checked(held)
    if not with_check:
        held.check = lambda batch, model=None: None  # type: ignore[method-assign, assignment]
    args = TrainingArguments(
        str(folder), max_steps=4, per_device_train_batch_size=2, report_to="none", disable_tqdm=True, save_strategy="no",
        use_cpu=True, logging_steps=1, learning_rate=1e-2, **options,
    )  # fmt: skip
    data: Any = [{"input_ids": row, "labels": row} for row in rows]
    Trainer(model=model, args=args, train_dataset=data, callbacks=[DelayedAttentionCallback(held), losses]).train()
    return model, losses.seen, seen


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # on a CPU without bf16
@pytest.mark.parametrize("options", [{}, {"gradient_accumulation_steps": 2}, {"bf16": True}])
def test_the_trainer_checks_its_first_batch_and_trains_bit_for_bit_as_without(tmp_path: Path, options: dict[str, Any]) -> None:
    model, losses, seen = train(tmp_path, True, **options)
    other, other_losses, nothing = train(tmp_path, False, **options)
    ((module, batch),) = seen
    assert module is model
    assert batch.kwargs["input_ids"].shape == (2, 9)
    assert not nothing
    assert losses == other_losses
    assert len(losses) == 8
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), other.parameters(), strict=True))
    assert no_hook(model)
