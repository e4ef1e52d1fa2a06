"""The LSTM with exponential gates and a scalar memory.

Shapes: B samples, T tokens, D width, H heads, C = D / H channels of a head, E = 4C for the four gates.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import require, require_whole
from lengthlab.kernels.sizes import fits_heads
from lengthlab.models.exact import exact
from lengthlab.models.layout import Layout
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

    @property
    def lacks(self) -> str:
        channels = self.mixing_HCE.shape[1]
        return (
            "" if fits_heads(channels) else f"an sLSTM with heads of {channels} channels has no kernel: 16, 32 or 64 have one"
        )

    def mix(self, x_BTD: Tensor, layout: Layout) -> Tensor:
        """Nobody asks for the state here, so that a kernel through which none of its gradients go will do."""
        if not torch.is_grad_enabled():
            return super().mix(x_BTD, layout)
        gates_BTHE = self._gates(x_BTD)
        served = kernels.serve_heads(gates_BTHE)
        return self._scan(gates_BTHE, None)[0].to(x_BTD.dtype) if served else self._walk(x_BTD.dtype, gates_BTHE, None)[0]

    def read(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        gates_BTHE = self._gates(x_BTD)
        if torch.is_grad_enabled() or not kernels.serve_heads(gates_BTHE):
            return self._walk(x_BTD.dtype, gates_BTHE, state)
        out_BTD, state = self._scan(gates_BTHE, state)
        return out_BTD.to(x_BTD.dtype), state

    def walk(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        return self._walk(x_BTD.dtype, self._gates(x_BTD), state)

    def _gates(self, x_BTD: Tensor) -> Tensor:
        """gates_BTHE: the input's part of them."""
        return torch.unflatten(exact(self.gates(x_BTD)), -1, (self.heads, -1))

    def _scan(self, gates_BTHE: Tensor, state: State | None) -> tuple[Tensor, State]:
        before_4BHC = torch.stack(self._start(gates_BTHE) if state is None else state)
        out_BTHC, after_4BHC = kernels.scan_heads(gates_BTHE, exact(self.mixing_HCE), before_4BHC)
        return out_BTHC.flatten(2), tuple(after_4BHC)

    def _walk(self, kind: torch.dtype, gates_BTHE: Tensor, state: State | None) -> tuple[Tensor, State]:
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
        return torch.stack(out, dim=1).flatten(2).to(kind), (h, c, n, m)

    def _start(self, gates_BTHE: Tensor) -> State:
        zero_BHC = gates_BTHE.new_zeros(len(gates_BTHE), self.heads, gates_BTHE.shape[-1] // 4)
        return zero_BHC, zero_BHC, zero_BHC, torch.full_like(zero_BHC, -torch.inf)
