"""A task of your own: is the number of ones even or odd?

    <bos> b1 b2 ... bn <parity> p

Run this file, or train on it from the command line:

    python parity_task.py
    lengthlab tasks parity_task.py:Parity
    lengthlab train parity.toml
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

import lengthlab as ll
from lengthlab.tasks import Batch, Task

BOS, PARITY, ZERO = 1, 2, 3


@dataclass(frozen=True)
class Parity(Task):
    """Whether the number of ones is odd."""

    name = "parity"
    questions = ("parity",)
    words = ("<pad>", "<bos>", "<parity>", "0", "1")

    def chance(self, length: int) -> Mapping[str, float]:
        return {"parity": 1 / 2}

    def draw(self, n_B: torch.Tensor, generator: torch.Generator) -> Batch:
        size, longest = len(n_B), int(n_B.max())
        n_B = n_B.to(generator.device)
        on = {"generator": generator, "device": generator.device}
        bit_BN = torch.randint(2, (size, longest), **on)
        there_BN = torch.arange(longest, device=generator.device) < n_B[:, None]
        parity_B = (bit_BN * there_BN).sum(dim=1) % 2 + ZERO

        tokens_BT = torch.full((size, longest + 3), self.pad, device=generator.device)
        tokens_BT[:, 0] = BOS
        tokens_BT[:, 1 : longest + 1] = torch.where(there_BN, bit_BN + ZERO, self.pad)
        end_B1 = n_B[:, None] + 1
        tokens_BT.scatter_(1, end_B1, PARITY)
        tokens_BT.scatter_(1, end_B1 + 1, parity_B[:, None])
        # Asked after reading <parity>: the next token is the answer.
        return Batch.asking(tokens_BT, {"parity": tokens_BT == PARITY}, length_B=n_B + 3)

    def tokens(self, length: int) -> int:
        return length + 3  # a task that says so is trained without padding

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        bits = words[1 : words.index("<parity>")]
        return {"parity": (str(bits.count("1") % 2),)}


if __name__ == "__main__":
    run = ll.Run(Parity(), ll.models.lstm(width=32), ll.end_to_end(500, last=100, lr=1e-2), lengths=(1, 8), batch=64)
    result = ll.train(run, store="runs")
    for length in (8, 16, 32):
        print(f"n={length}: {result.accuracy(length):.3f}")
