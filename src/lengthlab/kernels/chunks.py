"""The read of hierarchical attention, as one kernel forward and two backward: nothing that was chosen is copied.

    out_m = Σ_k w_mk · softmax(q_m · K_c / sqrt(C)) V_c     with c = row_mk

Forward, a program has the heads of one query and walks the chunks that the query chose. Backward, one kernel walks them again
for the gradients of queries and weights; another has one chunk to a program and walks the queries that chose it, found by a
stable sort of all choices. So every number is written by one program, in one order: no atomics, the same bits every time, and
memory grows with queries and chunks, not with what they choose.

Shapes: M queries, each for a group of P heads with the same keys and values, C channels of a head, K chunks that each reads,
I chunks in all, S tokens of a chunk, E = 2C for keys and values, L = M · K choices.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthlab.kernels.sizes import CHUNK_ROWS, factors_of, tile


@triton.jit
def _chunk(kv_ptr, row, S: tl.constexpr, C: tl.constexpr, TS: tl.constexpr, TC: tl.constexpr):
    """Keys and values of a chunk, zeros where its tile is larger."""
    token, channel = tl.arange(0, TS), tl.arange(0, TC)
    here = (token < S)[:, None] & (channel < C)[None, :]
    at = kv_ptr + row.to(tl.int64) * (S * 2 * C) + token[:, None] * (2 * C) + channel[None, :]
    return tl.load(at, mask=here, other=0.0), tl.load(at + C, mask=here, other=0.0)


@triton.jit
def _inside(q, k, scale, S: tl.constexpr, TS: tl.constexpr, PRECISION: tl.constexpr):
    """Softmax inside a chunk, for each row of q."""
    scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
    scores = tl.where((tl.arange(0, TS) < S)[None, :], scores, -float("inf"))
    weights = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    return weights / tl.sum(weights, axis=1)[:, None]


@triton.jit
def chunks_forward(
    q_ptr,  # M, P, C
    kv_ptr,  # I, S, 2C
    row_ptr,  # M, K
    weight_ptr,  # M, K
    out_ptr,  # M, P, C: out
    scale: float,
    K: tl.constexpr,
    P: tl.constexpr,
    S: tl.constexpr,
    C: tl.constexpr,
    TP: tl.constexpr,
    TS: tl.constexpr,
    TC: tl.constexpr,
    PRECISION: tl.constexpr,
):
    kind: tl.constexpr = q_ptr.dtype.element_ty
    query = tl.program_id(0).to(tl.int64)
    head, channel = tl.arange(0, TP), tl.arange(0, TC)
    here = (head < P)[:, None] & (channel < C)[None, :]
    at = query * (P * C) + head[:, None] * C + channel[None, :]
    q = tl.load(q_ptr + at, mask=here, other=0.0)
    out = tl.zeros((TP, TC), dtype=tl.float32)
    for choice in range(K):
        weight = tl.load(weight_ptr + query * K + choice)
        k, v = _chunk(kv_ptr, tl.load(row_ptr + query * K + choice), S, C, TS, TC)
        inside = _inside(q, k, scale, S, TS, PRECISION)
        out += weight * tl.dot(inside.to(kind), v, input_precision=PRECISION)
    tl.store(out_ptr + at, out.to(kind), mask=here)


@triton.jit
def queries_backward(
    q_ptr,
    kv_ptr,
    row_ptr,
    weight_ptr,
    grad_ptr,  # M, P, C: of what forward gave
    dq_ptr,  # M, P, C: out
    dweight_ptr,  # M, K: out
    scale: float,
    K: tl.constexpr,
    P: tl.constexpr,
    S: tl.constexpr,
    C: tl.constexpr,
    TP: tl.constexpr,
    TS: tl.constexpr,
    TC: tl.constexpr,
    PRECISION: tl.constexpr,
):
    kind: tl.constexpr = q_ptr.dtype.element_ty
    query = tl.program_id(0).to(tl.int64)
    head, channel = tl.arange(0, TP), tl.arange(0, TC)
    here = (head < P)[:, None] & (channel < C)[None, :]
    at = query * (P * C) + head[:, None] * C + channel[None, :]
    q = tl.load(q_ptr + at, mask=here, other=0.0)
    grad = tl.load(grad_ptr + at, mask=here, other=0.0)
    dq = tl.zeros((TP, TC), dtype=tl.float32)
    for choice in range(K):
        weight = tl.load(weight_ptr + query * K + choice)
        k, v = _chunk(kv_ptr, tl.load(row_ptr + query * K + choice), S, C, TS, TC)
        inside = _inside(q, k, scale, S, TS, PRECISION)
        dinside = tl.dot(grad, tl.trans(v), input_precision=PRECISION)
        along = tl.sum(inside * dinside, axis=1)
        tl.store(dweight_ptr + query * K + choice, tl.sum(along, axis=0))  # rows that are no heads have no gradient
        dscores = inside * (dinside - along[:, None]) * (weight * scale)
        dq = tl.dot(dscores.to(kind), k, dq, input_precision=PRECISION)
    tl.store(dq_ptr + at, dq.to(kind), mask=here)


@triton.jit
def chunks_backward(
    q_ptr,
    kv_ptr,
    weight_ptr,
    order_ptr,  # L: choices, those of one chunk after those of another
    start_ptr,  # I + 1: where those of a chunk begin
    grad_ptr,
    dkv_ptr,  # I, S, 2C: out
    scale: float,
    K: tl.constexpr,
    P: tl.constexpr,
    S: tl.constexpr,
    C: tl.constexpr,
    R: tl.constexpr,  # heads of several queries at a time
    TS: tl.constexpr,
    TC: tl.constexpr,
    PRECISION: tl.constexpr,
):
    kind: tl.constexpr = q_ptr.dtype.element_ty
    chunk = tl.program_id(0)
    start, end = tl.load(start_ptr + chunk), tl.load(start_ptr + chunk + 1)
    k, v = _chunk(kv_ptr, chunk, S, C, TS, TC)
    each, channel = tl.arange(0, R), tl.arange(0, TC)
    dk = tl.zeros((TS, TC), dtype=tl.float32)
    dv = tl.zeros((TS, TC), dtype=tl.float32)
    while start < end:
        place = start + each // P
        there = (each < R // P * P) & (place < end)
        choice = tl.load(order_ptr + place, mask=there, other=0)
        weight = tl.load(weight_ptr + choice, mask=there, other=0.0)[:, None]
        at = (choice // K * P + each % P)[:, None] * C + channel[None, :]
        here = there[:, None] & (channel < C)[None, :]
        q = tl.load(q_ptr + at, mask=here, other=0.0)
        grad = tl.load(grad_ptr + at, mask=here, other=0.0)
        inside = _inside(q, k, scale, S, TS, PRECISION)
        dinside = tl.dot(grad, tl.trans(v), input_precision=PRECISION)
        dscores = inside * (dinside - tl.sum(inside * dinside, axis=1)[:, None]) * (weight * scale)
        dv = tl.dot(tl.trans((inside * weight).to(kind)), grad, dv, input_precision=PRECISION)
        dk = tl.dot(tl.trans(dscores.to(kind)), q, dk, input_precision=PRECISION)
        start += R // P
    token = tl.arange(0, TS)
    here = (token < S)[:, None] & (channel < C)[None, :]
    out = dkv_ptr + chunk.to(tl.int64) * (S * 2 * C) + token[:, None] * (2 * C) + channel[None, :]
    tl.store(out, dk.to(kind), mask=here)
    tl.store(out + C, dv.to(kind), mask=here)


class ChunkRead(torch.autograd.Function):
    """out_MPC for queries q_MPC, chunks kv_ISE, and the rows and weights (in fp32) of the chunks that each query chose."""

    @staticmethod
    def forward(ctx: FunctionCtx, q_MPC: Tensor, kv_ISE: Tensor, row_MK: Tensor, weight_MK: Tensor) -> Tensor:
        inputs = tuple(each.contiguous() for each in (q_MPC, kv_ISE, row_MK, weight_MK))
        ctx.save_for_backward(*inputs)
        out_MPC = torch.empty_like(inputs[0])
        _launch(chunks_forward, len(q_MPC), row_MK.shape[1], *inputs, out_MPC)
        return out_MPC

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad_MPC: Tensor) -> tuple[Tensor | None, ...]:
        q_MPC, kv_ISE, row_MK, weight_MK = ctx.saved_tensors  # type: ignore[attr-defined]
        grad_MPC, chosen = grad_MPC.contiguous(), row_MK.shape[1]
        dq_MPC, dkv_ISE, dweight_MK = map(torch.empty_like, (q_MPC, kv_ISE, weight_MK))
        _launch(queries_backward, len(q_MPC), chosen, q_MPC, kv_ISE, row_MK, weight_MK, grad_MPC, dq_MPC, dweight_MK)
        choices = choices_by_chunk(row_MK, weight_MK, len(kv_ISE))
        _launch(chunks_backward, len(kv_ISE), chosen, q_MPC, kv_ISE, weight_MK, *choices, grad_MPC, dkv_ISE)
        return dq_MPC, dkv_ISE, None, dweight_MK


def choices_by_chunk(row_MK: Tensor, weight_MK: Tensor, chunks: int) -> tuple[Tensor, Tensor]:
    """order_L and start_I: all choices by the chunk that was chosen, and where those of each begin. What has no weight, because
    it may not be seen, gives no gradient, and comes last.

    >>> order, start = choices_by_chunk(torch.tensor([[1, 0], [1, 2]]), torch.tensor([[0.5, 0.5], [1.0, 0.0]]), chunks=3)
    >>> order.tolist(), start.tolist()
    ([1, 0, 2, 3], [0, 1, 3, 3])
    """
    chosen_L, order_L = row_MK.masked_fill(weight_MK == 0, chunks).flatten().sort(stable=True)
    return order_L, torch.searchsorted(chosen_L, torch.arange(chunks + 1, device=row_MK.device))


def _launch(kernel: triton.JITFunction, programs: int, chosen: int, *tensors: Tensor) -> None:
    q_MPC, kv_ISE = tensors[:2]
    heads, channels = q_MPC.shape[1:]
    rows = {"R": max(CHUNK_ROWS, tile(heads))} if kernel is chunks_backward else {"TP": tile(heads)}
    kernel[(programs,)](
        *tensors,
        channels**-0.5,
        K=chosen,
        P=heads,
        S=kv_ISE.shape[1],
        C=channels,
        **rows,
        TS=tile(kv_ISE.shape[1]),
        TC=tile(channels),
        PRECISION=factors_of(q_MPC),
        num_warps=4 if tile(kv_ISE.shape[1]) * tile(channels) < 8192 else 8,
        num_stages=2,
    )
