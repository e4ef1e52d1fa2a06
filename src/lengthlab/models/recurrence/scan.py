"""The LSTM's scan through time with as few operations as it takes, for CPUs.

`nn.LSTM` there makes a dozen small operations for every token and keeps each for the backward pass. At the sizes of a laptop
that costs more than the arithmetic. Here everything that does not depend on the state before is done for all tokens at once:
the input's part of the gates, the derivatives of the gates, the gradient of the weights.

Tokens are in order of time, documents longest first: those still under way at time t are the first of those at t - 1.
Shapes: N tokens of all documents, A documents at a time, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx


class LstmScan(torch.autograd.Function):
    """h_ND from the input's part of the gates (i, f, g, o), the recurrent weights and the documents at each time."""

    @staticmethod
    def forward(ctx: FunctionCtx, gates_in_N4D: Tensor, weight_4DD: Tensor, documents_T: list[int]) -> Tensor:
        gates_N4D = gates_in_N4D.clone()
        h_ND, c_ND, tanh_ND = (gates_N4D.new_empty(len(gates_N4D), weight_4DD.shape[1]) for _ in range(3))
        i_ND, f_ND, g_ND, o_ND = gates_N4D.chunk(4, dim=1)
        both_N2D = gates_N4D[:, : 2 * weight_4DD.shape[1]]
        # Splitting is one call for all times; slicing at every time would take longer than the arithmetic.
        parts = [x.split(documents_T) for x in (gates_N4D, both_N2D, i_ND, f_ND, g_ND, o_ND, h_ND, c_ND, tanh_ND)]  # type: ignore[no-untyped-call]
        h_before, c_before = _before(parts[6]), _before(parts[7])
        weight_D4D = weight_4DD.T
        for t, (gates, both, i, f, g, o, h, c, tanh) in enumerate(zip(*parts, strict=True)):
            if t:
                gates.addmm_(h_before[t], weight_D4D)
            both.sigmoid_()
            g.tanh_()
            o.sigmoid_()
            torch.mul(i, g, out=c)
            if t:
                c.addcmul_(f, c_before[t])
            torch.mul(o, torch.tanh(c, out=tanh), out=h)
        ctx.save_for_backward(gates_N4D, weight_4DD, h_ND, c_ND, tanh_ND)
        ctx.documents_T = documents_T  # type: ignore[attr-defined]
        return h_ND

    @staticmethod
    def backward(ctx: FunctionCtx, grad_ND: Tensor) -> tuple[Tensor, Tensor, None]:
        gates_N4D, weight_4DD, h_ND, c_ND, tanh_ND = ctx.saved_tensors  # type: ignore[attr-defined]
        documents_T: list[int] = ctx.documents_T  # type: ignore[attr-defined]
        h_before_ND, c_before_ND = (torch.cat(_before(x_ND.split(documents_T))) for x_ND in (h_ND, c_ND))
        i_ND, f_ND, g_ND, o_ND = gates_N4D.chunk(4, dim=1)
        by_cell_N3D = torch.stack((g_ND * i_ND * (1 - i_ND), c_before_ND * f_ND * (1 - f_ND), i_ND * (1 - g_ND**2)), dim=1)
        by_state_ND, cell_by_state_ND = tanh_ND * o_ND * (1 - o_ND), o_ND * (1 - tanh_ND**2)

        dgates_N4D = torch.empty_like(gates_N4D)
        dgates_N4_D = dgates_N4D.view(len(dgates_N4D), 4, -1)
        dh_ND, dc_AD = grad_ND.clone(), torch.zeros_like(h_ND[: documents_T[0]])
        split = (by_cell_N3D, by_state_ND, cell_by_state_ND, f_ND, dgates_N4D, dgates_N4_D[:, :3], dgates_N4_D[:, 3], dh_ND)
        parts = [x.split(documents_T) for x in split]
        dh_before = _before(parts[-1])
        dc = [dc_AD[:documents] for documents in documents_T]
        steps = list(enumerate(zip(*parts, dc, strict=True)))
        for t, (by_cell, by_state, cell_by_state, f, dgates, of_cell, of_state, dh, dc_t) in reversed(steps):
            dc_t.addcmul_(dh, cell_by_state)
            torch.mul(by_cell, dc_t[:, None], out=of_cell)
            torch.mul(by_state, dh, out=of_state)
            if t:
                dc_t.mul_(f)
                dh_before[t].addmm_(dgates, weight_4DD)
        return dgates_N4D, dgates_N4D.T @ h_before_ND, None


def _before(x_T: Sequence[Tensor]) -> list[Tensor]:
    """For the documents at each time, their rows at the time before; zeros at first."""
    return [torch.zeros_like(x_T[0]), *(earlier[: len(later)] for earlier, later in pairwise(x_T))]
