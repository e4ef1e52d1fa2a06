"""Attention opened layer by layer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from lengthlab.errors import LabError
from lengthlab.switch import Stages, by_layer, delay
from lengthlab.switch.layers import layer_of

LAYERS = 12


def encoder(layers: int = 3) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    one = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(one, layers, enable_nested_tensor=False)


def learning(model: nn.Module) -> set[str]:
    """Which attention modules get a gradient."""
    model.zero_grad()
    model(torch.randn(2, 5, 8)).square().mean().backward()
    named = {
        name.rpartition(".self_attn.")[0]: parameter.grad for name, parameter in model.named_parameters() if "attn" in name
    }
    return {name for name, grad in named.items() if grad is not None}


@pytest.mark.parametrize(("first", "order"), [("bottom", [0, 1, 2]), ("top", [2, 1, 0])])
def test_layers_open_one_after_another_from_either_end(first: Any, order: list[int]) -> None:
    model = encoder()
    stages = by_layer(model, until=[1, 3, 4], first=first)
    assert isinstance(stages, Stages)
    expected = [0, 1, 1, 2, 3, 3]
    for opened in expected:
        assert learning(model) == {f"layers.{number}" for number in order[:opened]}
        stages.step()
    assert stages.is_open


def test_every_so_many_steps_a_layer_opens() -> None:
    stages = by_layer(encoder(), every=5)
    assert [stage.until for stage in stages.delays] == [5, 10, 15]


def test_layers_are_in_the_order_of_their_numbers_and_not_of_their_digits() -> None:
    stages = by_layer(encoder(LAYERS), every=1)
    assert [stage.sites[0].name for stage in stages.delays] == [f"layers.{number}.self_attn" for number in range(LAYERS)]


def test_an_optimizer_moves_only_the_layers_that_are_open() -> None:
    model = encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    by_layer(model, until=[1, 100, 200]).watch(optimizer)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(2, 5, 8)).square().mean().backward()
        optimizer.step()
    moved = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    assert {name for name in moved if "self_attn" in name} == {name for name in before if name.startswith("layers.0.self_attn")}


def test_encoder_and_decoder_layers_of_the_same_number_open_together_on_hugging_faces_bart() -> None:
    from transformers import BartConfig, BartModel

    sizes = {"d_model": 8, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "vocab_size": 20}
    counts = dict.fromkeys(("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"), 2)
    model = BartModel(BartConfig(**sizes, **counts, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=2))
    stages = by_layer(model, every=10, modules=["self_attn"])
    assert [[site.name for site in stage.sites] for stage in stages.delays] == [
        [f"encoder.layers.{number}.self_attn", f"decoder.layers.{number}.self_attn"] for number in (0, 1)
    ]


def test_a_resumed_training_has_the_same_layers_open() -> None:
    first, second = encoder(), encoder()
    stages, again = by_layer(first, every=2), by_layer(second, every=2)
    stages.go_to(4)
    again.load_state_dict(stages.state_dict())
    assert [stage.is_open for stage in again.delays] == [True, True, False]
    assert learning(second) == {"layers.0", "layers.1"}


def test_removed_it_leaves_the_model_as_it_was() -> None:
    model = encoder()
    by_layer(model, every=5, ramp=3).remove()
    assert not any("forward" in vars(module) for module in model.modules())
    delay(model, None)  # nobody holds its modules any more


def test_layers_open_gently_too() -> None:
    stages = by_layer(encoder(), every=5, rate=0.5, warm_up=3, ramp=2)
    assert {(stage.opening.rate, stage.opening.warm_up, stage.opening.ramp) for stage in stages.delays} == {(0.5, 3, 2)}


@pytest.mark.parametrize(
    ("name", "layer"), [("h.11.attn", (11,)), ("stages.0.blocks.2.attn", (0, 2)), ("layer_3.mha", (3,)), ("block7.attn", (7,))]
)
def test_a_layer_is_the_numbers_in_its_name(name: str, layer: tuple[int, ...]) -> None:
    assert layer_of(name) == layer


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "say one of them"),
        ({"until": [1, 2, 3], "every": 5}, "say one of them"),
        ({"until": [1, 2]}, "there are 3 layers to open, and until has 2 steps"),
        ({"until": 5}, "until is a list of steps, one for each of 3 layers, not 5"),
        ({"until": [3, 2, 1]}, "stages open one after another, not at steps [3, 2, 1]"),
        ({"every": 0}, "every must be at least 1, not 0"),
        ({"every": 5, "first": "middle"}, "first must be 'bottom' or 'top', not 'middle'"),
    ],
)
def test_what_cannot_be_followed_is_refused_and_leaves_the_model_alone(options: dict[str, Any], told: str) -> None:
    model = encoder()
    with pytest.raises(LabError) as caught:
        by_layer(model, **options)
    assert told in str(caught.value)
    assert not any("forward" in vars(module) for module in model.modules())


def test_attention_without_a_number_is_refused_by_name() -> None:
    with pytest.raises(LabError, match=r"'self_attn' has no number in its name.*Stages"):
        by_layer(nn.TransformerEncoderLayer(8, 2), every=5)
