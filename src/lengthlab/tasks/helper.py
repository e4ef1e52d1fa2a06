"""Helper tasks: what is read is that of a main task, and one thing is asked of its answer instead of all of it.

    <bos> 81 3 40 <successor> 3 40          40 follows 3 in the sorted numbers; <eos>, where nothing follows
    <bos> 81 3 40 <predecessor> 40 3        3 stands before 40; <eos>, where nothing does
    <bos> 81 3 40 <place> 40 even           40 is the second of the sorted numbers

Of sort, copy and reverse, by the answer of which a sequence is asked: the successor of a letter in `reverse` is what stands
left of it. That of sort is the hint of *Task Hinting* (Awasthi & Gupta, arXiv 2310.00726), which names predecessor, count, fill
and parity, too; how these are written is ours. A length n counts x1 ... xn, as in the main task.

Samples: the symbol that is asked for stands at a place of the answer that is drawn evenly. Where symbols are repeated, the
successor is what follows the last of them, the predecessor what stands before the first, and a place is that of the first.

Shapes: B samples, N symbols of the longest sequence, S tokens of a piece.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from lengthlab.errors import LabError, a_kind, require
from lengthlab.tasks.alphabet import BOS, EOS, FIRST
from lengthlab.tasks.batch import Batch
from lengthlab.tasks.copying import REPEATED, Copying
from lengthlab.tasks.parity import EVEN, ODD
from lengthlab.tasks.pieces import Piece, mark, write
from lengthlab.tasks.sorting import Sort
from lengthlab.tasks.task import Task

ASK = 2
"""The token of the helper's mark, which stands where <sep> stands in the main task."""


def repeats(of: Task) -> bool:
    """Whether symbols may come again in a main task."""
    return of.repeated if isinstance(of, Sort) else isinstance(of, Copying) and of.letters == REPEATED


def main_of(name: str, of: Task, again: bool | None = None) -> Sort | Copying:
    """The main task of a helper, by its type; refused where it is none. `again`: whether its symbols may be repeated, if that
    matters.
    """
    which = {None: "", True: " with symbols that may be repeated", False: " with symbols that differ"}[again]
    named = f"'{of.name}'" if isinstance(of, Task) else a_kind(of)
    if not isinstance(of, (Sort, Copying)) or again not in (None, repeats(of)):
        raise LabError(f"task.of: '{name}' helps sort, copy or reverse{which}, not {named}")
    placed = isinstance(of, Copying) and of.placed
    require(not placed, f"task.of: '{name}' has no ids of its own: give its main task positions = \"plain\"")
    return of


