"""The sLSTM cell, as one kernel forward and one backward.

One program walks R samples of one head from the first token to the last, with everything that is carried from token to token
in its registers. What does not depend on the state (the input's part of the gates, the gradient of the weights) is left to
large products outside.

Shapes: B samples, T tokens, H heads, C channels of a head, E = 4C for the gates z, i, f, o; R samples of a program.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthlab.kernels.sizes import ROWS

FACTORS = "tf32x3"
"""Products of h are made of three rounded ones each, which is nearly fp32."""


@triton.jit
def slstm_forward(
    gates_ptr,  # B, T, H, 4C: in, the input's part of each gate; out, tanh(z), the scaled i and f, σ(o)
    mixing_ptr,  # H, C, 4C
    state_ptr,  # 4, B, H, C: h, c, n, m; in, before the first token; out, after the last
    out_ptr,  # B, T, H, C: h
    cell_ptr,  # B, T, H, C: c
    norm_ptr,  # B, T, H, C: n
    forgot_ptr,  # B, T, H, C: 1 - σ(f), by which the gradient of f goes
    samples: int,
    tokens: int,
    heads: int,
    C: tl.constexpr,
    R: tl.constexpr,
    FACTORS: tl.constexpr,
):
    sample = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)[:, None]
    head = tl.program_id(1)
    channel = tl.arange(0, C)
    here = sample < samples
    kept = state_ptr + (sample * heads + head) * C + channel[None, :]
    each = samples * heads * C
    h_RC = tl.load(kept, mask=here, other=0.0)
    c_RC = tl.load(kept + each, mask=here, other=0.0)
    n_RC = tl.load(kept + 2 * each, mask=here, other=1.0)
    m_RC = tl.load(kept + 3 * each, mask=here, other=0.0)
    mixing = mixing_ptr + (head * C + channel[:, None]) * (4 * C) + channel[None, :]
    for t in range(0, tokens):
        at = ((sample * tokens + t) * heads + head) * C + channel[None, :]
        gate = gates_ptr + ((sample * tokens + t) * heads + head) * (4 * C) + channel[None, :]
        z = tl.load(gate, mask=here, other=0.0)
        i = tl.load(gate + C, mask=here, other=0.0)
        f = tl.load(gate + 2 * C, mask=here, other=0.0)
        o = tl.load(gate + 3 * C, mask=here, other=0.0)
        z = tl.dot(h_RC, tl.load(mixing), z, input_precision=FACTORS)
        i = tl.dot(h_RC, tl.load(mixing + C), i, input_precision=FACTORS)
        f = tl.dot(h_RC, tl.load(mixing + 2 * C), f, input_precision=FACTORS)
        o = tl.dot(h_RC, tl.load(mixing + 3 * C), o, input_precision=FACTORS)
        z = 2 * tl.sigmoid(2 * z) - 1
        forgot = tl.sigmoid(-f)
        log_f = tl.minimum(f, 0.0) - tl.log(1 + tl.exp(-tl.abs(f)))
        before = m_RC
        m_RC = tl.maximum(log_f + before, i)
        f = tl.exp(log_f + before - m_RC)
        i = tl.exp(i - m_RC)
        c_RC = f * c_RC + i * z
        n_RC = f * n_RC + i
        o = tl.sigmoid(o)
        h_RC = o * c_RC / n_RC
        tl.store(gate, z, mask=here)
        tl.store(gate + C, i, mask=here)
        tl.store(gate + 2 * C, f, mask=here)
        tl.store(gate + 3 * C, o, mask=here)
        tl.store(out_ptr + at, h_RC, mask=here)
        tl.store(cell_ptr + at, c_RC, mask=here)
        tl.store(norm_ptr + at, n_RC, mask=here)
        tl.store(forgot_ptr + at, forgot, mask=here)
    tl.store(kept, h_RC, mask=here)
    tl.store(kept + each, c_RC, mask=here)
    tl.store(kept + 2 * each, n_RC, mask=here)
    tl.store(kept + 3 * each, m_RC, mask=here)


@triton.jit
def slstm_backward(
    grad_ptr,  # B, T, H, C: of h, from outside
    gates_ptr,  # B, T, H, 4C
    mixing_ptr,  # H, C, 4C
    cell_ptr,  # B, T, H, C
    norm_ptr,  # B, T, H, C
    forgot_ptr,  # B, T, H, C
    dgates_ptr,  # B, T, H, 4C: out, the gradient of the gates' inputs
    samples: int,
    tokens: int,
    heads: int,
    C: tl.constexpr,
    R: tl.constexpr,
    FACTORS: tl.constexpr,
):
    sample = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)[:, None]
    head = tl.program_id(1)
    channel = tl.arange(0, C)
    here = sample < samples
    turned = mixing_ptr + (head * C + channel[None, :]) * (4 * C) + channel[:, None]
    dh_RC = tl.zeros((R, C), dtype=tl.float32)
    dc_RC = tl.zeros((R, C), dtype=tl.float32)
    dn_RC = tl.zeros((R, C), dtype=tl.float32)
    t = tokens - 1
    while t >= 0:
        at = ((sample * tokens + t) * heads + head) * C + channel[None, :]
        gate = ((sample * tokens + t) * heads + head) * (4 * C) + channel[None, :]
        earlier = here & (t > 0)
        z = tl.load(gates_ptr + gate, mask=here, other=0.0)
        i = tl.load(gates_ptr + gate + C, mask=here, other=0.0)
        f = tl.load(gates_ptr + gate + 2 * C, mask=here, other=0.0)
        o = tl.load(gates_ptr + gate + 3 * C, mask=here, other=0.0)
        c = tl.load(cell_ptr + at, mask=here, other=0.0)
        n = tl.load(norm_ptr + at, mask=here, other=1.0)
        c_before = tl.load(cell_ptr + at - heads * C, mask=earlier, other=0.0)
        n_before = tl.load(norm_ptr + at - heads * C, mask=earlier, other=0.0)
        dh_RC += tl.load(grad_ptr + at, mask=here, other=0.0)
        dc_RC += dh_RC * o / n
        dn_RC -= dh_RC * o * c / (n * n)
        dz = dc_RC * i * (1 - z * z)
        di = (dc_RC * z + dn_RC) * i
        df = (dc_RC * c_before + dn_RC * n_before) * f * tl.load(forgot_ptr + at, mask=here, other=0.0)
        do = dh_RC * c / n * o * (1 - o)
        dc_RC *= f
        dn_RC *= f
        tl.store(dgates_ptr + gate, dz, mask=here)
        tl.store(dgates_ptr + gate + C, di, mask=here)
        tl.store(dgates_ptr + gate + 2 * C, df, mask=here)
        tl.store(dgates_ptr + gate + 3 * C, do, mask=here)
        dh_RC = tl.dot(dz, tl.load(turned), input_precision=FACTORS)
        dh_RC = tl.dot(di, tl.load(turned + C), dh_RC, input_precision=FACTORS)
        dh_RC = tl.dot(df, tl.load(turned + 2 * C), dh_RC, input_precision=FACTORS)
        dh_RC = tl.dot(do, tl.load(turned + 3 * C), dh_RC, input_precision=FACTORS)
        t -= 1


class SLstmScan(torch.autograd.Function):
    """h after every token, from the input's part of the gates and a state that no gradient goes to: out_BTHC, and the state
    after the last token, which none comes from. All in fp32.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, gates_in_BTHE: Tensor, mixing_HCE: Tensor, state_4BHC: Tensor) -> tuple[Tensor, Tensor]:
        gates_BTHE = gates_in_BTHE.clone(memory_format=torch.contiguous_format)
        mixing_HCE, state_4BHC = mixing_HCE.contiguous(), state_4BHC.clone(memory_format=torch.contiguous_format)
        shape = (*gates_BTHE.shape[:3], mixing_HCE.shape[1])
        out, cell, norm, forgot = (gates_BTHE.new_empty(shape) for _ in range(4))
        first_BHC = state_4BHC[0].clone()
        _launch(slstm_forward, shape, gates_BTHE, mixing_HCE, state_4BHC, out, cell, norm, forgot)
        ctx.save_for_backward(gates_BTHE, mixing_HCE, first_BHC, out, cell, norm, forgot)
        ctx.mark_non_differentiable(state_4BHC)
        return out, state_4BHC

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad_BTHC: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None]:
        gates_BTHE, mixing_HCE, first_BHC, out, cell, norm, forgot = ctx.saved_tensors  # type: ignore[attr-defined]
        dgates_BTHE = torch.empty_like(gates_BTHE)
        made = (grad_BTHC.contiguous(), gates_BTHE, mixing_HCE, cell, norm, forgot, dgates_BTHE)
        _launch(slstm_backward, tuple(out.shape), *made)
        before_BTHC = torch.cat((first_BHC[:, None], out[:, :-1]), dim=1)
        dmixing_HCE = before_BTHC.flatten(0, 1).permute(1, 2, 0) @ dgates_BTHE.flatten(0, 1).transpose(0, 1)
        return dgates_BTHE, dmixing_HCE, None


def _launch(kernel: triton.JITFunction, shape: tuple[int, ...], *tensors: Tensor) -> None:
    samples, tokens, heads, channels = shape
    grid = (triton.cdiv(samples, ROWS), heads)
    kernel[grid](*tensors, samples, tokens, heads, C=channels, R=ROWS, FACTORS=FACTORS, num_warps=4, num_stages=2)
