"""What is saved while attention is off says so, and one line closes it again."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import AutoModelForCausalLM

import lengthlab as ll
from command import Call
from lengthlab.errors import LabError
from lengthlab.integrations.checkpoints import closed_in, warn_if_saved_closed
from lengthlab.switch import Delay, DelayWarning, Stages, delay, delay_attention
from small_lms import VOCABULARY, config_of, lm_of

lightning = pytest.importorskip("pytorch_lightning")
from lengthlab.integrations.lightning import DelayedAttention  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated"),
]


def tokens() -> Tensor:
    return torch.randint(3, VOCABULARY, (2, 9), generator=torch.Generator().manual_seed(0))


def logits(model: nn.Module) -> Tensor:
    with torch.no_grad():
        out: Tensor = model(tokens()).logits
    return out


def saved_closed(folder: Path, steps: int = 3, **options: Any) -> tuple[nn.Module, Delay]:
    model = lm_of("Llama")
    held = delay_attention(model, **{"until": 10} | options)
    held.go_to(steps)
    model.save_pretrained(folder)  # type: ignore[operator]
    return model, held


def loaded(folder: Path) -> nn.Module:
    model: nn.Module = AutoModelForCausalLM.from_pretrained(folder)
    return model.eval()


# Hugging Face: a field of the configuration


def test_a_configuration_says_what_is_off_as_long_as_it_is(tmp_path: Path) -> None:
    model, held = saved_closed(tmp_path)
    (entry,) = json.loads((tmp_path / "config.json").read_text())["lengthlab_delay"]
    assert entry["sites"] == ["model.layers.0.self_attn", "model.layers.1.self_attn"]
    assert (entry["steps"], entry["until"], entry["instead"]) == (3, 10, ["zeros", "zeros"])
    held.open()
    model.save_pretrained(tmp_path)  # type: ignore[operator]
    assert "lengthlab" not in (tmp_path / "config.json").read_text()
    held.close()
    held.remove()
    assert not hasattr(model.config, "lengthlab_delay")


def test_one_line_closes_a_loaded_model_again(tmp_path: Path) -> None:
    model, _ = saved_closed(tmp_path, ramp=4)
    for source in (None, tmp_path, json.loads((tmp_path / "config.json").read_text())):
        again = loaded(tmp_path)
        assert not torch.equal(logits(again), logits(model))
        held = ll.close_again(again, source)
        assert isinstance(held, Delay)
        assert torch.equal(logits(again), logits(model))
        assert (held.steps, held.until, held.opening.ramp) == (3, 10, 4)
        held.go_to(10)
        assert held.opened_at == 10


def test_a_new_delay_of_a_model_that_was_saved_closed_is_told_of(tmp_path: Path) -> None:
    saved_closed(tmp_path)
    model = loaded(tmp_path)
    with pytest.warns(DelayWarning, match=r"saved with model.layers.0.self_attn and 1 more off after 3 steps, until step 10"):
        held = delay_attention(model, until=5)
    held.remove()
    delay_attention(model, until=5)  # it is said once: that it was removed is known


def test_a_copy_that_is_still_closed_is_no_loaded_model() -> None:
    model = lm_of("Llama")
    held = delay_attention(model, until=5)
    other = copy.deepcopy(model)
    delay_attention(other, until=7).open()
    assert not hasattr(other.config, "lengthlab_delay")
    assert hasattr(model.config, "lengthlab_delay")
    held.open()


def test_stages_are_closed_again_in_their_order(tmp_path: Path) -> None:
    model = lm_of("Llama")
    stages = Stages(*(delay(model, f"layers.{layer}.self_attn", until=10 * (layer + 1)) for layer in (0, 1)))
    model.save_pretrained(tmp_path)  # type: ignore[operator]
    again = ll.close_again(loaded(tmp_path))
    assert isinstance(again, Stages)
    again.go_to(10)
    assert [each.is_open for each in again.delays] == [True, False]
    stages.go_to(10)
    model.save_pretrained(tmp_path)  # type: ignore[operator]
    (left,) = closed_in(tmp_path)
    assert (left.sites, left.steps) == (("model.layers.1.self_attn",), 10)


def test_a_metric_has_to_be_said_again(tmp_path: Path) -> None:
    saved_closed(tmp_path, until=lambda metrics: metrics["loss"] < 1)
    with pytest.warns(DelayWarning, match="until a metric says so, and a function is not saved"):
        ll.close_again(loaded(tmp_path))
    held = ll.close_again(loaded(tmp_path), until=lambda metrics: metrics["loss"] < 1)
    held.observe({"loss": 0.5})
    assert held.is_open


def test_what_stood_in_is_what_stands_in_again(tmp_path: Path) -> None:
    model = lm_of("Llama")
    held = delay(model, "layers.0", instead="zeros")  # by itself it would be its input
    model.save_pretrained(tmp_path)  # type: ignore[operator]
    again = loaded(tmp_path)
    ll.close_again(again)
    assert torch.equal(logits(again), logits(model))
    held.remove()
    delay(model, "layers.0", instead=lambda hidden_states, **_: hidden_states)
    model.save_pretrained(tmp_path)  # type: ignore[operator]
    with pytest.raises(LabError, match=r"'model.layers.0' gave <lambda> while it was off: say instead="):
        ll.close_again(loaded(tmp_path))


def test_a_model_with_a_head_less_has_shorter_names(tmp_path: Path) -> None:
    saved_closed(tmp_path)
    base = loaded(tmp_path).get_submodule("model")
    assert [site.name for site in ll.close_again(base, tmp_path).sites] == ["layers.0.self_attn", "layers.1.self_attn"]


@pytest.mark.parametrize(
    ("until", "text"), [(2, "until=2 is in the past: the checkpoint was saved after 3 steps"), (None, "says of no part")]
)
def test_what_cannot_be_closed_again_is_an_error_and_changes_nothing(tmp_path: Path, until: int | None, text: str) -> None:
    model, held = saved_closed(tmp_path)
    if until is None:
        held.open()
        model.save_pretrained(tmp_path)  # type: ignore[operator]
    again = loaded(tmp_path)
    before = again.config.to_dict()  # type: ignore[union-attr, operator]
    with pytest.raises(LabError, match=text):
        ll.close_again(again, until=until)
    assert again.config.to_dict() == before  # type: ignore[union-attr, operator]
    assert not any("forward" in vars(module) for module in again.modules())


def test_a_folder_without_a_checkpoint_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"has no config.json: name the folder or the file of a checkpoint"):
        ll.close_again(lm_of("Llama"), tmp_path)
    with pytest.raises(LabError, match="there is no"):
        ll.close_again(lm_of("Llama"), tmp_path / "no.ckpt")
    (tmp_path / "text.ckpt").write_text("no checkpoint")
    with pytest.raises(LabError, match=r"cannot be read .*close_again\(model, torch.load"):
        ll.close_again(lm_of("Llama"), tmp_path / "text.ckpt")


def test_the_dry_run_of_a_folder_saved_closed_says_so(tmp_path: Path, call: Call) -> None:
    saved_closed(tmp_path)
    assert "saved with model.layers.0.self_attn and 1 more off after 3 steps" in " ".join(call("delay", tmp_path).out.split())
    config_of("Llama").save_pretrained(tmp_path)
    assert "saved with" not in call("delay", tmp_path).out


# Torch and Lightning


def test_a_plain_checkpoint_has_the_state_of_the_delay(tmp_path: Path) -> None:
    model = nn.TransformerEncoderLayer(8, nhead=2)
    held = delay_attention(model, until=5)
    held.step()
    torch.save({"model": model.state_dict(), "lengthlab_delay": held.state_dict()}, tmp_path / "last.pt")
    other = nn.TransformerEncoderLayer(8, nhead=2)
    other.load_state_dict(torch.load(tmp_path / "last.pt")["model"])
    again = ll.close_again(other, tmp_path / "last.pt")
    assert (again.steps, again.is_open) == (1, False)
    held.open()
    torch.save({"lengthlab_delay": held.state_dict()}, tmp_path / "last.pt")
    assert closed_in(tmp_path / "last.pt") == ()


class Module(lightning.LightningModule):  # type: ignore[name-defined, misc]
    """A model that is held, and its loss."""

    on_load_checkpoint = warn_if_saved_closed

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=8, batch_first=True)

    def training_step(self, batch: Tensor, index: int) -> Tensor:
        return self.body(batch).square().mean()  # type: ignore[no-any-return]

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def fit(callback: DelayedAttention, steps: int, **named: Any) -> Any:
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(accelerator="cpu", max_steps=steps, callbacks=[callback], **quiet)
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.randn(8, 3, 8), batch_size=2), **named)
    return trainer


def test_a_checkpoint_of_lightning_is_told_of_without_our_callback_and_closed_again(tmp_path: Path) -> None:
    fit(DelayedAttention(until=9), 4).save_checkpoint(tmp_path / "run.ckpt")
    with pytest.warns(DelayWarning, match="saved with body.self_attn off after 4 steps, until step 9, and loads open"):
        model = Module.load_from_checkpoint(tmp_path / "run.ckpt")
    held = ll.close_again(model, tmp_path / "run.ckpt")
    assert [site.name for site in held.sites] == ["body.self_attn"]
    assert held.steps == 4
    fit(DelayedAttention(until=9), 6, ckpt_path=tmp_path / "run.ckpt")  # says nothing


def test_a_checkpoint_of_lightning_that_is_open_says_nothing(tmp_path: Path) -> None:
    fit(DelayedAttention(until=2), 3).save_checkpoint(tmp_path / "run.ckpt")
    Module.load_from_checkpoint(tmp_path / "run.ckpt")
    assert closed_in(tmp_path / "run.ckpt") == ()


# accelerate


@pytest.mark.parametrize("saved_at", [2, 4])
def test_accelerate_keeps_a_registered_delay(tmp_path: Path, saved_at: int) -> None:
    def begun() -> tuple[Accelerator, nn.Module, Any, Delay]:
        torch.manual_seed(0)
        accelerator = Accelerator(cpu=True)
        model = nn.TransformerEncoderLayer(8, nhead=2, dropout=0.0)
        model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), weight_decay=0.1))
        held = delay_attention(model, until=3).watch(optimizer)
        accelerator.register_for_checkpointing(held)
        return accelerator, model, optimizer, held

    def steps(accelerator: Accelerator, model: nn.Module, optimizer: Any, first: int, last: int) -> None:
        for step in range(first, last):
            x = torch.randn(3, 2, 8, generator=torch.Generator().manual_seed(step))
            accelerator.backward(model(x).cos().sum())
            optimizer.step()
            optimizer.zero_grad()

    accelerator, model, optimizer, held = begun()
    steps(accelerator, model, optimizer, 0, saved_at)
    accelerator.save_state(str(tmp_path))
    steps(accelerator, model, optimizer, saved_at, 6)
    accelerator, again, optimizer, other = begun()
    accelerator.load_state(str(tmp_path))
    assert (other.is_open, other.steps) == (saved_at >= 3, saved_at)
    steps(accelerator, again, optimizer, saved_at, 6)
    assert (other.opened_at, held.opened_at) == (3, 3)
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(model.parameters(), again.parameters(), strict=True))
    assert closed_in(tmp_path / "custom_checkpoint_0.pkl") == (() if saved_at >= 3 else closed_in(held.state_dict() | KEPT))


KEPT = {"is_open": False, "steps": 2}


# Copies


@pytest.mark.parametrize("made_while", ["open", "closed"])
def test_an_average_of_weights_opens_and_closes_with_its_model(made_while: str) -> None:
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(8, nhead=2, dropout=0.0).train()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9)) if made_while == "open" else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
    held = delay_attention(model, until=3, ramp=2).watch(optimizer)
    average = average or AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    theirs = held.mirror(average)
    attention = copy.deepcopy(model.self_attn.state_dict())
    x = torch.randn(3, 2, 8)
    for step in range(6):
        assert theirs.is_open == held.is_open == (step >= 3)
        model(x).cos().sum().backward()
        optimizer.step()
        average.update_parameters(model)
        if step < 3:
            now = average.module.self_attn.state_dict()
            assert all(torch.equal(attention[name], now[name]) for name in attention)
            assert not torch.equal(average.module.linear1.weight, nn.TransformerEncoderLayer(8, nhead=2).linear1.weight)
        plain = copy.deepcopy(model)
        plain.load_state_dict(average.module.state_dict())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DelayWarning)  # nobody will open this copy, and nobody has to
            assert torch.equal(average(x), plain(x))  # with the average's weights the model gives what the average gives
    assert not torch.equal(average.module.self_attn.in_proj_weight, attention["in_proj_weight"])
    held.close()
    assert not theirs.is_open
    held.remove()
    assert "forward" not in vars(average.module.self_attn)


def test_what_is_no_copy_is_refused() -> None:
    model = nn.TransformerEncoderLayer(8, nhead=2)
    held = delay_attention(model)
    with pytest.raises(LabError, match="that of the model itself"):
        held.mirror(model)
    with pytest.raises(LabError, match="the copy has no module 'self_attn'"):
        held.mirror(nn.Linear(2, 2))
    copied = copy.deepcopy(model)
    held.mirror(copied)
    with pytest.raises(LabError, match="delayed already"):
        held.mirror(copied)
