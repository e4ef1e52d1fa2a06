"""What stands in for a module: zeros where its output is added to something, its input where it adds it itself, and whatever
the caller takes apart; where that cannot be told, one line that says so.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from torch.optim import Adam
from transformers import AutoModelForSeq2SeqLM, BartConfig, Qwen3Config, Qwen3ForCausalLM, T5Config

from lengthlab.errors import LabError
from lengthlab.switch import DelayWarning, delay, delay_attention

WIDTH = 8


class Attention(nn.Module):
    """With a norm of its own and an output in several layers, as vision transformers have it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.attend = nn.Softmax(dim=-1)
        self.to_out = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.0))

    def mix(self, x_BTD: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x_BTD)).chunk(3, dim=-1)
        out: Tensor = self.to_out(self.attend(q @ k.transpose(1, 2)) @ v)
        return out

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.mix(x_BTD)


class ResidualAttention(Attention):
    def forward(self, x_BTD: Tensor) -> Tensor:
        residual = x_BTD
        return residual + self.mix(x_BTD)


class Around(nn.Module):
    """A model around one attention; `sums` says whether it adds what comes out to what went in."""

    def __init__(self, attention: nn.Module, sums: bool) -> None:
        super().__init__()
        self.attn, self.sums = attention, sums

    def forward(self, x_BTD: Tensor) -> Tensor:
        out = self.attn(x_BTD)
        return x_BTD + out if self.sums else out


@pytest.mark.parametrize(
    ("attention", "sums"),
    [
        (Attention, True),
        (ResidualAttention, False),
        (lambda: nn.Sequential(Attention(), nn.Dropout(0.0)), True),
        (lambda: nn.Sequential(nn.LayerNorm(WIDTH), Attention()), True),
    ],
)
def test_the_residual_stream_passes_by_unchanged(attention: Callable[[], nn.Module], sums: bool) -> None:
    model, x_BTD = Around(attention(), sums), torch.randn(2, 5, WIDTH)
    for held in (delay_attention, lambda model: delay(model, lambda name, module: isinstance(module, Attention))):
        made = held(model)
        assert torch.equal(model(x_BTD), x_BTD)
        made.remove()


def test_adapters_do_not_make_a_block_of_attention_that_has_norms() -> None:
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 40}
    model = Qwen3ForCausalLM(Qwen3Config(**sizes, num_key_value_heads=2, head_dim=16))
    adapted = get_peft_model(model, LoraConfig(target_modules=["q_proj", "v_proj", "up_proj"]))
    assert {str(site.stand_in) for site in delay_attention(adapted).sites} == {"(zeros, None)"}


@pytest.mark.parametrize(
    "config",
    [
        lambda: T5Config(vocab_size=40, d_model=16, d_ff=16, d_kv=8, num_layers=2, num_heads=2, decoder_start_token_id=0),
        lambda: BartConfig(
            vocab_size=40, d_model=16, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
            encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64, pad_token_id=1, decoder_start_token_id=2,
        ),
    ],
    ids=["T5", "BART"],
)  # fmt: skip
def test_encoder_and_decoder_generate_while_closed(config: Callable[[], T5Config | BartConfig]) -> None:
    torch.manual_seed(0)
    model = AutoModelForSeq2SeqLM.from_config(config()).eval()
    x_BT = torch.randint(3, 40, (2, 7))
    held = delay_attention(model)
    model.train()(input_ids=x_BT, labels=x_BT).loss.backward()
    assert all(parameter.grad is None for parameter in held.parameters())
    model.eval()
    for _ in ("closed", "open"):
        found = [model.generate(x_BT, max_new_tokens=5, do_sample=False, use_cache=use) for use in (True, False)]
        assert torch.equal(*found)
        held.open()


class Pair(NamedTuple):
    out: Tensor
    weights: Tensor | None


class OneOfThese(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, WIDTH)


class GivesADict(OneOfThese):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"out": self.project(x)}


class GivesAList(OneOfThese):
    def forward(self, x: Tensor) -> list[Tensor]:
        return [self.project(x)]


class GivesANamedTuple(OneOfThese):
    def forward(self, x: Tensor) -> Pair:
        return Pair(self.project(x), None)


class PutsATupleTogether(OneOfThese):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        outputs: tuple[Tensor, ...] = (self.project(x),)
        outputs += (x,)
        return outputs


class GivesOneOrTwo(OneOfThese):
    def forward(self, x: Tensor, both: bool = False) -> object:
        return (self.project(x), x) if both else self.project(x)


class CallsInCircles(OneOfThese):
    def forward(self, x: Tensor) -> Tensor:
        return self.again(x) if x.sum() > 0 else self.project(x)

    def again(self, x: Tensor) -> Tensor:
        return self.forward(x - 1)


