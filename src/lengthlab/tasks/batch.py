"""What is read and what is to be said: whole sequences, and for each question the tokens of its answer.

Shapes: B samples, T tokens, Q positions of a sample at which the model is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from lengthlab.errors import require

IGNORE = -100
"""Stands in a target where nothing is asked; cross-entropy leaves it out."""


@dataclass(frozen=True)
class Batch:
    """Sequences padded on the right. `target[question][b, t]` is the token to say after reading position t, or IGNORE.

    What is to be said is what comes next: `target[b, t] == tokens[b, t + 1]` wherever something is asked, unless the task says
    that its targets are `labels`. Nothing is asked at the last column, which is never read. An answer has as many tokens as it
    has targets. `length_B` counts the tokens of each sequence, padding left out. `position_BT` are position ids, where a task
    knows better than 0, 1, 2, … (position coupling); where a token has several (row and column), they are (B, T, K).

    >>> tokens_BT = torch.tensor([[1, 7, 8, 2, 8, 7]])  # <bos> 7 8 <reverse> 8 7
    >>> asked_BT = torch.tensor([[False, False, False, True, True, False]])
    >>> batch = Batch.asking(tokens_BT, {"reverse": asked_BT}, length_B=torch.tensor([6]))
    >>> batch.target["reverse"].tolist()
    [[-100, -100, -100, 8, 7, -100]]
    """

    tokens_BT: Tensor
    target: Mapping[str, Tensor]
    length_B: Tensor
    position_BT: Tensor | None = None

    @classmethod
    def asking(
        cls, tokens_BT: Tensor, asked: Mapping[str, Tensor], length_B: Tensor, position_BT: Tensor | None = None
    ) -> Batch:
        """A batch in which each question asks for the next token wherever its mask is true."""
        next_BT = F.pad(tokens_BT[:, 1:], (0, 1), value=IGNORE)
        target = {question: next_BT.where(asked_BT, IGNORE) for question, asked_BT in asked.items()}
        return cls(tokens_BT, target, length_B, position_BT)

    def to(self, device: torch.device | str) -> Batch:
        return self._map(lambda x: x.to(device))

    def rows(self, chosen: slice) -> Batch:
        """Some of its samples."""
        return self._map(lambda x: x[chosen])

    def take(self, order_B: Tensor) -> Batch:
        """Its samples in another order."""
        return self._map(lambda x: x.index_select(0, order_B))

    def _map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        position_BT = None if self.position_BT is None else change(self.position_BT)
        target = {question: change(target_BT) for question, target_BT in self.target.items()}
        return Batch(change(self.tokens_BT), target, change(self.length_B), position_BT)

    def asked(self, questions: Sequence[str]) -> Tensor:
        """asked_B: at how many positions of each sample these questions ask."""
        return _asked(self, questions).sum(dim=1)

    def most_asked(self, questions: Sequence[str]) -> int:
        """The same of the sample that is asked most."""
        return int(self.asked(questions).max())

    def first_asked(self, questions: Sequence[str]) -> int:
        """The first position at which these questions ask any sample; 0 if there is none."""
        return int(_asked(self, questions).any(dim=0).byte().argmax())

    def after(self, start: int) -> Batch:
        """Without the tokens before one of them: little is left to look through of a long sequence that is asked at its end."""
        position_BT = None if self.position_BT is None else self.position_BT[:, start:]
        target = {question: target_BT[:, start:] for question, target_BT in self.target.items()}
        return Batch(self.tokens_BT[:, start:], target, self.length_B - start, position_BT)

    def queries(self, questions: Sequence[str], most: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Where these questions ask, at up to `most` positions of a sample in order, and what each wants said there.

        A sample that is asked less has position 0 in the places left over, where every target is IGNORE.

        >>> batch = Batch.asking(torch.tensor([[1, 2, 8]]), {"q": torch.tensor([[False, True, False]])}, torch.tensor([3]))
        >>> batch.queries(["q"], most=2)
        (tensor([[1, 0]]), {'q': tensor([[   8, -100]])})
        """
        asked_BT = _asked(self, questions)
        tokens = asked_BT.shape[1]
        place_T = torch.arange(tokens, device=asked_BT.device)
        sorted_BQ = place_T.expand_as(asked_BT).where(asked_BT, tokens).sort(dim=1).values[:, :most]
        left_BQ = sorted_BQ == tokens
        query_BQ = sorted_BQ.masked_fill(left_BQ, 0)
        wanted = {question: self.target[question].gather(1, query_BQ).masked_fill(left_BQ, IGNORE) for question in questions}
        return query_BQ, wanted


def join(batches: Sequence[Batch]) -> Batch:
    """The samples of several batches as one; those with fewer tokens are padded."""
    widest = max(batch.tokens_BT.shape[1] for batch in batches)

    def joined(pieces: Sequence[Tensor], value: int) -> Tensor:
        return torch.cat([pad_tokens(piece, 0, widest - piece.shape[1], value) for piece in pieces])

    target = {question: joined([batch.target[question] for batch in batches], IGNORE) for question in batches[0].target}
    own = any(batch.position_BT is not None for batch in batches)
    positions = [_positions(batch) for batch in batches] if own else []
    alike = len({position_BT.shape[2:] for position_BT in positions}) <= 1
    require(alike, "sequences whose tokens have one position id and such whose tokens have several do not mix")
    return Batch(
        joined([batch.tokens_BT for batch in batches], 0),
        target,
        torch.cat([batch.length_B for batch in batches]),
        joined(positions, 0) if positions else None,
    )


def pad_tokens(x_BT: Tensor, before: int, after: int, value: int = 0) -> Tensor:
    """So many more tokens on both sides, whatever dimensions a token has."""
    return F.pad(x_BT, (*[0] * 2 * (x_BT.dim() - 2), before, after), value=value)


def _positions(batch: Batch) -> Tensor:
    """0, 1, 2, … where it has none of its own."""
    usual_T = torch.arange(batch.tokens_BT.shape[1], device=batch.tokens_BT.device)
    return usual_T.expand_as(batch.tokens_BT) if batch.position_BT is None else batch.position_BT


def merged(wanted: Mapping[str, Tensor]) -> Tensor:
    """One target of several questions: no two of them want different tokens at one position."""
    first, *others = wanted.values()
    for other in others:
        first = first.where(first != IGNORE, other)
    return first


def _asked(batch: Batch, questions: Sequence[str]) -> Tensor:
    return merged({question: batch.target[question] for question in questions}) != IGNORE