@dataclass(frozen=True)
class Helper(Task):
    """What helper tasks have in common. `of` is the main task: sort, copy or reverse."""

    of: Task = Sort()

    mark: ClassVar[str]
    said: ClassVar[tuple[str, ...]] = ()
    """Words besides the marks and those of the main task."""

    def __post_init__(self) -> None:
        main_of(self.name, self.of)

    @property
    def main(self) -> Sort | Copying:
        return main_of(self.name, self.of)

    @property
    def questions(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def words(self) -> tuple[str, ...]:
        return ("<pad>", "<bos>", self.mark, "<eos>", *self.main.symbols, *self.said)

    @property
    def alphabet(self) -> int:
        """How many symbols there are."""
        return len(self.main.symbols)

    @property
    def longest(self) -> int | None:
        return self.main.longest

    @property
    def limit(self) -> str:
        return self.main.limit

    def tokens(self, length: int) -> int | None:
        return length + 4

    @property
    def asks_alike(self) -> bool:
        return self.tokens(self.shortest) is not None and type(self).draw is Helper.draw

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        x_BN = self.main.read(n_B, generator)
        n_B = n_B.to(generator.device)
        y_BN = self.main.write(x_BN, n_B)
        share_B = torch.rand(len(n_B), generator=generator, device=generator.device)
        place_B1 = (share_B * n_B).long().minimum(n_B - 1)[:, None]
        read = [mark(BOS, n_B), Piece(x_BN + FIRST, n_B), *self.asking(y_BN, n_B, place_B1)]
        return write(read, self.reply(y_BN, n_B, place_B1), self.name)

    def asking(self, y_BN: Tensor, n_B: Tensor, place_B1: Tensor) -> list[Piece]:
        """What is read after the sequence: the mark, and the symbol at a place of the answer."""
        return [mark(ASK, n_B), Piece(y_BN.gather(1, place_B1) + FIRST, torch.ones_like(n_B))]

    @abstractmethod
    def reply(self, y_BN: Tensor, n_B: Tensor, place_B1: Tensor) -> list[Piece]:
        """What is to be said of the symbol at that place of the main task's answer."""

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        at = list(words).index(self.mark)
        return {self.name: self.reply_to(list(self.main.answer(words[1:at])), words[at + 1])}

    @abstractmethod
    def reply_to(self, answer: Sequence[str], asked: str) -> tuple[str, ...]:
        """The same in plain Python."""


@dataclass(frozen=True)
class Successor(Helper):
    """What follows a symbol in the answer of the main task; `<eos>`, where nothing does.

    >>> task = Successor()
    >>> batch = task.sample(1, (3, 3), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> 83 94 124 <successor> 83 94'
    """

    name = "successor"
    mark = "<successor>"
    step: ClassVar[int] = 1
    """From the last of the asked symbols to the answer; backward, from the first."""

    def chance(self, length: int) -> Mapping[str, float]:
        """That nothing follows, which is likelier than any symbol."""
        if not repeats(self.of):
            return {self.name: 1 / length}
        if isinstance(self.of, Sort):  # the asked number is the greatest, or the least
            return {self.name: sum((v / self.alphabet) ** (length - 1) for v in range(1, self.alphabet + 1)) / self.alphabet}
        return {self.name: (1 + (length - 1) / self.alphabet) / length}  # it is the last letter, or equal to it

    def reply(self, y_BN: Tensor, n_B: Tensor, place_B1: Tensor) -> list[Piece]:
        place_N = torch.arange(y_BN.shape[1], device=y_BN.device)
        same_BN = (y_BN == y_BN.gather(1, place_B1)) & (place_N < n_B[:, None])
        if self.step == 1:
            beside_B1 = place_N.where(same_BN, -1).amax(dim=1, keepdim=True) + 1
        else:
            beside_B1 = place_N.where(same_BN, len(place_N)).amin(dim=1, keepdim=True) - 1
        there_B1 = (beside_B1 >= 0) & (beside_B1 < n_B[:, None])
        symbol_B1 = y_BN.gather(1, beside_B1.clamp(0, len(place_N) - 1)) + FIRST
        return [Piece(symbol_B1.where(there_B1, EOS), torch.ones_like(n_B))]

    def reply_to(self, answer: Sequence[str], asked: str) -> tuple[str, ...]:
        after = [word for place, word in enumerate(answer) if asked in answer[:place] and asked not in answer[place:]]
        return (after[0] if after else "<eos>",)


@dataclass(frozen=True)
class Predecessor(Successor):
    """What stands before a symbol in the answer of the main task; `<eos>`, where nothing does."""

    name = "predecessor"
    mark = "<predecessor>"
    step = -1

    def reply_to(self, answer: Sequence[str], asked: str) -> tuple[str, ...]:
        return super().reply_to(answer[::-1], asked)


@dataclass(frozen=True)
class PlaceParity(Helper):
    """Whether a symbol stands at an even or an odd place of the main task's answer, which are counted from 1."""

    name = "place-parity"
    mark = "<place>"
    said = (EVEN, ODD)

    def chance(self, length: int) -> Mapping[str, float]:
        odd = self._odd(length)
        return {self.name: max(odd, 1 - odd)}

    def _odd(self, n: int) -> float:
        """How often the place is odd."""
        if not repeats(self.of):
            return (n + 1) // 2 / n
        if isinstance(self.of, Sort):  # where an even number of the others is less
            return sum((1 + (1 - 2 * v / self.alphabet) ** (n - 1)) / 2 for v in range(self.alphabet)) / self.alphabet
        new = 1 - 1 / self.alphabet  # a letter differs from the one that is asked for
        return sum(new**place * (1 + (n - 1 - place) / self.alphabet) for place in range(0, n, 2)) / n

    def reply(self, y_BN: Tensor, n_B: Tensor, place_B1: Tensor) -> list[Piece]:
        first_B1 = (y_BN == y_BN.gather(1, place_B1)).long().argmax(dim=1, keepdim=True)
        return [Piece(FIRST + self.alphabet + (first_B1 + 1) % 2, torch.ones_like(n_B))]

    def reply_to(self, answer: Sequence[str], asked: str) -> tuple[str, ...]:
        return (ODD if list(answer).index(asked) % 2 == 0 else EVEN,)
