"""Needles: several keys with names somewhere in noise, some of which are asked for at the end.

    <bos> x x <key> K7 d1 d2 x <key> K3 d1 d2 x ... x <query> K3 d1 d2 <query> K7 d1 d2        of n tokens in all

The multi-query needle of RULER (Hsieh et al., arXiv 2404.06654) with tokens in the place of text; 6 needles, 2 of them asked,
as in hierarchical sparse attention (Hu et al., arXiv 2504.16795). Names differ, and so do those that are asked for.
Everything that is asked is one answer: the share of right tokens, which is counted beside it, tells of needles that are found
in part.

Shapes: B samples, K needles, A of them asked, D digits of a needle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.tasks.haystack import FIRST, MOST, PIECE, QUERY, Haystack
from lengthlab.tasks.task import Guess
from lengthlab.tasks.transduction import distinct


@dataclass(frozen=True)
class Needles(Haystack):
    """Several named keys anywhere in noise, some of them asked for at the end; n counts all tokens of the sequence.

    `needles` keys, their names of `names`, `digits` tokens each, of `values`; `asked` of them.

    >>> task = Needles(noise=3, needles=2, asked=1, digits=2)
    >>> batch = task.sample(1, (17, 17), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> a b a <key> K12 9 9 c <key> K2 9 0 <query> K12 9 9'
    """

    needles: int = 6
    asked: int = 2
    digits: int = 5
    values: int = 10
    names: int = 26

    name = "needles"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("needles", "asked", "digits"):
            require_whole(getattr(self, field), f"task.{field}", 1, MOST)
        require_whole(self.values, "task.values", 2)
        require_whole(self.names, "task.names", 1)
        require(self.asked <= self.needles, f"task.asked = {self.asked}: there are {self.needles} to ask for: task.needles")
        told = f"task.needles = {self.needles}: their names differ, and there are {self.names} of them: task.names"
        require(self.needles <= self.names, told)
        self.check_words("values" if self.values > self.names else "names")

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*map(str, range(self.values)), *(f"K{name}" for name in range(self.names)))

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.needles, 2 + self.digits, self.asked * (2 + self.digits)

    @property
    def answered(self) -> Sequence[int]:
        return [at for at in range(self.sizes[2]) if at % (2 + self.digits) >= 2]

    def chance(self, length: int) -> Mapping[str, float]:
        return {self.name: float(self.values) ** -(self.asked * self.digits)}

    def hide(self, size: int, generator: Generator) -> tuple[Tensor, Tensor]:
        device, shape = generator.device, (size, self.needles, self.digits)
        name_BK1 = FIRST + self.values + distinct(size, self.names, self.needles, generator)[:, :, None]
        digit_BKD = FIRST + torch.randint(self.values, shape, generator=generator, device=device)
        named_BKL = torch.cat([torch.full_like(name_BK1, PIECE), name_BK1, digit_BKD], dim=2)
        chosen_BA = distinct(size, self.needles, self.asked, generator)
        asked_BAL = named_BKL.gather(1, chosen_BA[:, :, None].expand(-1, -1, named_BKL.shape[2]))
        asked_BAL[:, :, 0] = QUERY
        return named_BKL, asked_BAL.flatten(1)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        read = self._after(words, "<key>")
        return {self.name: tuple(digit for name in self._after(words, "<query>") for digit in read[name])}

    def _after(self, words: Sequence[str], mark: str) -> dict[str, tuple[str, ...]]:
        """By name, in order: the digits of each piece that begins with a mark."""
        starts = [at for at, word in enumerate(words) if word == mark]
        return {words[at + 1]: tuple(words[at + 2 : at + 2 + self.digits]) for at in starts}

    @property
    def guesses(self) -> Mapping[str, Guess]:
        return {"the last needle, each time": self._last_needle}

    def _last_needle(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return {self.name: list(self._after(words, "<key>").values())[-1] * self.asked}
