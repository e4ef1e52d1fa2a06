"""State-based recall: track a pointer, then read the bit that it points to. State and recall composed, not side by side.

    <bos> 0 1 1 0 ... <pointers> a @3 b @0 c @7 d @5 e @2 <swaps> a c b e ... <query> b 1

Of Olmo Hybrid (Merrill et al., arXiv 2604.03444): an array of bits, pointers to distinct addresses in it, n swaps of what two
of them hold; asked is the bit at the address that one of them holds in the end. Addresses count from 0. There the array has
16 to 32 bits, and there are 5 pointers and 4 to 16 swaps. Here it has `bits`, and the pointer that is asked for is any of
them.

Where the pointer ends at the address it began with, no tracking is needed. So a sample asks one of two questions, and the
sequence does not tell which: `moved` if the address is another one, `still` if it is the same. A model that ignores the swaps
is right in all of `still` and in half of `moved`.

Shapes: B samples, N swaps of the longest sequence, P pointers, G permutations of them, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.memory import require_memory
from lengthlab.tasks.alphabet import letters_of
from lengthlab.tasks.batch import IGNORE, Batch
from lengthlab.tasks.group import Group, group_of, product
from lengthlab.tasks.task import ALL, WORD_BYTES, Guess, Task
from lengthlab.tasks.transduction import distinct

MARKS = ("<pad>", "<bos>", "<pointers>", "<swaps>", "<query>")
BOS, POINTERS, SWAPS, QUERY, BIT = 1, 2, 3, 4, 5
FIRST = BIT + 2
"""The token of the first pointer; the addresses come after the last."""


@dataclass(frozen=True)
class StateRecall(Task):
    """The bit at the address that a pointer holds after n swaps of pointers; n counts the swaps.

    >>> task = StateRecall(bits=5, pointers=4)
    >>> batch = task.sample(1, (2, 2), torch.Generator().manual_seed(0))
    >>> words = task.decode(batch.tokens_BT[0])
    >>> " ".join(words), task.solve(words)
    ('<bos> 0 1 1 0 1 <pointers> a @3 b @1 c @4 d @0 <swaps> b a c a <query> c 1', {'moved': ('1',)})
    """

    bits: int = 32
    pointers: int = 5

    name = "state-recall"
    questions = ("moved", "still")
    state = questions  # both are one question, asked of two kinds of samples

    def __post_init__(self) -> None:
        require_whole(self.pointers, "task.pointers", 4, 6)  # so that there are two swaps that have nothing in common
        require_whole(self.bits, "task.bits", 1)
        told = f"task.bits = {self.bits}: {self.pointers} pointers need as many addresses: task.pointers"
        require(self.bits >= self.pointers, told)
        require_memory(WORD_BYTES * self.bits, f"the words of task.bits = {self.bits}")

    @property
    def words(self) -> tuple[str, ...]:
        return (*MARKS, "0", "1", *letters_of(self.pointers), *(f"@{address}" for address in range(self.bits)))

    def stays(self, length: int) -> float:
        """The share of samples in which the pointer holds its first address in the end: those that ask `still`.

        A swap takes it to each of the P - 1 others with probability 2 / P(P - 1), so that what is left of where it was
        shrinks by 1 - 2 / (P - 1) each time.

        >>> [round(StateRecall(pointers=5).stays(n), 3) for n in (1, 4, 10**6)]
        [0.6, 0.25, 0.2]
        """
        return 1 / self.pointers + (1 - 1 / self.pointers) * (1 - 2 / (self.pointers - 1)) ** length

    def chance(self, length: int) -> Mapping[str, float]:
        return {"moved": 0.5, "still": 0.5, ALL: 0.5}

    def tokens(self, length: int) -> int:
        return 6 + self.bits + 2 * self.pointers + 2 * length

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        device, size, longest = generator.device, len(n_B), int(n_B.max())
        n_B1, start = n_B.to(device)[:, None], 3 + self.bits + 2 * self.pointers
        bit_BS = torch.randint(2, (size, self.bits), generator=generator, device=device)
        address_BP = distinct(size, self.bits, self.pointers, generator)
        one_BN = torch.randint(self.pointers, (size, longest), generator=generator, device=device)
        other_BN = torch.randint(self.pointers - 1, (size, longest), generator=generator, device=device)
        other_BN += other_BN >= one_BN
        asked_B1 = torch.randint(self.pointers, (size, 1), generator=generator, device=device)
        present_BN = torch.arange(longest, device=device) < n_B1
        began_B1 = self._began(one_BN, other_BN, present_BN).gather(1, asked_B1)
        answer_B1 = BIT + bit_BS.gather(1, address_BP.gather(1, began_B1))

        tokens_BT = torch.full((size, self.tokens(longest)), self.pad, device=device)
        tokens_BT[:, 0], tokens_BT[:, 1 + self.bits], tokens_BT[:, start - 1] = BOS, POINTERS, SWAPS
        tokens_BT[:, 1 : 1 + self.bits] = BIT + bit_BS
        tokens_BT[:, 2 + self.bits : start - 1 : 2] = FIRST + torch.arange(self.pointers, device=device)
        tokens_BT[:, 3 + self.bits : start - 1 : 2] = FIRST + self.pointers + address_BP
        tokens_BT[:, start : start + 2 * longest : 2] = (FIRST + one_BN).where(present_BN, self.pad)
        tokens_BT[:, start + 1 : start + 1 + 2 * longest : 2] = (FIRST + other_BN).where(present_BN, self.pad)
        end_B1 = start + 2 * n_B1
        tokens_BT.scatter_(1, end_B1, QUERY).scatter_(1, end_B1 + 1, FIRST + asked_B1).scatter_(1, end_B1 + 2, answer_B1)
        target = {}
        for question, asks_B1 in (("moved", began_B1 != asked_B1), ("still", began_B1 == asked_B1)):
            nothing_BT = torch.full_like(tokens_BT, IGNORE)
            target[question] = nothing_BT.scatter_(1, end_B1 + 1, answer_B1.where(asks_B1, IGNORE))
        return Batch(tokens_BT, target, end_B1[:, 0] + 3)

    def _began(self, one_BN: Tensor, other_BN: Tensor, present_BN: Tensor) -> Tensor:
        """began_BP: which pointer held at first what each holds in the end."""
        group = group_of(f"S{self.pointers}")
        swap_PP = _swaps(group, self.pointers).to(one_BN.device)
        end_B = product(swap_PP[one_BN, other_BN] * present_BN, group.table_GG.to(one_BN.device))
        sends_GP = torch.tensor([[int(point) - 1 for point in word] for word in group.words], device=one_BN.device)
        return sends_GP[end_B].argsort(dim=1)  # what began at i ends at sends[i]

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        first, held = self._first(words), self._first(words)
        swapped = words[list(words).index("<swaps>") + 1 : list(words).index("<query>")]
        for one, other in zip(swapped[::2], swapped[1::2], strict=True):
            held[one], held[other] = held[other], held[one]
        asked = words[list(words).index("<query>") + 1]
        question = "moved" if held[asked] != first[asked] else "still"
        return {question: (words[1 + int(held[asked][1:])],)}

    def _first(self, words: Sequence[str]) -> dict[str, str]:
        """The address that each pointer holds before the swaps."""
        told = words[list(words).index("<pointers>") + 1 : list(words).index("<swaps>")]
        return dict(zip(told[::2], told[1::2], strict=True))

    @property
    def guesses(self) -> Mapping[str, Guess]:
        return {"no tracking: the bit at its first address": self._untracked}

    def _untracked(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        address = self._first(words)[words[list(words).index("<query>") + 1]]
        return dict.fromkeys(self.questions, (words[1 + int(address[1:])],))


def _swaps(group: Group, pointers: int) -> Tensor:
    """swap_PP, on the CPU: the number of the permutation that exchanges two; that of none for one and itself."""
    numbers = {word: number for number, word in enumerate(group.words)}
    points = [str(point + 1) for point in range(pointers)]

    def exchanged(one: int, other: int) -> str:
        moved = list(points)
        moved[one], moved[other] = points[other], points[one]
        return "".join(moved)

    table = [[numbers[exchanged(one, other)] for other in range(pointers)] for one in range(pointers)]
    return torch.tensor(table, device="cpu")
