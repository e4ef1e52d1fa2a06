"""Causal attention over short documents that lie one after the other, as one kernel forward and one backward.

A training document is a few dozen tokens long: all its scores fit into one tile, so softmax needs no passes over blocks, the
backward pass computes the scores again instead of keeping them, and rotary positions are applied on the way in and out. Weights
may be 1.5-entmax as well, whose threshold is found inside the tile. General kernels work in tiles of 128 by 128 there, most of
them empty.

Shapes: N tokens of all documents, M of them with a query, B documents, H heads, C channels of a head, F = C / 2 pairs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthlab.kernels.sizes import factors_of


@triton.jit
def _rotated(low, high, cos, sin, kind: tl.constexpr):
    """Each pair of channels rotated by its angle."""
    return (low * cos - high * sin).to(kind), (high * cos + low * sin).to(kind)


@triton.jit
def _document(query_ptr, start_ptr, length_ptr, Q: tl.constexpr, TQ: tl.constexpr):
    """Where this program's queries and keys lie: Q queries a document at the positions named, or, if Q is 0, all."""
    document = tl.program_id(0)
    start = tl.load(start_ptr + document)
    length = tl.load(length_ptr + document)
    rank = tl.arange(0, TQ)
    if Q == 0:
        here = rank < length
        token = start + rank
        position = tl.where(here, rank, 0)
    else:
        here = rank < Q
        token = document * Q + rank
        position = tl.where(here, tl.load(query_ptr + token, mask=here, other=0) - start, 0)
    return start, length, token, position, here


@triton.jit
def _pairs(ptr, token, width, first, here, F: tl.constexpr):
    """Low and high channels of a head, in fp32."""
    place = ptr + token[:, None] * width + first + tl.arange(0, F)[None, :]
    low = tl.load(place, mask=here[:, None], other=0.0).to(tl.float32)
    return low, tl.load(place + F, mask=here[:, None], other=0.0).to(tl.float32)


@triton.jit
def _angles(cos_ptr, sin_ptr, position, F: tl.constexpr):
    place = position[:, None] * F + tl.arange(0, F)[None, :]
    return tl.load(cos_ptr + place), tl.load(sin_ptr + place)


@triton.jit
def _read(
    q_ptr,
    kv_ptr,
    cos_ptr,
    sin_ptr,
    token,
    start,
    position,
    here,
    there,
    first,
    D: tl.constexpr,
    F: tl.constexpr,
    TK: tl.constexpr,
):
    """Queries and keys of a head, rotated, and the angles by which."""
    key = tl.arange(0, TK)
    q_low, q_high = _pairs(q_ptr, token, D, first, here, F)
    k_low, k_high = _pairs(kv_ptr, start + key, 2 * D, first, there, F)
    q_cos, q_sin = _angles(cos_ptr, sin_ptr, position, F)
    k_cos, k_sin = _angles(cos_ptr, sin_ptr, key, F)
    q_low, q_high = _rotated(q_low, q_high, q_cos, q_sin, q_ptr.dtype.element_ty)
    k_low, k_high = _rotated(k_low, k_high, k_cos, k_sin, q_ptr.dtype.element_ty)
    return q_low, q_high, k_low, k_high, q_cos, q_sin, k_cos, k_sin


@triton.jit
def _entmax(scores):
    """[z - τ]₊² of each row, z = (score - highest) / 2. τ lies between -1 and 0. Halving brackets it to 2⁻¹⁶, and then it is
    solved for exactly on what lies above the bracket's lower end. What is taken in wrongly there is within 2⁻¹⁶ of τ, so that
    its square does not count.
    """
    z = (scores - tl.max(scores, axis=1)[:, None]) / 2
    low = tl.zeros_like(tl.max(z, axis=1)) - 1
    high = low + 1
    for _ in range(16):
        middle = (low + high) / 2
        above = tl.maximum(z - middle[:, None], 0.0)
        enough = tl.sum(above * above, axis=1) >= 1
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle)
    support = z > low[:, None]
    k = tl.sum(tl.where(support, 1.0, 0.0), axis=1)
    mean = tl.sum(tl.where(support, z, 0.0), axis=1) / k
    apart = tl.where(support, z - mean[:, None], 0.0)
    tau = mean - tl.sqrt(tl.maximum(1 - tl.sum(apart * apart, axis=1), 0.0) / k)
    root = tl.maximum(z - tau[:, None], 0.0, propagate_nan=tl.PropagateNan.ALL)  # else a score that is NaN gets no weight
    return root * root


