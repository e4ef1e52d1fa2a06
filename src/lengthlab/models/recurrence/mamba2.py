"""Mamba-2: a state space with one decay per head.

Shapes: B samples, T tokens, D width, I = H·V channels inside, H heads, V channels of a head, K size of the state of a channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import require, require_whole
from lengthlab.kernels import flash_linear
from lengthlab.models.exact import exact
from lengthlab.models.linear import Linear
from lengthlab.models.recurrence.decay import Decay, DecayScan, scan_decay, walk_decay
from lengthlab.models.recurrence.recurrence import Recurrence, State
from lengthlab.models.recurrence.short_conv import ShortConv


@dataclass(frozen=True)
class Mamba2:
    """The block of Mamba-2 (Dao & Gu 2024, arXiv 2405.21060): a decay per head and token, a state of `state` per channel.

    S = a·S + Δ·b·uᵀ, y = Sᵀc + d·u, where a = exp(−exp(A)·Δ), Δ = softplus(w·x), and b, c and u come of linear maps of x
    with a causal convolution over `conv` tokens and SiLU. b and c are one for all heads. Out: W·RMSNorm(y ⊙ SiLU(V·x)).
    a lies between 0 and 1, so that no eigenvalue of its transition is negative.

    >>> Mamba2(heads=2, state=4).build(width=8).norm
    RMSNorm((16,), eps=1e-06, elementwise_affine=True)
    """

    heads: int = 8
    state: int = 128
    expand: int = 2
    """How many times as wide as the model it is inside."""
    conv: int = 4

    def __post_init__(self) -> None:
        for name in ("heads", "state", "expand", "conv"):
            require_whole(getattr(self, name), f"mamba2.{name}", 1)

    def build(self, width: int) -> nn.Module:
        inside = self.expand * width
        require(
            inside % self.heads == 0, f"mamba2.heads = {self.heads} does not divide {self.expand} times model.width = {width}"
        )
        return _Mamba2(width, inside, self.heads, self.state, self.conv)


class _Mamba2(Recurrence):
    """A state: what the convolution has to remember, and the memory S_BHKV."""

    def __init__(self, width: int, inside: int, heads: int, state: int, conv: int) -> None:
        super().__init__()
        self.heads, self.state = heads, state
        self.gate = Linear(width, inside, bias=False)
        self.mixed = Linear(width, inside + 2 * state, bias=False)
        self.conv = ShortConv(inside + 2 * state, conv)
        self.decay = Decay(width, heads)
        self.skip_H = nn.Parameter(torch.ones(heads))
        self.norm = nn.RMSNorm(inside, eps=1e-6)
        self.out = Linear(inside, width, bias=False)

    def walk(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        return self._through(x_BTD, state, walk_decay)

    def read(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        channels = max(self.state, self.norm.normalized_shape[0] // self.heads)
        fast = kernels.serve_memory(x_BTD, channels, fades=True)
        return self._through(x_BTD, state, partial(flash_linear.scan_decay, x_BTD.dtype) if fast else scan_decay)

    def _through(self, x_BTD: Tensor, state: State | None, scan: DecayScan) -> tuple[Tensor, State]:
        mixed_BTI, window = self.conv(self.mixed(x_BTD), None if state is None else state[0])
        u_BTI, b_BTK, c_BTK = torch.split(
            exact(mixed_BTI), [mixed_BTI.shape[-1] - 2 * self.state, self.state, self.state], dim=-1
        )
        u_BHTV = torch.unflatten(u_BTI, -1, (self.heads, -1)).transpose(1, 2)
        memory = u_BTI.new_zeros(len(x_BTD), self.heads, self.state, u_BHTV.shape[-1]) if state is None else state[1]
        step_BHT, log_BHT = self.decay(x_BTD)
        y_BHTV, memory = scan(c_BTK[:, None], b_BTK[:, None], step_BHT[..., None] * u_BHTV, log_BHT, memory)
        y_BHTV = y_BHTV + exact(self.skip_H)[:, None, None] * u_BHTV
        y_BTI = y_BHTV.transpose(1, 2).flatten(2).to(x_BTD.dtype)
        return self.out(self.norm(y_BTI * F.silu(self.gate(x_BTD)))), (window, memory)
