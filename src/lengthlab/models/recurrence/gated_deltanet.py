"""Gated DeltaNet: the delta rule with a memory that fades."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from lengthlab.errors import require, require_whole
from lengthlab.models.recurrence.decay import Decay
from lengthlab.models.recurrence.delta_mixer import DeltaMixer


@dataclass(frozen=True)
class GatedDeltanet:
    """The delta rule in a memory that fades (Yang, Kautz & Hatamizadeh 2024, arXiv 2412.06464).

    S = a·(I − β·k·kᵀ)·S + β·k·vᵀ, out = W·(RMSNorm(Sᵀq) ⊙ SiLU(V·x)); a = exp(−exp(A)·softplus(w·x)) and β = σ(u·x) per head;
    q, k and v come of linear maps of x with a causal convolution over `conv` tokens and SiLU, q and k then have length 1. With
    `negative_eigenvalues` β goes to 2, so that a token can turn what a key holds into its opposite (Grazzi et al. 2024, arXiv
    2411.12537). Values are as wide as keys here; the paper has them twice as wide.

    >>> GatedDeltanet(heads=2).build(width=8).strongest
    1.0
    """

    heads: int = 4
    negative_eigenvalues: bool = False
    conv: int = 4

    def __post_init__(self) -> None:
        require_whole(self.heads, "gated-deltanet.heads", 1)
        require_whole(self.conv, "gated-deltanet.conv", 1)

    def build(self, width: int) -> nn.Module:
        require(width % self.heads == 0, f"gated-deltanet.heads = {self.heads} does not divide model.width = {width}")
        strongest = 2.0 if self.negative_eigenvalues else 1.0
        return DeltaMixer(width, self.heads, 1, strongest, Decay(width, self.heads), self.conv)
