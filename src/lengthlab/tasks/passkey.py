"""Passkey: one key somewhere in noise, to be written down at the end.

    <bos> x x x <key> d1 ... d5 x x ... x <query> d1 ... d5        of n tokens in all

As in passkey retrieval (Mohtashami & Jaggi, arXiv 2305.16300) and in the single needle of hierarchical sparse attention (Hu
et al., arXiv 2504.16795), with noise of a small alphabet in the place of text.

Shapes: B samples, D digits of a key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from lengthlab.errors import require_number, require_whole
from lengthlab.tasks.haystack import FIRST, MOST, PIECE, QUERY, Haystack
from lengthlab.tasks.task import Guess


@dataclass(frozen=True)
class Passkey(Haystack):
    """One key of some digits anywhere in noise, asked for at the end; n counts all tokens of the sequence.

    `digits` tokens of a key, each of `values`. `place` is the share of the noise that stands before the key: 0 puts it first, 1
    last; anywhere, if it is not given.

    >>> task = Passkey(noise=3, digits=2)
    >>> batch = task.sample(1, (11, 11), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> a b a <key> 4 9 a <query> 4 9'
    """

    digits: int = 5
    values: int = 10
    place: float | None = None

    name = "passkey"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole(self.digits, "task.digits", 1, MOST)
        require_whole(self.values, "task.values", 2)
        if self.place is not None:
            require_number(self.place, "task.place", least=0, most=1)
        self.check_words("values")

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.values)))

    @property
    def sizes(self) -> tuple[int, int, int]:
        return 1, 1 + self.digits, 1 + self.digits

    @property
    def answered(self) -> Sequence[int]:
        return range(1, 1 + self.digits)

    def chance(self, length: int) -> Mapping[str, float]:
        return {self.name: float(self.values) ** -self.digits}

    def hide(self, size: int, generator: Generator) -> tuple[Tensor, Tensor]:
        digit_BD = FIRST + torch.randint(self.values, (size, self.digits), generator=generator, device=generator.device)
        mark_B1 = torch.ones_like(digit_BD[:, :1])
        return torch.cat([PIECE * mark_B1, digit_BD], dim=1)[:, None], torch.cat([QUERY * mark_B1, digit_BD], dim=1)

    def gaps(self, free_B: Tensor, generator: Generator) -> Tensor:
        if self.place is None:
            return super().gaps(free_B, generator)
        return (self.place * free_B.double()).round().long()[:, None].to(generator.device)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return {self.name: self._key(words)}

    def _key(self, words: Sequence[str]) -> tuple[str, ...]:
        start = list(words).index("<key>") + 1
        return tuple(words[start : start + self.digits])

    @property
    def guesses(self) -> Mapping[str, Guess]:
        return {"its last digit, each time": lambda words: {self.name: self._key(words)[-1:] * self.digits}}