@triton.jit
def _entmax_gradient(weights, dweights):
    root = tl.sqrt(weights)
    dz = root * dweights
    return dz - root * (tl.sum(dz, axis=1) / tl.sum(root, axis=1))[:, None]


@triton.jit
def _softmax(scores):
    weights = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    return weights / tl.sum(weights, axis=1)[:, None]


@triton.jit
def _softmax_gradient(weights, dweights):
    return weights * (dweights - tl.sum(weights * dweights, axis=1)[:, None])


@triton.jit
def _weights(
    q_low, q_high, k_low, k_high, position, length, scale, TK: tl.constexpr, ENTMAX: tl.constexpr, PRECISION: tl.constexpr
):
    """Of the scores, with what lies ahead or outside left out."""
    scores = tl.dot(q_low, tl.trans(k_low), input_precision=PRECISION)
    scores = tl.dot(q_high, tl.trans(k_high), scores, input_precision=PRECISION) * scale
    key = tl.arange(0, TK)
    seen = (key[None, :] <= position[:, None]) & (key[None, :] < length)
    scores = tl.where(seen, scores, -float("inf"))
    return _entmax(scores) if ENTMAX else _softmax(scores)


@triton.jit
def attention_forward(
    q_ptr,  # M, D
    kv_ptr,  # N, 2D
    cos_ptr,  # TK, F
    sin_ptr,
    query_ptr,  # M
    start_ptr,  # B
    length_ptr,  # B
    out_ptr,  # M, D
    scale: float,
    D: tl.constexpr,
    F: tl.constexpr,
    Q: tl.constexpr,
    TQ: tl.constexpr,
    TK: tl.constexpr,
    ENTMAX: tl.constexpr,
    PRECISION: tl.constexpr,
):
    kind: tl.constexpr = q_ptr.dtype.element_ty
    start, length, token, position, here = _document(query_ptr, start_ptr, length_ptr, Q, TQ)
    key = tl.arange(0, TK)
    there = key < length
    first = tl.program_id(1) * 2 * F
    q_low, q_high, k_low, k_high, _, _, _, _ = _read(
        q_ptr, kv_ptr, cos_ptr, sin_ptr, token, start, position, here, there, first, D, F, TK
    )
    weights = _weights(q_low, q_high, k_low, k_high, position, length, scale, TK, ENTMAX, PRECISION).to(kind)
    channel = first + tl.arange(0, 2 * F)
    v = tl.load(kv_ptr + (start + key)[:, None] * (2 * D) + D + channel[None, :], mask=there[:, None], other=0.0)
    out = tl.dot(weights, v, input_precision=PRECISION)
    tl.store(out_ptr + token[:, None] * D + channel[None, :], out.to(kind), mask=here[:, None])


