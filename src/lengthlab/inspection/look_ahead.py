"""Whether any output of a network depends on a token that comes later: a few forwards before training.

Shapes: T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Read = Callable[[Tensor], Tensor]
"""logits_1TV of tokens_1T."""

TOLERANCE = 1e-4
"""Of the largest logit. A convolution by Fourier transform rounds a little of what comes later into what came before."""
SEARCHED = 256
"""Later positions that are looked through for the one that was seen."""


def find_look_ahead(read: Read, tokens_1T: Tensor, vocabulary: int) -> tuple[int, int | None] | None:
    """An output that sees ahead, and the later position that it sees (None: not one alone). None where there is none, or where
    that cannot be told, because reading the same twice does not give the same.

    >>> from torch import nn
    >>> table = nn.Embedding(6, 6)
    >>> backwards = lambda tokens: table(tokens).flip(1).cumsum(dim=1).flip(1)
    >>> with torch.no_grad():
    ...     find_look_ahead(backwards, torch.tensor([[1, 2, 3]]), 6), find_look_ahead(table, torch.tensor([[1, 2, 3]]), 6)
    ((0, 1), None)
    """
    before_1TV, tokens = read(tokens_1T), tokens_1T.shape[1]
    tolerance = TOLERANCE * float(before_1TV.abs().max())
    other_1T = tokens_1T % max(1, vocabulary - 1) + 1  # never padding, and another one wherever there are two
    if not torch.equal(before_1TV, read(tokens_1T)):
        return None

    def first_changed(changed_T: Tensor, upto: int) -> int | None:
        """The first output before `upto` that is another where these tokens are."""
        after_1TV = read(tokens_1T.where(~changed_T, other_1T))
        apart_T = (after_1TV - before_1TV)[0, :upto].abs().amax(dim=-1)
        beyond = (apart_T > tolerance).nonzero()[:, 0]
        return int(beyond[0]) if len(beyond) else None

    place_T = torch.arange(tokens, device=tokens_1T.device)
    for start in sorted({1, tokens // 4, tokens // 2, 3 * tokens // 4, tokens - 1} - {0}):
        saw = first_changed(place_T >= start, start)
        if saw is not None:
            for later in range(start, min(tokens, start + SEARCHED)):
                if (one := first_changed(place_T == later, later)) is not None:
                    return one, later
            return saw, None
    return None
