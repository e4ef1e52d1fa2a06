"""DeltaProduct: several steps of the delta rule for every token."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from lengthlab.errors import require, require_whole
from lengthlab.models.recurrence.decay import Decay
from lengthlab.models.recurrence.delta_mixer import DeltaMixer


@dataclass(frozen=True)
class Deltaproduct:
    """Several steps of the delta rule a token (Siems et al. 2025, arXiv 2502.10297), whose product can be any rotation.

    For each of `steps`: S = (I − β_j·k_j·k_jᵀ)·S + β_j·k_j·v_jᵀ, with keys, values and β of their own, and after the last out =
    W·(RMSNorm(Sᵀq) ⊙ SiLU(V·x)), all made as in gated DeltaNet. A product of two reflections is a rotation in a plane, so that
    `negative_eigenvalues` (β to 2 instead of 1) are on. With `gated` the memory fades by a before the first step, as there.

    >>> Deltaproduct(heads=2, steps=3).build(width=8).qkv
    Linear(in_features=8, out_features=56, bias=False)
    """

    heads: int = 4
    steps: int = 2
    negative_eigenvalues: bool = True
    gated: bool = False
    conv: int = 4

    def __post_init__(self) -> None:
        for name in ("heads", "steps", "conv"):
            require_whole(getattr(self, name), f"deltaproduct.{name}", 1)

    def build(self, width: int) -> nn.Module:
        require(width % self.heads == 0, f"deltaproduct.heads = {self.heads} does not divide model.width = {width}")
        strongest = 2.0 if self.negative_eigenvalues else 1.0
        decay = Decay(width, self.heads) if self.gated else None
        return DeltaMixer(width, self.heads, self.steps, strongest, decay, self.conv)
