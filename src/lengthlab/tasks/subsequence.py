"""Short pieces of long samples, with one answer each: our reading of a reviewer's summary of *Length Generalization via
Auxiliary Tasks* (Awasthi, Gupta & Kumar, NeurIPS 2025), whose text we have not read.

    <bos> 81 3 40 7 <sep> 3 7 40 81 <eos>        a sample of sort, `within` = 4
    <bos> 40 7 <sep> 3 7                         four tokens of what stands before 7, and 7

A sample of a long length is drawn and one token of its answer is chosen. Of all that stands before it a part is kept, in order:
what the token depends on (<sep>, the token before it, its source among the inputs and, in copy and reverse, what stands
beside the source), and others by chance. Whatever else is dropped, the answer stays the same. With `places = "kept"` tokens
have the positions that they had in the long sample, with "new" those of the piece. Sort and copying of symbols that differ,
which are sparse in this sense. A length n counts the kept tokens, <bos> left out.

Shapes: B samples, N inputs of the long sample, P tokens before the last answer, T tokens of a piece.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.tasks.alphabet import BOS, FIRST, MARKS, SEP
from lengthlab.tasks.batch import IGNORE, Batch
from lengthlab.tasks.copying import Copy, Copying
from lengthlab.tasks.helper import main_of
from lengthlab.tasks.sorting import Sort
from lengthlab.tasks.task import Task


@dataclass(frozen=True)
class Subsequence(Task):
    """A token of a long answer, after a part of what stands before it that is enough to find it: how we read a paper.

    >>> task = Subsequence(Sort(numbers=9), within=5)
    >>> batch = task.sample(1, (4, 4), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> 4 6 <sep> 4 6'
    """

    of: Task = Sort()
    within: int = 100
    places: Literal["new", "kept"] = "new"

    name = "subsequence"
    questions = ("subsequence",)

    def __post_init__(self) -> None:
        main_of(self.name, self.of, again=False)
        require_whole(self.within, "task.within", 3)
        self.of.check_length(self.within)
        require(self.places in ("new", "kept"), f"task.places must be 'new' or 'kept', not {self.places!r}")

    @property
    def main(self) -> Sort | Copying:
        return main_of(self.name, self.of, again=False)

    @property
    def words(self) -> tuple[str, ...]:
        return (*MARKS, *self.main.symbols)

    @property
    def shortest(self) -> int:
        return 3 if isinstance(self.of, Sort) else 4

    @property
    def floor(self) -> str:
        return f"{self.shortest} tokens are needed to find the answer"

    @property
    def longest(self) -> int:
        return self.within + 1

    @property
    def limit(self) -> str:
        return f"so many tokens stand before the first answer of task.within = {self.within}"

    def chance(self, length: int) -> Mapping[str, float]:
        return {"subsequence": 1 / len(self.main.symbols)}

    def tokens(self, length: int) -> int:
        return length + 2

    @property
    def asks_alike(self) -> bool:
        return type(self).draw is Subsequence.draw

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        device, size, longest, within = generator.device, len(n_B), int(n_B.max()), self.within
        long_B = torch.full((size,), within, device="cpu")
        x_BN = self.main.read(long_B, generator)
        y_BN = self.main.write(x_BN, long_B.to(device))
        chosen_B1 = (torch.rand(size, 1, generator=generator, device=device) * within).long().clamp(max=within - 1)
        sep_B1 = torch.full_like(chosen_B1, SEP)
        before_BP = torch.cat((x_BN + FIRST, sep_B1, y_BN[:, :-1] + FIRST), dim=1)  # <bos> left out; it stands at 0

        n_B1, place_P = n_B.to(device)[:, None], torch.arange(before_BP.shape[1], device=device)
        key_BP = torch.rand(before_BP.shape, generator=generator, device=device)
        key_BP = key_BP.scatter(1, self._needed(x_BN, y_BN, chosen_B1), -1.0)
        key_BP = key_BP.masked_fill(place_P > within + chosen_B1, 2.0)  # it comes after what is asked
        kept_BT = key_BP.argsort(dim=1)[:, :longest]
        kept_BT = kept_BT.masked_fill(torch.arange(longest, device=device) >= n_B1, len(place_P)).sort(dim=1).values
        there_BT = kept_BT < len(place_P)
        tokens_BT = before_BP.gather(1, kept_BT.clamp(max=len(place_P) - 1)).where(there_BT, self.pad)
        tokens_BT = F.pad(F.pad(tokens_BT, (1, 0), value=BOS), (0, 1))
        answer_B1 = y_BN.gather(1, chosen_B1) + FIRST
        target_BT = torch.full_like(tokens_BT, IGNORE).scatter(1, n_B1, answer_B1)
        position_BT = F.pad(F.pad((kept_BT + 1).where(there_BT, 0), (1, 0)), (0, 1)) if self.places == "kept" else None
        return Batch(tokens_BT.scatter(1, n_B1 + 1, answer_B1), {"subsequence": target_BT}, n_B1[:, 0] + 2, position_BT)

    def _needed(self, x_BN: Tensor, y_BN: Tensor, chosen_B1: Tensor) -> Tensor:
        """place_BK of the tokens that the answer depends on, <bos> left out; some may be named twice."""
        source_B1 = (x_BN == y_BN.gather(1, chosen_B1)).long().argmax(dim=1, keepdim=True)
        sep_B1 = torch.full_like(chosen_B1, self.within)
        needed = [source_B1, sep_B1, sep_B1 + chosen_B1]  # the last of them is what stands before the answer
        if isinstance(self.of, Copying):
            step = -1 if isinstance(self.of, Copy) else 1
            needed.append((source_B1 + step).clamp(0, self.within))
        return torch.cat(needed, dim=1)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        sep = list(words).index("<sep>")
        answer, said = list(self.main.answer(words[1:sep])), words[sep + 1 : -1]
        if isinstance(self.of, Sort):
            return {"subsequence": (next(word for word in answer if not said or int(word) > int(said[-1])),)}
        return {"subsequence": (answer[answer.index(said[-1]) + 1 if said else 0],)}