@triton.jit
def attention_backward(
    q_ptr,
    kv_ptr,
    cos_ptr,
    sin_ptr,
    query_ptr,
    start_ptr,
    length_ptr,
    grad_ptr,  # M, D: of what forward gave
    dq_ptr,  # M, D
    dkv_ptr,  # N, 2D
    scale: float,
    D: tl.constexpr,
    F: tl.constexpr,
    Q: tl.constexpr,
    TQ: tl.constexpr,
    TK: tl.constexpr,
    ENTMAX: tl.constexpr,
    PRECISION: tl.constexpr,
):
    kind: tl.constexpr = q_ptr.dtype.element_ty
    start, length, token, position, here = _document(query_ptr, start_ptr, length_ptr, Q, TQ)
    key = tl.arange(0, TK)
    there = key < length
    first = tl.program_id(1) * 2 * F
    q_low, q_high, k_low, k_high, q_cos, q_sin, k_cos, k_sin = _read(
        q_ptr, kv_ptr, cos_ptr, sin_ptr, token, start, position, here, there, first, D, F, TK
    )
    weights = _weights(q_low, q_high, k_low, k_high, position, length, scale, TK, ENTMAX, PRECISION)

    channel = first + tl.arange(0, 2 * F)
    value = (start + key)[:, None] * (2 * D) + D + channel[None, :]
    v = tl.load(kv_ptr + value, mask=there[:, None], other=0.0)
    grad = tl.load(grad_ptr + token[:, None] * D + channel[None, :], mask=here[:, None], other=0.0)
    dv = tl.dot(tl.trans(weights.to(kind)), grad, input_precision=PRECISION)
    tl.store(dkv_ptr + value, dv.to(kind), mask=there[:, None])
    dweights = tl.dot(grad, tl.trans(v), input_precision=PRECISION)
    dscores = _entmax_gradient(weights, dweights) if ENTMAX else _softmax_gradient(weights, dweights)
    dscores = (dscores * scale).to(kind)

    dq_low = tl.dot(dscores, k_low, input_precision=PRECISION)
    dq_high = tl.dot(dscores, k_high, input_precision=PRECISION)
    dk_low = tl.dot(tl.trans(dscores), q_low, input_precision=PRECISION)
    dk_high = tl.dot(tl.trans(dscores), q_high, input_precision=PRECISION)
    dq_low, dq_high = _rotated(dq_low, dq_high, q_cos, -q_sin, kind)
    dk_low, dk_high = _rotated(dk_low, dk_high, k_cos, -k_sin, kind)
    pair = first + tl.arange(0, F)[None, :]
    tl.store(dq_ptr + token[:, None] * D + pair, dq_low, mask=here[:, None])
    tl.store(dq_ptr + token[:, None] * D + pair + F, dq_high, mask=here[:, None])
    tl.store(dkv_ptr + (start + key)[:, None] * (2 * D) + pair, dk_low, mask=there[:, None])
    tl.store(dkv_ptr + (start + key)[:, None] * (2 * D) + pair + F, dk_high, mask=there[:, None])


class DocumentAttention(torch.autograd.Function):
    """out_MD for queries q_MD, keys and values kv_N(2D), rotary tables cos_TF and sin_TF; by entmax or else by softmax."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        q_MD: Tensor,
        kv_NE: Tensor,
        angles: tuple[Tensor, Tensor],
        query_M: Tensor | None,
        start_B: Tensor,
        length_B: Tensor,
        heads: int,
        entmax: bool,
    ) -> Tensor:
        q_MD, kv_NE = q_MD.contiguous(), kv_NE.contiguous()
        positions = start_B if query_M is None else query_M  # never read where every token has a query
        inputs = (q_MD, kv_NE, *angles, positions, start_B, length_B)
        ctx.save_for_backward(*inputs)
        queries = 0 if query_M is None else len(query_M) // len(start_B)
        ctx.choices = (heads, queries, entmax)  # type: ignore[attr-defined]
        out_MD = torch.empty_like(q_MD)
        _launch(attention_forward, ctx.choices, *inputs, out_MD)  # type: ignore[attr-defined]
        return out_MD

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad_MD: Tensor) -> tuple[Tensor | None, ...]:
        inputs = ctx.saved_tensors  # type: ignore[attr-defined]
        dq_MD, dkv_NE = torch.empty_like(inputs[0]), torch.empty_like(inputs[1])
        _launch(attention_backward, ctx.choices, *inputs, grad_MD.contiguous(), dq_MD, dkv_NE)  # type: ignore[attr-defined]
        return dq_MD, dkv_NE, *(None,) * 6


def _launch(kernel: triton.JITFunction, choices: tuple[int, int, bool], *tensors: Tensor) -> None:
    heads, queries, entmax = choices
    q_MD, cos_TF, start_B = tensors[0], tensors[2], tensors[5]
    tokens, pairs = cos_TF.shape
    kernel[(len(start_B), heads)](
        *tensors,
        (2 * pairs) ** -0.5,
        D=q_MD.shape[1],
        F=pairs,
        Q=queries,
        TQ=max(16, triton.next_power_of_2(queries)) if queries else tokens,
        TK=tokens,
        ENTMAX=entmax,
        PRECISION=factors_of(q_MD),
        num_warps=8 if pairs >= 64 else 4,
    )
