"""A task of your own with its C-RASP program: does a letter stand twice in a row?

    <bos> x1 x2 ... xn <twice> y

    lengthlab check doubles_task.py:Doubles
    lengthlab guarantee doubles_task.py:Doubles

`guarantee` holds the program against `solve`, on every short input (`prompts`, if you have it) and on inputs that `draw` gives.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import torch

from lengthlab.tasks import Batch, Task
from lengthlab.theory import Program, any_of, back, exists, token

BOS, TWICE, NO, YES, FIRST = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class Doubles(Task):
    """Whether a letter is followed by itself."""

    letters: int = 3

    name = "doubles"
    questions = ("twice",)

    @property
    def alphabet(self) -> tuple[str, ...]:
        return tuple(chr(ord("a") + letter) for letter in range(self.letters))

    @property
    def words(self) -> tuple[str, ...]:
        return ("<pad>", "<bos>", "<twice>", "no", "yes", *self.alphabet)

    @property
    def program(self) -> Program:
        """Somewhere so far, the token is the one before it."""
        doubled = any_of(token(a) & back(token(a)) for a in self.alphabet).named("DOUBLED")
        return Program.deciding(exists(doubled), yes="yes", no="no")

    def prompts(self, length: int) -> Iterator[Sequence[str]]:
        """Every input of a length."""
        return (("<bos>", *letters, "<twice>") for letters in product(self.alphabet, repeat=length))

    def draw(self, n_B: torch.Tensor, generator: torch.Generator) -> Batch:
        device, longest = generator.device, int(n_B.max())
        n_B1 = n_B.to(device)[:, None]
        place_N = torch.arange(longest, device=device)
        step_BN = torch.randint(1, self.letters, (len(n_B), longest), generator=generator, device=device)
        # Half of the samples have no double: each letter differs from the one before it. In the others one step is 0.
        again_B1 = (torch.rand(len(n_B), 1, generator=generator, device=device) * (n_B1 - 1)).long() + 1
        yes_B1 = (torch.rand(len(n_B), 1, generator=generator, device=device) < 0.5) & (n_B1 > 1)
        step_BN[yes_B1 & (place_N == again_B1)] = 0
        letter_BN = FIRST + step_BN.cumsum(dim=1) % self.letters
        tokens_BT = torch.full((len(n_B), longest + 3), self.pad, device=device)
        tokens_BT[:, 0] = BOS
        tokens_BT[:, 1 : longest + 1] = letter_BN.where(place_N < n_B1, self.pad)
        tokens_BT.scatter_(1, n_B1 + 1, TWICE).scatter_(1, n_B1 + 2, NO + yes_B1.long())
        return Batch.asking(tokens_BT, {"twice": tokens_BT == TWICE}, length_B=n_B1[:, 0] + 3)

    def tokens(self, length: int) -> int:
        return length + 3

    def chance(self, length: int) -> dict[str, float]:
        return {"twice": 0.5 if length > 1 else 1.0}

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        letters = words[1 : list(words).index("<twice>")]
        return {"twice": ("yes" if any(a == b for a, b in pairwise(letters)) else "no",)}
