"""Kernels of flash-linear-attention behind our parts: on a GPU, where the library is installed, they give what ours give."""

from __future__ import annotations

import pytest
import torch

from lengthlab import kernels
from lengthlab.models import Deltaproduct, GatedDeltanet, Mamba2, Part
from lengthlab.models.recurrence.recurrence import Recurrence

PARTS = [
    GatedDeltanet(),
    GatedDeltanet(negative_eigenvalues=True),
    Deltaproduct(),
    Deltaproduct(steps=3, gated=True),
    Mamba2(),
]
on_a_gpu_with_the_library = pytest.mark.skipif(
    not (torch.cuda.is_available() and kernels._has_flash_linear()), reason="needs a GPU and flash-linear-attention"
)


def test_what_is_not_on_a_gpu_or_not_of_16_bits_is_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_has_flash_linear", lambda: True)
    x = torch.zeros(2, 4, 16, dtype=torch.bfloat16)
    assert not kernels.serve_memory(x, 16)
    monkeypatch.setattr(kernels, "_on_gpu", lambda x: True)
    assert kernels.serve_memory(x, 16)
    assert not kernels.serve_memory(x, 512)
    assert not kernels.serve_memory(x.float(), 16)
    monkeypatch.setattr(kernels, "_has_flash_linear", lambda: False)
    assert not kernels.serve_memory(x, 16)


@on_a_gpu_with_the_library
@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize("tokens", [50, 200])
def test_a_gpu_reads_and_learns_what_it_does_without_the_library(
    part: Part, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    module = part.build(256).cuda()
    assert isinstance(module, Recurrence)
    x_BTD = torch.randn(8, tokens, 256, device="cuda")
    weight_BTD = torch.randn_like(x_BTD)

    def learned(dtype: torch.dtype) -> list[torch.Tensor]:
        made = part.build(256).to("cuda", dtype)
        made.load_state_dict(module.state_dict())
        leaf_BTD = x_BTD.to(dtype).requires_grad_()
        out_BTD, (_, memory) = made.read(leaf_BTD, None)
        more_BTD, _ = made.read(leaf_BTD, (_, memory))
        grads = torch.autograd.grad(((out_BTD + more_BTD) * weight_BTD).sum(), [leaf_BTD, *made.parameters()])
        return [each.float() for each in (out_BTD, more_BTD, memory, *grads)]

    exact, fast = learned(torch.float32), learned(torch.bfloat16)
    monkeypatch.setattr(kernels, "_has_flash_linear", lambda: False)
    plain = learned(torch.bfloat16)
    for right, mine, other in zip(exact, fast, plain, strict=True):
        scale = right.norm() + 1e-6
        near, usual = (mine - right).norm() / scale, (other - right).norm() / scale
        assert near <= max(3 * usual, 0.02), f"{near:.3f} of the whole off, and {usual:.3f} without the library"


@on_a_gpu_with_the_library
@pytest.mark.parametrize("part", PARTS, ids=str)
def test_a_step_is_captured_as_a_graph(part: Part) -> None:
    torch.manual_seed(0)
    module = part.build(256).to("cuda", torch.bfloat16)
    x_BTD = torch.randn(8, 50, 256, device="cuda", dtype=torch.bfloat16)

    def step() -> list[torch.Tensor]:
        out_BTD = module(x_BTD)
        return [out_BTD, *torch.autograd.grad(out_BTD.float().square().sum(), list(module.parameters()))]

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            expected = [each.clone() for each in step()]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    graph.replay()
    torch.cuda.synchronize()
    for mine, theirs in zip(captured, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-2, atol=1e-2)
