"""What all recurrences have in common: everything they know of the tokens before is a state, as large after a million tokens as
after one.

Shapes: B samples, T tokens, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lengthlab.models.layout import Layout
from lengthlab.models.mixer import Mixer

State = tuple[Tensor, ...]

PIECE = 2**14
"""Tokens that are read at once where nothing is learned, so that what is needed meanwhile stays small at any length."""


class Recurrence(Mixer):
    """A mixer that goes on from a state. Subclass it and write `walk`; where there is a faster way, `read` as well.

    >>> class Total(Recurrence):
    ...     def walk(self, x_BTD, state):
    ...         (total_BD,) = state or (torch.zeros_like(x_BTD[:, 0]),)
    ...         out = []
    ...         for x_BD in x_BTD.unbind(1):
    ...             total_BD = total_BD + x_BD
    ...             out.append(total_BD)
    ...         return torch.stack(out, dim=1), (total_BD,)
    >>> Total()(torch.ones(1, 3, 1)).flatten().tolist()
    [1.0, 2.0, 3.0]
    """

    @property
    def lacks(self) -> str:
        walks = type(self).read is Recurrence.read
        return f"{type(self).__name__.strip('_')} knows no way but from token to token" if walks else ""

    def walk(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Token after token, as the formula says: what every faster way is held against. `state` is None at the start."""
        raise NotImplementedError(f"{type(self).__name__} is a Recurrence without the method 'walk'")

    def read(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Outputs for tokens that come after those that `state` has seen, and the state after them."""
        return self.walk(x_BTD, state)

    def mix(self, x_BTD: Tensor, layout: Layout) -> Tensor:
        state, out = None, []
        for piece_BTD in torch.split(x_BTD, x_BTD.shape[1] if torch.is_grad_enabled() else PIECE, dim=1):
            piece_BTD, state = self.read(piece_BTD, state)
            out.append(piece_BTD)
        return torch.cat(out, dim=1) if len(out) > 1 else out[0]
