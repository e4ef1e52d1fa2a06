"""An LSTM over sequences of unequal lengths that lie one after the other, as one kernel forward and one backward.

cuDNN scans a padded batch, every sequence to the end of the longest, with two launches a token. Here one program scans R
sequences of like length from their first token to their last: no padding, no launches, and few enough multiprocessors that
many models share a GPU. What does not depend on the state (the input's projection, the gradient of the weights) is left to
large matrix products outside.

Shapes: N tokens of all sequences, B sequences, D width, J of its channels at a time, R sequences of a program.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthlab.kernels.sizes import ROWS, channels_at_a_time, factors_of


@triton.jit
def lstm_forward(
    gates_ptr,  # N, 4D: in, the input's part of each gate; out, the gates themselves
    weight_ptr,  # 4D, D
    start_ptr,  # B
    length_ptr,  # B
    state_ptr,  # N, D: h
    cell_ptr,  # N, D: c
    rows: int,
    D: tl.constexpr,
    J: tl.constexpr,
    R: tl.constexpr,
    PRECISION: tl.constexpr,
):
    row = tl.program_id(0) * R + tl.arange(0, R)
    start = tl.load(start_ptr + row, mask=row < rows, other=0)
    length = tl.load(length_ptr + row, mask=row < rows, other=0)
    longest = tl.max(length, axis=0)
    channel = tl.arange(0, D)
    t = 0
    while t < longest:
        here = (t < length)[:, None]
        before = here & (t > 0)
        token = (start + t).to(tl.int64)[:, None]
        h_RD = tl.load(state_ptr + (token - 1) * D + channel[None, :], mask=before, other=0.0)
        for j in range(0, D, J):
            some = j + tl.arange(0, J)
            gate = gates_ptr + token * (4 * D) + some[None, :]
            weight = weight_ptr + some[None, :] * D + channel[:, None]
            i = tl.load(gate, mask=here, other=0.0).to(tl.float32)
            f = tl.load(gate + D, mask=here, other=0.0).to(tl.float32)
            g = tl.load(gate + 2 * D, mask=here, other=0.0).to(tl.float32)
            o = tl.load(gate + 3 * D, mask=here, other=0.0).to(tl.float32)
            i = tl.dot(h_RD, tl.load(weight), i, input_precision=PRECISION)
            f = tl.dot(h_RD, tl.load(weight + D * D), f, input_precision=PRECISION)
            g = tl.dot(h_RD, tl.load(weight + 2 * D * D), g, input_precision=PRECISION)
            o = tl.dot(h_RD, tl.load(weight + 3 * D * D), o, input_precision=PRECISION)
            i = tl.sigmoid(i)
            f = tl.sigmoid(f)
            g = 2 * tl.sigmoid(2 * g) - 1
            o = tl.sigmoid(o)
            at = token * D + some[None, :]
            c = f * tl.load(cell_ptr + at - D, mask=before, other=0.0) + i * g
            h = o * (2 * tl.sigmoid(2 * c) - 1)
            tl.store(cell_ptr + at, c, mask=here)
            tl.store(state_ptr + at, h.to(state_ptr.dtype.element_ty), mask=here)
            kind = gates_ptr.dtype.element_ty
            tl.store(gate, i.to(kind), mask=here)
            tl.store(gate + D, f.to(kind), mask=here)
            tl.store(gate + 2 * D, g.to(kind), mask=here)
            tl.store(gate + 3 * D, o.to(kind), mask=here)
        tl.debug_barrier()  # the next token reads what all threads of this program wrote
        t += 1


@triton.jit
def lstm_backward(
    grad_ptr,  # N, D: of h, from outside
    gates_ptr,  # N, 4D
    cell_ptr,  # N, D
    weight_ptr,  # 4D, D
    start_ptr,
    length_ptr,
    dgates_ptr,  # N, 4D: out, the gradient of the gates' inputs
    carry_ptr,  # B, D: of c, from token to token
    rows: int,
    D: tl.constexpr,
    J: tl.constexpr,
    R: tl.constexpr,
    PRECISION: tl.constexpr,
):
    row = tl.program_id(0) * R + tl.arange(0, R)
    start = tl.load(start_ptr + row, mask=row < rows, other=0)
    length = tl.load(length_ptr + row, mask=row < rows, other=0)
    longest = tl.max(length, axis=0)
    row_of_gate = tl.arange(0, D)
    kind = dgates_ptr.dtype.element_ty
    t = longest - 1
    while t >= 0:
        here = (t < length)[:, None]
        after = (t + 1 < length)[:, None]
        before = here & (t > 0)
        token = (start + t).to(tl.int64)[:, None]
        for j in range(0, D, J):
            some = j + tl.arange(0, J)
            at = token * D + some[None, :]
            dh = tl.load(grad_ptr + at, mask=here, other=0.0).to(tl.float32)
            for k in range(0, 4 * D, D):
                dgates_RD = tl.load(dgates_ptr + (token + 1) * (4 * D) + k + row_of_gate[None, :], mask=after, other=0.0)
                weight_DJ = tl.load(weight_ptr + (k + row_of_gate[:, None]) * D + some[None, :])
                dh = tl.dot(dgates_RD, weight_DJ, dh, input_precision=PRECISION)
            gate = gates_ptr + token * (4 * D) + some[None, :]
            i = tl.load(gate, mask=here, other=0.0).to(tl.float32)
            f = tl.load(gate + D, mask=here, other=0.0).to(tl.float32)
            g = tl.load(gate + 2 * D, mask=here, other=0.0).to(tl.float32)
            o = tl.load(gate + 3 * D, mask=here, other=0.0).to(tl.float32)
            c = tl.load(cell_ptr + at, mask=here, other=0.0)
            c_before = tl.load(cell_ptr + at - D, mask=before, other=0.0)
            carry = carry_ptr + row[:, None] * D + some[None, :]
            tanh_c = 2 * tl.sigmoid(2 * c) - 1
            dc = dh * o * (1 - tanh_c * tanh_c) + tl.load(carry, mask=after, other=0.0)
            tl.store(carry, dc * f, mask=here)
            dgate = dgates_ptr + token * (4 * D) + some[None, :]
            tl.store(dgate, (dc * g * i * (1 - i)).to(kind), mask=here)
            tl.store(dgate + D, (dc * c_before * f * (1 - f)).to(kind), mask=here)
            tl.store(dgate + 2 * D, (dc * i * (1 - g * g)).to(kind), mask=here)
            tl.store(dgate + 3 * D, (dh * tanh_c * o * (1 - o)).to(kind), mask=here)
        tl.debug_barrier()
        t -= 1


class Lstm(torch.autograd.Function):
    """h_ND of an LSTM from the input's part of its gates (i, f, g, o), document after document."""

    @staticmethod
    def forward(ctx: FunctionCtx, gates_in_N4D: Tensor, weight_4DD: Tensor, start_B: Tensor, length_B: Tensor) -> Tensor:
        gates_N4D = gates_in_N4D.clone(memory_format=torch.contiguous_format)
        weight_4DD = weight_4DD.contiguous()
        h_ND = gates_N4D.new_empty(len(gates_N4D), weight_4DD.shape[1])
        c_ND = torch.empty_like(h_ND, dtype=torch.float32)
        _launch(lstm_forward, gates_N4D, weight_4DD, start_B, length_B, h_ND, c_ND)
        ctx.save_for_backward(gates_N4D, weight_4DD, start_B, length_B, h_ND, c_ND)
        return h_ND

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad_ND: Tensor) -> tuple[Tensor | None, ...]:
        gates_N4D, weight_4DD, start_B, length_B, h_ND, c_ND = ctx.saved_tensors  # type: ignore[attr-defined]
        grad_ND, dgates_N4D = grad_ND.contiguous(), torch.empty_like(gates_N4D)
        carry_BD = c_ND.new_empty(len(start_B), c_ND.shape[1])
        _launch(lstm_backward, grad_ND, gates_N4D, c_ND, weight_4DD, start_B, length_B, dgates_N4D, carry_BD)
        before_ND = torch.cat((torch.zeros_like(h_ND[:1]), h_ND[:-1]))
        before_ND.index_fill_(0, start_B, 0.0)
        return dgates_N4D, dgates_N4D.T @ before_ND, None, None


def _launch(kernel: triton.JITFunction, *tensors: Tensor) -> None:
    weight_4DD, start_B = (tensors[3], tensors[4]) if kernel is lstm_backward else (tensors[1], tensors[2])
    rows, width = len(start_B), weight_4DD.shape[1]
    exact = weight_4DD.dtype == torch.float32
    kernel[(triton.cdiv(rows, ROWS),)](
        *tensors,
        rows,
        D=width,
        J=channels_at_a_time(width, weight_4DD.dtype, weight_4DD.device),
        R=ROWS,
        PRECISION=factors_of(weight_4DD),
        num_warps=4,
        num_stages=3 if kernel is lstm_backward and not exact else 2,
    )
