"""Memories of keys and values as flash-linear-attention has them. Its kernels need a GPU (tests/test_memory_kernels.py). What
its authors hold them to, formulas in plain PyTorch, stands in for them here, so that layout, gates and scale are theirs.
"""

from __future__ import annotations

import pytest
import torch
from fla.ops import gated_delta_product, gated_delta_rule, simple_gla
from fla.ops.gated_delta_product.naive import naive_recurrent_gated_delta_product
from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule
from fla.ops.simple_gla.naive import naive_recurrent_simple_gla
from torch import Tensor

from lengthlab import kernels
from lengthlab.models import Deltaproduct, GatedDeltanet, Mamba2, Part

PARTS = [
    GatedDeltanet(heads=2),
    GatedDeltanet(heads=2, negative_eigenvalues=True),
    Deltaproduct(heads=2, steps=3),
    Deltaproduct(heads=2, steps=2, gated=True),
    Mamba2(heads=2, state=12),
]


@pytest.fixture(autouse=True)
def _their_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    def rule(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, **told: object) -> object:
        return naive_recurrent_gated_delta_rule(q, k, v, beta, g, **told)

    def product(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, steps: int, **told: object) -> object:
        return naive_recurrent_gated_delta_product(q, k, v, g, beta, num_householder=steps, **told)

    monkeypatch.setattr(gated_delta_rule, "chunk_gated_delta_rule", rule)
    monkeypatch.setattr(gated_delta_product, "chunk_gated_delta_product", product)
    monkeypatch.setattr(simple_gla, "chunk_simple_gla", naive_recurrent_simple_gla)


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_a_recurrence_reads_by_their_formulas_what_it_reads_by_ours(part: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    module, x_BTD = part.build(16), torch.randn(2, 11, 16, requires_grad=True)
    fades = not isinstance(part, Deltaproduct) or part.gated

    def read() -> list[Tensor]:
        out_BTD, state = module.read(x_BTD, None)
        more_BTD, (_, memory) = module.read(x_BTD, state)
        return [out_BTD, more_BTD, memory, *torch.autograd.grad(more_BTD.square().sum(), [x_BTD, *module.parameters()])]

    ours, asked = read(), []
    monkeypatch.setattr(kernels, "serve_memory", lambda x, channels, fades: asked.append((channels, fades)) or True)
    torch.testing.assert_close(read(), ours, rtol=1e-4, atol=1e-5)
    assert asked == [(16 if isinstance(part, Mamba2) else 8, fades)] * 2
