"""LN(x + f), forward and backward in one kernel each: the sum is made on the way in, and the gradients of the norm's weight
and bias are gathered in the backward pass, where a general kernel reads the whole tensor once more.

Shapes: N tokens, D width, P programs, R tokens of a program at a time.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

ROWS = 8
PROGRAMS = 264
"""Two for each multiprocessor of an H200."""


@triton.jit
def norm_forward(
    x_ptr,  # N, D
    f_ptr,  # N, D
    weight_ptr,  # D
    bias_ptr,  # D
    sum_ptr,  # N, D: out, x + f
    out_ptr,  # N, D: out
    eps: float,
    tokens: int,
    D: tl.constexpr,
    R: tl.constexpr,
):
    token = tl.program_id(0) * R + tl.arange(0, R)
    channel = tl.arange(0, D)
    at = token.to(tl.int64)[:, None] * D + channel[None, :]
    here = (token < tokens)[:, None]
    added = tl.load(x_ptr + at, mask=here, other=0.0).to(tl.float32) + tl.load(f_ptr + at, mask=here, other=0.0).to(tl.float32)
    tl.store(sum_ptr + at, added.to(sum_ptr.dtype.element_ty), mask=here)
    centred = added - (tl.sum(added, axis=1) / D)[:, None]
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=1) / D + eps)
    weight = tl.load(weight_ptr + channel).to(tl.float32)[None, :]
    bias = tl.load(bias_ptr + channel).to(tl.float32)[None, :]
    out = centred * scale[:, None] * weight + bias
    tl.store(out_ptr + at, out.to(out_ptr.dtype.element_ty), mask=here)


@triton.jit
def norm_backward(
    grad_ptr,  # N, D
    sum_ptr,  # N, D: x + f
    weight_ptr,  # D
    dsum_ptr,  # N, D: out
    parts_ptr,  # P, 2, D: out, each program's share of the gradients of weight and bias
    eps: float,
    tokens: int,
    D: tl.constexpr,
    R: tl.constexpr,
):
    program, programs = tl.program_id(0), tl.num_programs(0)
    channel = tl.arange(0, D)
    weight = tl.load(weight_ptr + channel).to(tl.float32)[None, :]
    dweight = tl.zeros((D,), dtype=tl.float32)
    dbias = tl.zeros((D,), dtype=tl.float32)
    first = program * R
    while first < tokens:
        token = first + tl.arange(0, R)
        at = token.to(tl.int64)[:, None] * D + channel[None, :]
        here = (token < tokens)[:, None]
        added = tl.load(sum_ptr + at, mask=here, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + at, mask=here, other=0.0).to(tl.float32)
        centred = added - (tl.sum(added, axis=1) / D)[:, None]
        scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=1) / D + eps)
        normed = centred * scale[:, None]
        dweight += tl.sum(grad * normed, axis=0)
        dbias += tl.sum(grad, axis=0)
        dnormed = grad * weight
        along = tl.sum(dnormed * normed, axis=1) / D
        dsum = (dnormed - (tl.sum(dnormed, axis=1) / D)[:, None] - normed * along[:, None]) * scale[:, None]
        tl.store(dsum_ptr + at, dsum.to(dsum_ptr.dtype.element_ty), mask=here)
        first += programs * R
    part = parts_ptr + program * (2 * D) + channel
    tl.store(part, dweight)
    tl.store(part + D, dbias)


class AddNorm(torch.autograd.Function):
    """LN(x_ND + f_ND)."""

    @staticmethod
    def forward(ctx: FunctionCtx, x_ND: Tensor, f_ND: Tensor, weight_D: Tensor, bias_D: Tensor, eps: float) -> Tensor:
        x_ND, f_ND = x_ND.contiguous(), f_ND.contiguous()
        tokens, width = x_ND.shape
        sum_ND, out_ND = torch.empty_like(x_ND), torch.empty_like(x_ND)
        grid = (triton.cdiv(tokens, ROWS),)
        norm_forward[grid](x_ND, f_ND, weight_D, bias_D, sum_ND, out_ND, eps, tokens, D=width, R=ROWS)
        ctx.save_for_backward(sum_ND, weight_D)
        ctx.eps = eps  # type: ignore[attr-defined]
        return out_ND

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad_ND: Tensor) -> tuple[Tensor | None, ...]:
        sum_ND, weight_D = ctx.saved_tensors  # type: ignore[attr-defined]
        tokens, width = sum_ND.shape
        programs = min(PROGRAMS, triton.cdiv(tokens, ROWS))
        dsum_ND = torch.empty_like(sum_ND)
        parts_P2D = torch.empty(programs, 2, width, device=sum_ND.device)
        inputs = (grad_ND.contiguous(), sum_ND, weight_D, dsum_ND, parts_P2D)
        norm_backward[(programs,)](*inputs, ctx.eps, tokens, D=width, R=ROWS)  # type: ignore[attr-defined]
        dweight_D, dbias_D = parts_P2D.sum(dim=0).to(weight_D.dtype)
        return dsum_ND, dsum_ND, dweight_D, dbias_D, None
