"""Rules to follow with coupled pointers: the list that a rule goes through is not written again, but pointed into.

    <bos> flips: [ T F ] <sep> L3 @ T L3 @ F L3 @ F return F <eos>        scratchpad; T and F are True and False
      0     0    0 6 7 8   6    6 6 6  7 7 7  8 8 8   8    8   8          ids: here they start at 6
      0     0    0 0 0 0   0    0 1 2  0 1 2  0 1 2   3    4   5          and places in the turn

An element, and every word that is said in the turn which takes it, share an id; the end of the list has that of the words after
the last turn. So ids tell where the pointer is, as they tell the significance of digits in position coupling (Cho et al. 2024,
arXiv 2405.20671). A second id is the place of a word in its turn. Both follow from the words: a turn begins where the line of
the loop is said. Of a model that reads its own words, they are those of its own turns.

Shapes: B samples, T tokens, 2 ids of a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.rules.pointers import POINTER, pointed
from lengthlab.rules.rule import Rule
from lengthlab.rules.wording import line_word
from lengthlab.tasks.batch import Batch
from lengthlab.tasks.rules import RuleFollowing

FIRST = 3
"""Where the first element stands: after <bos>, the name of the list, and [."""


@dataclass(frozen=True)
class RulePointers(RuleFollowing):
    """A rule that goes through one list from its front: coin-flips or digit-sum. A sample's ids start anywhere in a table of
    `ids`; when measured, in its middle. Places in a turn are of a table with as many rows.

    >>> task = RulePointers(form="scratchpad", ids=12)
    >>> batch = task.as_measured.sample(1, (2, 2), torch.Generator().manual_seed(1))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> flips: [ True True ] <sep> L3 @ True L3 @ False L3 @ True return True <eos>'
    >>> for position_T in batch.position_BT[0].T:
    ...     print(*position_T.tolist())
    0 0 0 5 6 7 5 5 5 5 6 6 6 7 7 7 7 7 7
    0 0 0 0 0 0 0 0 1 2 0 1 2 0 1 2 3 4 5
    """

    rule: str | Rule = "coin-flips"
    ids: int = 48
    random_start: bool = True

    name = "rule-pointers"
    ids_follow = True

    def __post_init__(self) -> None:
        super().__post_init__()
        pointed(self.exercise.rule)
        require(not self.exercise.letters, f"task '{self.name}' points to elements of one word: digits or truth values")
        require_whole(self.ids, "task.ids", 3)

    @property
    def longest(self) -> int:  # type: ignore[override]
        return self.ids - 2

    @property
    def limit(self) -> str:  # type: ignore[override]
        return f"ids = {self.ids}"

    @property
    def as_measured(self) -> RulePointers:
        return replace(self, random_start=False)

    @property
    def pointed(self) -> str:
        return pointed(self.exercise.rule)

    @property
    def words(self) -> tuple[str, ...]:
        return (*super().words, POINTER)

    def chance(self, length: int) -> Mapping[str, float]:
        """A scratchpad of digit-sum does not tell 0 from 9: neither changes the sum of digits, unless that is 0."""
        if (self.rule, self.form) == ("digit-sum", "scratchpad") and length > 1:
            return {**super().chance(length), "answer": 0.2 ** (length - 1) / 9}
        return super().chance(length)

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        batch = super().draw(n_B, generator)
        n_B1 = n_B.to(generator.device)[:, None]
        position_BT2 = self._ids(batch.tokens_BT, n_B1, self._starts(n_B1, generator))
        place_T = torch.arange(batch.tokens_BT.shape[1], device=generator.device)
        there_BT1 = (place_T < batch.length_B[:, None])[:, :, None]
        return replace(batch, position_BT=position_BT2.where(there_BT1, 0))

    def ids_of(self, batch: Batch, tokens_BT: Tensor) -> Tensor | None:
        """From a model's own words; turns beyond the table stay at its end."""
        if batch.position_BT is None:
            return None
        sep_B1 = (batch.tokens_BT == self.words.index("<sep>")).byte().argmax(dim=1, keepdim=True)
        return self._ids(tokens_BT, sep_B1 - FIRST - 1, batch.position_BT[:, FIRST, :1])

    def _ids(self, tokens_BT: Tensor, n_B1: Tensor, start_B1: Tensor) -> Tensor:
        """position_BT2: whose turn it is, and the place in the turn."""
        place_T = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)
        sep_B1 = FIRST + n_B1 + 1  # every element is one word
        loop = self.words.index(line_word(self.exercise.rule.loops[0]))
        begins_BT = (tokens_BT == loop) & (place_T > sep_B1)
        turn_BT = (begins_BT.long().cumsum(dim=1) - 1).clamp(min=0)
        begun_BT = place_T.where(begins_BT | (place_T == sep_B1), 0).cummax(dim=1).values
        read_BT = (start_B1 + place_T - FIRST).where(place_T >= FIRST, 0)
        id_BT = read_BT.where(place_T < sep_B1, (start_B1 + turn_BT).clamp(max=self.ids - 1))
        within_BT = (place_T - begun_BT).clamp(max=self.ids - 1).where(place_T > sep_B1, 0)
        return torch.stack((id_BT, within_BT), dim=2)

    def _starts(self, n_B1: Tensor, generator: Generator) -> Tensor:
        """start_B1; the ids from there on are n + 1, and id 0 is for what has no place."""
        free_B1 = self.ids - 1 - n_B1
        if not self.random_start:
            return 1 + (free_B1 - 1) // 2
        share_B1 = torch.rand(len(n_B1), 1, generator=generator, device=generator.device)
        return 1 + (share_B1 * free_B1).long().minimum(free_B1 - 1)
