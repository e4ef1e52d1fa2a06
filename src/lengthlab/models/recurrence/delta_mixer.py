"""The block around the delta rule that gated DeltaNet and DeltaProduct have in common.

Shapes: B samples, T tokens, D width, H heads, C = D / H channels of a head, J steps of a token, U = T·J steps.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.kernels import flash_linear
from lengthlab.models.exact import exact
from lengthlab.models.linear import Linear
from lengthlab.models.recurrence.decay import Decay
from lengthlab.models.recurrence.delta import DeltaScan, scan_delta, walk_delta
from lengthlab.models.recurrence.recurrence import Recurrence, State
from lengthlab.models.recurrence.short_conv import ShortConv


class DeltaMixer(Recurrence):
    """Queries, keys and values through a short convolution, queries and keys of length 1, `steps` keys and values a token.

    `strongest` is the largest β: with 1 a step forgets at most, with 2 it reflects. `decay` fades the memory once a token;
    without one nothing fades. A state: what the convolution has to remember, and the memory S_BHCC.
    """

    def __init__(self, width: int, heads: int, steps: int, strongest: float, decay: Decay | None, conv: int) -> None:
        super().__init__()
        self.heads, self.steps, self.strongest = heads, steps, strongest
        self.qkv = Linear(width, (1 + 2 * steps) * width, bias=False)
        self.conv = ShortConv((1 + 2 * steps) * width, conv)
        self.beta = Linear(width, steps * heads)
        self.decay = decay
        self.gate = Linear(width, width, bias=False)
        self.norm = nn.RMSNorm(width // heads, eps=1e-6)
        self.out = Linear(width, width, bias=False)

    def walk(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        return self._through(x_BTD, state, walk_delta)

    def read(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        fast = kernels.serve_memory(x_BTD, x_BTD.shape[-1] // self.heads, fades=self.decay is not None)
        return self._through(x_BTD, state, partial(flash_linear.scan_delta, x_BTD.dtype) if fast else scan_delta)

    def _through(self, x_BTD: Tensor, state: State | None, scan: DeltaScan) -> tuple[Tensor, State]:
        width = x_BTD.shape[-1]
        mixed, window = self.conv(self.qkv(x_BTD), None if state is None else state[0])
        q, k, v = torch.split(exact(mixed), [width, self.steps * width, self.steps * width], dim=-1)
        q_BHTC, k_BHUC, v_BHUC = self._by_head(q, 1), self._by_head(k, self.steps), self._by_head(v, self.steps)
        beta_BHU = self.strongest * self._by_head(exact(self.beta(x_BTD)).sigmoid(), self.steps).squeeze(-1)
        memory = v.new_zeros(len(x_BTD), self.heads, width // self.heads, width // self.heads) if state is None else state[1]
        unit = F.normalize(q_BHTC, dim=-1), F.normalize(k_BHUC, dim=-1)
        out_BHTC, memory = scan(*unit, v_BHUC, beta_BHU, self._log(x_BTD), memory)
        out_BTHC = self.norm(out_BHTC.transpose(1, 2).to(x_BTD.dtype))
        return self.out(out_BTHC.flatten(2) * F.silu(self.gate(x_BTD))), (window, memory)

    def _by_head(self, x: Tensor, steps: int) -> Tensor:
        """(B, H, U, …) of (B, T, …), whose channels lie by step, then by head."""
        return torch.unflatten(x, -1, (steps, self.heads, -1)).flatten(1, 2).transpose(1, 2)

    def _log(self, x_BTD: Tensor) -> Tensor | None:
        """log a of every step: the token's at its first, 0 at the others."""
        if self.decay is None:
            return None
        log_BHT = self.decay(x_BTD)[1]
        return F.pad(log_BHT[..., None], (0, self.steps - 1)).flatten(2)
