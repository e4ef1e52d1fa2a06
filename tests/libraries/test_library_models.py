"""Models of other libraries: with attention off they are right, or there is an error that says what to do. Never neither."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lengthlab.errors import LabError
from lengthlab.switch import Delay, delay_attention

VOCABULARY = 20


@dataclass(frozen=True)
class Case:
    make: Callable[[], nn.Module]
    options: dict[str, Any] = field(default_factory=dict)


def x_transformers(**changes: Any) -> nn.Module:
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, **changes)
    return TransformerWrapper(num_tokens=VOCABULARY, max_seq_len=16, attn_layers=layers)


def torchtune() -> nn.Module:
    from torchtune.models.llama3 import llama3

    sizes = {"num_layers": 2, "num_heads": 2, "num_kv_heads": 2, "embed_dim": 16, "max_seq_len": 16, "intermediate_dim": 16}
    return llama3(vocab_size=VOCABULARY, **sizes)


def litgpt() -> nn.Module:
    from litgpt import GPT, Config

    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 16, "padded_vocab_size": VOCABULARY}
    return GPT(Config(name="small", vocab_size=VOCABULARY, **sizes))


CASES = {
    "x-transformers": Case(x_transformers),
    "x-transformers with gates of a GRU": Case(lambda: x_transformers(gate_residual=True)),
    "x-transformers, named": Case(x_transformers, {"modules": ["attn_layers.layers.*.1"], "instead": "zeros"}),
    "torchtune": Case(torchtune),
    "torchtune, named": Case(torchtune, {"modules": ["layers.*.attn"]}),
    "litgpt": Case(litgpt),
}
MUST_BE_RIGHT = {"torchtune, named", "litgpt"}


def tokens(seed: int) -> Tensor:
    return torch.randint(3, VOCABULARY, (2, 9), generator=torch.Generator().manual_seed(seed))


def closed(model: nn.Module, options: dict[str, Any]) -> Delay | str:
    """A delay that was checked, or the words in which it was refused."""
    try:
        held = delay_attention(model, **options)
        if hasattr(held, "check"):
            held.check(tokens(0))
    except LabError as error:
        return str(error)
    return held


@pytest.mark.parametrize("name", CASES)
def test_a_model_of_another_library_is_right_or_refused(name: str) -> None:
    torch.manual_seed(0)
    model = CASES[name].make().eval()  # without dropout
    before, weights = model(tokens(0)).detach(), copy.deepcopy(model.state_dict())
    held = closed(model, CASES[name].options)
    if isinstance(held, str):
        assert name not in MUST_BE_RIGHT, held
        assert "modules=" in held or "instead=" in held, held
        return
    one, other = model(tokens(0)), model(tokens(1))
    assert one.shape == before.shape
    assert not torch.equal(one, other), "the input does not reach the output"
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
    held.watch(optimizer)
    one.square().mean().backward()
    assert all(parameter.grad is None for parameter in held.parameters())
    still = [parameter.detach().clone() for parameter in held.parameters()]
    optimizer.step()
    assert still
    assert all(torch.equal(now, was) for now, was in zip(held.parameters(), still, strict=True))
    held.open()
    model.load_state_dict(weights)
    torch.testing.assert_close(model(tokens(0)), before, rtol=0, atol=0)
