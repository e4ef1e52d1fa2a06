"""Kernels of flash-linear-attention behind our parts: on a GPU, where the library is installed, they give what ours give."""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lengthlab import kernels
from lengthlab.kernels import flash_linear
from lengthlab.models import Deltaproduct, GatedDeltanet, Mamba2, Part
from lengthlab.models.recurrence.recurrence import Recurrence
from lengthlab.software import versions

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


def test_a_folder_that_is_called_like_the_library_is_not_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert find_spec("fla") is None
    (tmp_path / "fla").mkdir()
    importlib.invalidate_caches()
    assert find_spec("fla") is not None
    assert not kernels._has_flash_linear.__wrapped__()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert "fla-core" not in versions()


def test_what_is_not_on_a_gpu_or_not_of_16_bits_is_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_has_flash_linear", lambda: True)
    x = torch.zeros(2, 4, 16, dtype=torch.bfloat16)
    assert not kernels.serve_memory(x, 16, fades=False)
    monkeypatch.setattr(kernels, "_on_gpu", lambda x: True)
    assert kernels.serve_memory(x, 16, fades=False)
    assert not kernels.serve_memory(x, 512, fades=False)
    assert not kernels.serve_memory(x.float(), 16, fades=False)
    monkeypatch.setattr(kernels, "_has_flash_linear", lambda: False)
    assert not kernels.serve_memory(x, 16, fades=False)


@pytest.mark.parametrize(
    ("triton", "capability", "wrong"),
    [("3.6.0", 9, True), ("3.4.0+git1", 9, True), ("3.7.1", 9, False), ("3.3.1", 9, False), ("3.6.0", 8, False)],
)
def test_what_fades_is_left_to_pytorch_where_its_gradients_would_be_wrong(
    triton: str, capability: int, wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels._fades_wrongly.cache_clear()
    monkeypatch.setattr(kernels, "version", lambda name: triton)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (capability, 0))
    monkeypatch.setattr(kernels, "_on_gpu", lambda x: True)
    monkeypatch.setattr(kernels, "_has_flash_linear", lambda: True)
    x = torch.zeros(2, 4, 16, dtype=torch.bfloat16)
    assert kernels.serve_memory(x, 16, fades=True) == (not wrong)
    assert kernels.serve_memory(x, 16, fades=False)
    kernels._fades_wrongly.cache_clear()


def served(part: Part) -> Recurrence:
    """Its module, if the library's kernels are what it would use here."""
    fades = not isinstance(part, Deltaproduct) or part.gated
    if fades and kernels._fades_wrongly(torch.device("cuda")):
        pytest.skip("this Triton makes wrong gradients of what fades on this GPU")
    module = part.build(256)
    assert isinstance(module, Recurrence)
    return module.cuda()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which kernels were called."""
    seen = []
    for name in ("scan_delta", "scan_decay"):

        def counted(*memory: object, name: str = name, scan: Callable[..., object] = getattr(flash_linear, name)) -> object:
            seen.append(name)
            return scan(*memory)

        monkeypatch.setattr(flash_linear, name, counted)
    return seen


@on_a_gpu_with_the_library
@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize("tokens", [50, 2_000])
def test_a_gpu_reads_and_learns_what_it_does_without_the_library(
    part: Part, tokens: int, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    module = served(part)
    x_BTD = torch.randn(8, tokens, 256, device="cuda")
    weight_BTD = torch.randn_like(x_BTD)

    def learned(dtype: torch.dtype) -> list[Tensor]:
        made = copy.deepcopy(module).to(dtype)
        leaf_BTD = x_BTD.to(dtype).requires_grad_()
        out_BTD, (window, memory) = made.read(leaf_BTD, None)
        more_BTD, _ = made.read(leaf_BTD, (window, memory))
        grads = torch.autograd.grad(((out_BTD + more_BTD) * weight_BTD).sum(), [leaf_BTD, *made.parameters()])
        return [each.float() for each in (out_BTD, more_BTD, memory, *grads)]

    exact = learned(torch.float32)
    assert calls == []
    fast = learned(torch.bfloat16)
    assert len(calls) == 2
    monkeypatch.setattr(kernels, "_has_flash_linear", lambda: False)
    plain = learned(torch.bfloat16)
    assert len(calls) == 2
    for right, mine, other in zip(exact, fast, plain, strict=True):
        scale = right.norm() + 1e-6
        near, usual = (mine - right).norm() / scale, (other - right).norm() / scale
        assert near <= max(3 * usual, 0.02), f"{near:.3f} of the whole off, and {usual:.3f} without the library"


@on_a_gpu_with_the_library
@pytest.mark.parametrize("part", PARTS, ids=str)
def test_a_step_is_captured_as_a_graph(part: Part, calls: list[str]) -> None:
    torch.manual_seed(0)
    module = served(part).to(torch.bfloat16)
    x_BTD = torch.randn(8, 50, 256, device="cuda", dtype=torch.bfloat16)

    def step() -> list[Tensor]:
        out_BTD = module(x_BTD)
        return [out_BTD, *torch.autograd.grad(out_BTD.float().square().sum(), list(module.parameters()))]

    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(3):
            expected = [each.clone() for each in step()]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    assert len(calls) == 4
    graph.replay()
    torch.cuda.synchronize()
    for mine, theirs in zip(captured, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-2, atol=1e-2)