def test_methods_that_call_each_other_are_read_once() -> None:
    model = nn.ModuleDict({"part": CallsInCircles()})
    delay(model, "part", instead="zeros")
    delay(nn.ModuleDict({"part": CallsInCircles()}), "part")


@pytest.mark.parametrize("kind", [GivesADict, GivesAList, GivesANamedTuple, PutsATupleTogether, GivesOneOrTwo])
def test_what_cannot_be_read_is_asked_for(kind: type[nn.Module]) -> None:
    model = nn.ModuleDict({"part": kind()})
    with pytest.raises(LabError, match=f"cannot tell what 'part' gives back while off: the forward of {kind.__name__}"):
        delay(model, "part")
    held = delay(model, "part", instead=lambda x: {"out": 0 * x})
    assert model["part"](torch.ones(1, WIDTH))["out"].abs().max() == 0
    held.remove()


@pytest.mark.parametrize("until", [3.0, "3", float("nan"), True, [3]])
def test_a_step_that_is_no_whole_number_is_refused(until: object) -> None:
    with pytest.raises(LabError, match="until must be a whole number of steps or a function of metrics"):
        delay_attention(Around(Attention(), sums=True), until=until)  # type: ignore[arg-type]


def test_any_kind_of_whole_number_is_a_step() -> None:
    held = delay_attention(Around(Attention(), sums=True), until=np.int64(2))  # type: ignore[arg-type]
    held.step()
    assert not held.is_open
    held.step()
    assert held.is_open


def test_a_class_of_modules_can_be_named() -> None:
    model = Around(Attention(), sums=True)
    assert [site.name for site in delay(model, Attention).sites] == ["attn"]
    with pytest.raises(LabError, match="no module of the model is a LSTM"):
        delay(model, nn.LSTM)


@pytest.mark.parametrize("instead", [None, lambda x: 0 * x])
def test_a_model_whose_delay_is_gone_can_be_opened_with_another(instead: Callable[[Tensor], Tensor] | None) -> None:
    model, x_BTD = Around(Attention(), sums=True), torch.randn(1, 3, WIDTH)
    model.attn.forward = lambda x: 7 * x
    delay_attention(model, modules="attn", instead=instead)
    gc.collect()
    assert torch.equal(model(x_BTD), x_BTD)
    delay_attention(model, modules="attn").remove()
    assert torch.equal(model(x_BTD), 8 * x_BTD)


def test_an_optimizer_that_remembers_a_closed_part_forgets_it() -> None:
    model, x_BTD = Around(Attention(), sums=True), torch.randn(1, 3, WIDTH)
    optimizer = Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        (model(x_BTD) * torch.randn(WIDTH)).sum().backward() if model(x_BTD).requires_grad else None
        optimizer.step()

    step()
    held = delay_attention(model).watch(optimizer)
    step()
    assert not any(parameter in optimizer.state for parameter in held.parameters())
    held.open()
    step()
    assert {float(optimizer.state[parameter]["step"]) for parameter in held.parameters()} == {1.0}


def test_what_is_watched_is_an_optimizer() -> None:
    with pytest.raises(LabError, match="what is watched is an optimizer, not a Linear"):
        delay_attention(Around(Attention(), sums=True)).watch(nn.Linear(1, 1))  # type: ignore[arg-type]


def test_a_rate_without_anyone_to_keep_it_is_told_of() -> None:
    held = delay_attention(Around(Attention(), sums=True), until=1, rate=0.5)
    held.step()
    with pytest.warns(DelayWarning, match="rate and warm_up have no effect on an optimizer that is not watched"):
        held.step()


def test_a_ramp_is_kept_by_the_fused_layer_too() -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True).eval()
    x_BTD = torch.randn(2, 3, WIDTH)
    held = delay_attention(layer, ramp=10)
    with torch.no_grad():
        closed_BTD = layer(x_BTD)
        held.open()
        assert torch.allclose(layer(x_BTD), closed_BTD, atol=1e-6)
        held.go_to(10)
        assert not torch.allclose(layer(x_BTD), closed_BTD, atol=1e-3)


def test_removing_twice_leaves_the_next_delay_alone() -> None:
    model = Around(Attention(), sums=True)
    first = delay_attention(model)
    first.remove()
    second = delay_attention(model)
    first.remove()
    with pytest.raises(LabError, match="delayed already"):
        delay_attention(model)
    assert not second.is_open


def test_softmax_attention_is_found_in_a_module_and_in_a_function() -> None:
    class SelfAttn(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.softmax(x @ x.transpose(1, 2), dim=-1) @ x

    assert [site.name for site in delay_attention(Around(Attention(), sums=True)).sites] == ["attn"]
    assert [site.name for site in delay_attention(Around(SelfAttn(), sums=True)).sites] == ["attn"]
