"""A short causal convolution, channel by channel, with SiLU after it, in one kernel forward and one backward. As a sum of
shifted products it is a dozen kernels forward and two dozen backward, each of which reads and writes the whole tensor.

Shapes: B samples, W tokens of the window, T tokens, X = T + W − 1 of them with those before, D channels, R tokens and C
channels of a program, P programs along tokens, V = W + 1 for weights and bias.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

TOKENS, CHANNELS = 32, 64


@triton.jit
def summed(x_ptr, weight_ptr, bias_ptr, sample, t, channel, T, D: tl.constexpr, W: tl.constexpr):
    """The sum at tokens t of a sample, before SiLU; anything where there is no such token or channel."""
    X = T + W - 1
    there = (channel < D)[None, :]
    out = tl.load(bias_ptr + channel, mask=channel < D, other=0.0).to(tl.float32)[None, :]
    for w in tl.static_range(W):
        at = (sample.to(tl.int64) * X + t + w)[:, None] * D + channel[None, :]
        x = tl.load(x_ptr + at, mask=((t >= 0) & (t < T))[:, None] & there, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + w * D + channel, mask=channel < D, other=0.0).to(tl.float32)
        out += x * weight[None, :]
    return out


@triton.jit
def conv_forward(
    x_ptr,  # B, X, D
    weight_ptr,  # W, D
    bias_ptr,  # D
    out_ptr,  # B, T, D: out
    T: int,
    D: tl.constexpr,
    W: tl.constexpr,
    R: tl.constexpr,
    C: tl.constexpr,
):
    blocks = tl.cdiv(T, R)
    sample = tl.program_id(0) // blocks
    t = tl.program_id(0) % blocks * R + tl.arange(0, R)
    channel = tl.program_id(1) * C + tl.arange(0, C)
    z = summed(x_ptr, weight_ptr, bias_ptr, sample, t, channel, T, D, W)
    at = (sample.to(tl.int64) * T + t)[:, None] * D + channel[None, :]
    tl.store(out_ptr + at, (z * tl.sigmoid(z)).to(out_ptr.dtype.element_ty), mask=(t < T)[:, None] & (channel < D)[None, :])


@triton.jit
def conv_backward(
    grad_ptr,  # B, T, D
    x_ptr,  # B, X, D
    weight_ptr,  # W, D
    bias_ptr,  # D
    dx_ptr,  # B, X, D: out
    parts_ptr,  # P, W + 1, D: out, each program's share of the gradients of weight and bias
    T: int,
    D: tl.constexpr,
    W: tl.constexpr,
    R: tl.constexpr,
    C: tl.constexpr,
):
    X = T + W - 1
    blocks = tl.cdiv(X, R)
    sample = tl.program_id(0) // blocks
    place = tl.program_id(0) % blocks * R + tl.arange(0, R)  # of x, which token `place - w` has at w in its window
    channel = tl.program_id(1) * C + tl.arange(0, C)
    there = (channel < D)[None, :]
    part = parts_ptr + tl.program_id(0) * ((W + 1) * D) + channel
    at_x = (sample.to(tl.int64) * X + place)[:, None] * D + channel[None, :]
    x = tl.load(x_ptr + at_x, mask=(place < X)[:, None] & there, other=0.0).to(tl.float32)
    dx = tl.zeros((R, C), dtype=tl.float32)
    for w in tl.static_range(W):
        t = place - w
        is_token = ((t >= 0) & (t < T))[:, None] & there
        at = (sample.to(tl.int64) * T + t)[:, None] * D + channel[None, :]
        z = summed(x_ptr, weight_ptr, bias_ptr, sample, t, channel, T, D, W)
        gate = tl.sigmoid(z)
        dz = tl.load(grad_ptr + at, mask=is_token, other=0.0).to(tl.float32) * gate * (1 + z * (1 - gate))
        weight = tl.load(weight_ptr + w * D + channel, mask=channel < D, other=0.0).to(tl.float32)
        dx += dz * weight[None, :]
        tl.store(part + w * D, tl.sum(dz * x, axis=0), mask=channel < D)
        if w == 0:
            tl.store(part + W * D, tl.sum(dz, axis=0), mask=channel < D)
    tl.store(dx_ptr + at_x, dx.to(dx_ptr.dtype.element_ty), mask=(place < X)[:, None] & there)


class ShortConv(torch.autograd.Function):
    """SiLU(bias_D + Σ_w weight_wD ⊙ x_B(t+w)D) for the T tokens that have all W of x_BXD."""

    @staticmethod
    def forward(ctx: FunctionCtx, x_BXD: Tensor, weight_WD: Tensor, bias_D: Tensor) -> Tensor:
        x_BXD, weight_WD = x_BXD.contiguous(), weight_WD.contiguous()
        (samples, before_and_tokens, width), window = x_BXD.shape, len(weight_WD)
        tokens = before_and_tokens - window + 1
        out_BTD = x_BXD.new_empty(samples, tokens, width)
        conv_forward[_grid(samples, tokens, width)](
            x_BXD, weight_WD, bias_D, out_BTD, tokens, D=width, W=window, R=TOKENS, C=CHANNELS
        )
        ctx.save_for_backward(x_BXD, weight_WD, bias_D)
        return out_BTD

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad_BTD: Tensor) -> tuple[Tensor, ...]:
        x_BXD, weight_WD, bias_D = ctx.saved_tensors  # type: ignore[attr-defined]
        (samples, before_and_tokens, width), window = x_BXD.shape, len(weight_WD)
        grid, dx_BXD = _grid(samples, before_and_tokens, width), torch.empty_like(x_BXD)
        parts_PVD = x_BXD.new_empty(grid[0], window + 1, width, dtype=torch.float32)
        conv_backward[grid](
            *(grad_BTD.contiguous(), x_BXD, weight_WD, bias_D, dx_BXD, parts_PVD, before_and_tokens - window + 1),
            D=width, W=window, R=TOKENS, C=CHANNELS, num_warps=8,
        )  # fmt: skip
        sums_VD = parts_PVD.sum(dim=0)
        return dx_BXD, sums_VD[:-1].to(weight_WD.dtype), sums_VD[-1].to(bias_D.dtype)


def _grid(samples: int, tokens: int, width: int) -> tuple[int, int]:
    return samples * triton.cdiv(tokens, TOKENS), triton.cdiv(width, CHANNELS)
