"""The bilinear recurrence.

Shapes: B samples, T tokens, D width, H blocks, S × S the size of one (D = H·S), E = H·S·S.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import require, require_whole
from lengthlab.kernels.sizes import fits_blocks
from lengthlab.models.exact import exact
from lengthlab.models.recurrence.recurrence import Recurrence, State


@dataclass(frozen=True)
class Bilinear:
    """Every token is a matrix, h = A_x·h with A_x linear in x and nothing added (Ebrahimi & Memisevic 2025, arXiv 2505.21749).

    A_x is block-diagonal with blocks of `size`; with the model's width as the size it is one matrix. Because nothing is added,
    the length of h says nothing that its direction does not, and it may be normalised: here every block's part is, after every
    token, to a mean square of 1. Ours: A_x has a bias, that is x has a channel that is always 1, so that it can begin near the
    identity; the first h is learned.

    >>> sum(p.numel() for p in Bilinear(size=2).build(width=4).parameters())  # 4 · (4 · 2), their biases, the first state
    44
    """

    size: int = 8

    def __post_init__(self) -> None:
        require_whole(self.size, "bilinear.size", 2)  # a block of one number would be a sign, which has no gradient

    def build(self, width: int) -> nn.Module:
        require(width % self.size == 0, f"bilinear.size = {self.size} does not divide model.width = {width}")
        return _Bilinear(width, self.size)


class _Bilinear(Recurrence):
    """A state: h, (B, H, S)."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.size = size
        # Not a linear map of its own, which `silent` would take for the last one: a state of zeros stays one for good.
        self.weight_ED = nn.Parameter(torch.empty(width * size, width).uniform_(-1, 1) / math.sqrt(width))
        self.bias = nn.Parameter(torch.eye(size).repeat(width // size, 1).flatten())
        self.first_HS = nn.Parameter(torch.randn(width // size, size))

    @property
    def lacks(self) -> str:
        return "" if fits_blocks(self.size) else f"a bilinear recurrence with blocks of {self.size} has no kernel: 8 has one"

    def walk(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        return self._along(x_BTD, state, self._walked)

    def read(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        return self._along(
            x_BTD, state, lambda a, h: kernels.scan_blocks(a, h) if kernels.serve_blocks(a) else self._walked(a, h)
        )

    def _along(self, x_BTD: Tensor, state: State | None, scan: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, State]:
        """By any way from the matrices of the tokens and the first h to h after every token."""
        a_BTHSS = torch.unflatten(exact(F.linear(x_BTD, self.weight_ED, self.bias)), -1, (-1, self.size, self.size))
        h_BHS = self._unit(exact(self.first_HS)).expand(len(x_BTD), -1, -1) if state is None else state[0]
        out_BTHS = scan(a_BTHSS, h_BHS)
        return out_BTHS.flatten(2).to(x_BTD.dtype), (out_BTHS[:, -1],)

    def _walked(self, a_BTHSS: Tensor, h_BHS: Tensor) -> Tensor:
        out = []
        for a_BHSS in a_BTHSS.unbind(1):
            h_BHS = self._unit((a_BHSS @ h_BHS[..., None]).squeeze(-1))
            out.append(h_BHS)
        return torch.stack(out, dim=1)

    def _unit(self, h: Tensor) -> Tensor:
        """Of mean square 1 in every block."""
        return math.sqrt(self.size) * F.normalize(h, dim=-1)
