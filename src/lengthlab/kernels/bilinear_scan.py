"""The bilinear recurrence, h = unit(A·h) token after token, as one kernel forward and one backward.

PyTorch launches a handful of operations for every token, each of which does next to nothing. Here one program walks some blocks
of one sample from the first token to the last with h in its registers, and reads every matrix once. What makes the matrices of
the tokens is left to a large product outside.

Shapes: B samples, T tokens, H blocks, S × S the size of one, whose root makes the mean square of h 1, G blocks of a program.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthlab.kernels.sizes import BLOCK_NUMBERS

EPSILON = 1e-12
"""As `F.normalize` has it: what is shorter is divided by this."""


@triton.jit
def bilinear_forward(
    a_ptr,  # B, T, H, S, S
    first_ptr,  # B, H, S
    out_ptr,  # B, T, H, S: h after every token
    norm_ptr,  # B, T, H: of A·h, before it is made a unit
    tokens: int,
    blocks: int,
    S: tl.constexpr,
    G: tl.constexpr,
    ROOT: tl.constexpr,
    LEAST: tl.constexpr,
):
    sample = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1) * G + tl.arange(0, G)
    here = block < blocks
    row = tl.arange(0, S)
    of_block = block[:, None] * S + row[None, :]
    of_matrix = of_block[:, :, None] * S + row[None, None, :]
    h_GS = tl.load(first_ptr + sample * blocks * S + of_block, mask=here[:, None], other=1.0)
    for t in range(0, tokens):
        at = (sample * tokens + t) * blocks
        a_GSS = tl.load(a_ptr + at * S * S + of_matrix, mask=here[:, None, None], other=0.0)
        u_GS = tl.sum(a_GSS * h_GS[:, None, :], axis=2)
        norm_G = tl.sqrt(tl.sum(u_GS * u_GS, axis=1))
        h_GS = u_GS * (ROOT / tl.maximum(norm_G, LEAST))[:, None]
        tl.store(norm_ptr + at + block, norm_G, mask=here)
        tl.store(out_ptr + at * S + of_block, h_GS, mask=here[:, None])


@triton.jit
def bilinear_backward(
    grad_ptr,  # B, T, H, S: of h after every token, from outside
    a_ptr,  # B, T, H, S, S
    first_ptr,  # B, H, S
    out_ptr,  # B, T, H, S
    norm_ptr,  # B, T, H
    da_ptr,  # B, T, H, S, S
    dfirst_ptr,  # B, H, S
    tokens: int,
    blocks: int,
    S: tl.constexpr,
    G: tl.constexpr,
    ROOT: tl.constexpr,
    LEAST: tl.constexpr,
):
    sample = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1) * G + tl.arange(0, G)
    here = block < blocks
    row = tl.arange(0, S)
    of_block = block[:, None] * S + row[None, :]
    of_matrix = of_block[:, :, None] * S + row[None, None, :]
    of_first = sample * blocks * S + of_block
    carry_GS = tl.zeros((G, S), dtype=tl.float32)
    t = tokens - 1
    while t >= 0:
        at = (sample * tokens + t) * blocks
        dh_GS = carry_GS + tl.load(grad_ptr + at * S + of_block, mask=here[:, None], other=0.0)
        unit_GS = tl.load(out_ptr + at * S + of_block, mask=here[:, None], other=0.0) / ROOT
        norm_G = tl.load(norm_ptr + at + block, mask=here, other=1.0)
        # What goes along h changes its length alone, which is made 1 again; where it is divided by LEAST, it is not.
        along_G = tl.where(norm_G > LEAST, tl.sum(dh_GS * unit_GS, axis=1), 0.0)
        du_GS = (dh_GS - along_G[:, None] * unit_GS) * (ROOT / tl.maximum(norm_G, LEAST))[:, None]
        before = out_ptr + (at - blocks) * S + of_block
        h_GS = tl.load(before, mask=here[:, None] & (t > 0), other=0.0)
        h_GS += tl.load(first_ptr + of_first, mask=here[:, None] & (t == 0), other=0.0)
        tl.store(da_ptr + at * S * S + of_matrix, du_GS[:, :, None] * h_GS[:, None, :], mask=here[:, None, None])
        a_GSS = tl.load(a_ptr + at * S * S + of_matrix, mask=here[:, None, None], other=0.0)
        carry_GS = tl.sum(a_GSS * du_GS[:, :, None], axis=1)
        t -= 1
    tl.store(dfirst_ptr + of_first, carry_GS, mask=here[:, None])


class BilinearScan(torch.autograd.Function):
    """out_BTHS: h after every token, from the matrices of the tokens and the first h, all in fp32."""

    @staticmethod
    def forward(ctx: FunctionCtx, a_BTHSS: Tensor, first_BHS: Tensor) -> Tensor:
        a_BTHSS, first_BHS = a_BTHSS.contiguous(), first_BHS.contiguous()
        out_BTHS = torch.empty_like(a_BTHSS[..., 0], memory_format=torch.contiguous_format)
        norm_BTH = torch.empty_like(out_BTHS[..., 0], memory_format=torch.contiguous_format)
        _launch(bilinear_forward, a_BTHSS, a_BTHSS, first_BHS, out_BTHS, norm_BTH)
        ctx.save_for_backward(a_BTHSS, first_BHS, out_BTHS, norm_BTH)
        return out_BTHS

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad_BTHS: Tensor) -> tuple[Tensor, Tensor]:
        a_BTHSS, first_BHS, out_BTHS, norm_BTH = ctx.saved_tensors  # type: ignore[attr-defined]
        da_BTHSS, dfirst_BHS = torch.empty_like(a_BTHSS), torch.empty_like(first_BHS)
        made = (first_BHS, out_BTHS, norm_BTH, da_BTHSS, dfirst_BHS)
        _launch(bilinear_backward, a_BTHSS, grad_BTHS.contiguous(), a_BTHSS, *made)
        return da_BTHSS, dfirst_BHS


def _launch(kernel: triton.JITFunction, a_BTHSS: Tensor, *tensors: Tensor) -> None:
    samples, tokens, blocks, size = a_BTHSS.shape[:4]
    some = max(1, BLOCK_NUMBERS // size**2)
    grid = (samples, triton.cdiv(blocks, some))
    kernel[grid](*tensors, tokens, blocks, S=size, G=some, ROOT=math.sqrt(size), LEAST=EPSILON, num_warps=4)
