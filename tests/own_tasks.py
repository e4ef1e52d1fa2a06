"""Tasks of a user's own, in a file that stands alone: a sound one, and ones with a mistake each."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from lengthlab.tasks import Batch, Task

BOS, ASK, ZERO = 1, 2, 3


@dataclass(frozen=True)
class Parity(Task):
    """`<bos> b1 … bn <parity> p`"""

    name = "parity"
    questions = ("parity",)
    words = ("<pad>", "<bos>", "<parity>", "0", "1")

    def chance(self, length: int) -> Mapping[str, float]:
        return {"parity": 1 / 2}

    def bits(self, shape: tuple[int, int], generator: Generator) -> Tensor:
        return torch.randint(2, shape, generator=generator)

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        size, longest = len(n_B), int(n_B.max())
        there_BN = torch.arange(longest) < n_B[:, None]
        bit_BN = self.bits((size, longest), generator) * there_BN
        tokens_BT = torch.full((size, longest + 3), self.pad)
        tokens_BT[:, 0] = BOS
        tokens_BT[:, 1 : longest + 1] = torch.where(there_BN, bit_BN + ZERO, self.pad)
        tokens_BT.scatter_(1, n_B[:, None] + 1, ASK).scatter_(1, n_B[:, None] + 2, bit_BN.sum(dim=1, keepdim=True) % 2 + ZERO)
        asked_BT = torch.arange(longest + 3) == n_B[:, None] + 1
        return Batch.asking(tokens_BT, dict.fromkeys(self.questions, asked_BT), length_B=n_B + 3)

    def tokens(self, length: int) -> int | None:
        return length + 3

    def solve(self, words: Sequence[str]) -> Mapping[str, Sequence[str]]:
        bits = words[1 : words.index("<parity>")]
        return dict.fromkeys(self.questions, (str(bits.count("1") % 2),))


def parity() -> Parity:
    return Parity()


@dataclass(frozen=True)
class WrongChance(Parity):
    def chance(self, length: int) -> Mapping[str, float]:
        return {"parity": 1 / 4}


@dataclass(frozen=True)
class NoChance(Parity):
    def chance(self, length: int) -> Mapping[str, float]:
        return {}


@dataclass(frozen=True)
class Contradicting(Parity):
    """The answer that is learned is not the one that is written."""

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        batch = super().draw(n_B, generator)
        other_BT = 2 * ZERO + 1 - batch.target["parity"]
        return replace(batch, target={"parity": batch.target["parity"].where(batch.target["parity"] < 0, other_BT)})


@dataclass(frozen=True)
class WrongSolve(Parity):
    def solve(self, words: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return {"parity": (str(words.count("1") % 2),)}  # the answer itself is among them


@dataclass(frozen=True)
class CopyingSolve(Parity):
    def solve(self, words: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return {"parity": (words[-1],)}


@dataclass(frozen=True)
class FailingSolve(Parity):
    def solve(self, words: Sequence[str]) -> Mapping[str, Sequence[str]]:
        raise KeyError("<parity>")


@dataclass(frozen=True)
class TorchRandom(Parity):
    def bits(self, shape: tuple[int, int], generator: Generator) -> Tensor:
        return torch.randint(2, shape)


@dataclass(frozen=True)
class PythonRandom(Parity):
    def bits(self, shape: tuple[int, int], generator: Generator) -> Tensor:
        return torch.tensor([[random.randrange(2) for _ in range(shape[1])] for _ in range(shape[0])])


@dataclass(frozen=True)
class OwnRandom(Parity):
    """Random numbers of its own that nobody seeds."""

    def bits(self, shape: tuple[int, int], generator: Generator) -> Tensor:
        own = Generator()
        own.seed()
        return torch.randint(2, shape, generator=own)


@dataclass(frozen=True)
class NotRandom(Parity):
    def bits(self, shape: tuple[int, int], generator: Generator) -> Tensor:
        return torch.arange(shape[0])[:, None].expand(shape) % 2


@dataclass(frozen=True)
class FewWords(Parity):
    words = ("<pad>", "<bos>", "<parity>", "0")


@dataclass(frozen=True)
class WordTwice(Parity):
    words = ("<pad>", "<bos>", "<parity>", "0", "0")


@dataclass(frozen=True)
class WrongTokens(Parity):
    def tokens(self, length: int) -> int | None:
        return length + 2


@dataclass(frozen=True)
class WrongLength(Parity):
    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        batch = super().draw(n_B, generator)
        return replace(batch, length_B=batch.length_B - 1)


@dataclass(frozen=True)
class AskedInPadding(Parity):
    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        batch = super().draw(n_B, generator)
        last_BT = torch.zeros_like(batch.tokens_BT).index_fill_(1, torch.tensor([batch.tokens_BT.shape[1] - 1]), 1) == 1
        return replace(batch, target={"parity": batch.target["parity"].masked_fill(last_BT, ZERO)})


@dataclass(frozen=True)
class SameLength(Parity):
    """Always as long as the longest."""

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        return super().draw(torch.full_like(n_B, 30), generator)

    def tokens(self, length: int) -> int | None:
        return None


@dataclass(frozen=True)
class NamedAll(Parity):
    questions = ("all",)


@dataclass(frozen=True)
class NamedBoth(Parity):
    questions = ("both",)


@dataclass(frozen=True)
class OtherShape(Parity):
    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        batch = super().draw(n_B, generator)
        return replace(batch, target={"parity": batch.target["parity"][:, :-1]})
