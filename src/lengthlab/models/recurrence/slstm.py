"""The LSTM with exponential gates and a scalar memory.

Shapes: B samples, T tokens, D width, H heads, C = D / H channels of a head, E = 4C for the four gates.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.errors import require, require_whole
from lengthlab.models.exact import exact
from lengthlab.models.linear import Linear
from lengthlab.models.recurrence.recurrence import Recurrence, State


@dataclass(frozen=True)
class SLstm:
    """The sLSTM cell of xLSTM (Beck et al. 2024, arXiv 2405.04517): exponential input gate, normalizer, memory mixing in heads.

    z = tanh(W_z·x + R_z·h), i = exp(W_i·x + R_i·h), f = σ(W_f·x + R_f·h), o = σ(W_o·x + R_o·h), each with a bias;
    c = f·c + i·z, n = f·n + i, h = o · c / n. R is block-diagonal, one block for each of `heads`. As in the paper's appendix,
    c and n are kept divided by exp(m), m = max(log f + m, log i), which changes no output. This is the cell alone: the
    paper's block has a convolution before it, a norm and an MLP after it. Forget biases begin from 3 to 6, as in its code.

    >>> sum(p.numel() for p in SLstm(heads=2).build(width=4).parameters())  # 4 gates: W, a bias, and two blocks of 2 by 2
    112
    """

    heads: int = 4

    def __post_init__(self) -> None:
        require_whole(self.heads, "slstm.heads", 1)

    def build(self, width: int) -> nn.Module:
        require(width % self.heads == 0, f"slstm.heads = {self.heads} does not divide model.width = {width}")
        return _SLstm(width, self.heads)


class _SLstm(Recurrence):
    """A state: h, c, n and m, all (B, H, C)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        channels = width // heads
        self.heads = heads
        self.gates = Linear(width, 4 * width)
        """By head, then by gate: z, i, f, o."""
        self.mixing_HCE = nn.Parameter(torch.empty(heads, channels, 4 * channels).uniform_(-1, 1) / channels**0.5)
        with torch.no_grad():
            self.gates.bias.view(heads, 4, channels)[:, 2] = torch.linspace(3.0, 6.0, channels)

    def walk(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        gates_BTHE = torch.unflatten(exact(self.gates(x_BTD)), -1, (self.heads, -1))
        h, c, n, m = self._start(gates_BTHE) if state is None else state
        mixing_HCE = exact(self.mixing_HCE)
        out = []
        for gates_BHE in gates_BTHE.unbind(1):
            z, i, f, o = (gates_BHE + torch.einsum("bhc,hce->bhe", h, mixing_HCE)).chunk(4, dim=-1)
            f = F.logsigmoid(f)
            before, m = m, torch.maximum(f + m, i).detach()
            f, i = (f + before - m).exp(), (i - m).exp()
            c, n = f * c + i * z.tanh(), f * n + i
            h = o.sigmoid() * c / n
            out.append(h)
        return torch.stack(out, dim=1).flatten(2).to(x_BTD.dtype), (h, c, n, m)

    def _start(self, gates_BTHE: Tensor) -> State:
        zero_BHC = gates_BTHE.new_zeros(len(gates_BTHE), self.heads, gates_BTHE.shape[-1] // 4)
        return zero_BHC, zero_BHC, zero_BHC, torch.full_like(zero_BHC, -torch.inf)
