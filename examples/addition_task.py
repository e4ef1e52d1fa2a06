"""A task of one's own with position ids of its own: addition with coupled positions (Cho et al. 2024, arXiv 2405.20671).
`lengthlab tasks addition` is ours, with several operands, hints and ids that start at 1 when it is measured.

<bos> 6 5 3 + 0 4 9 = 2 0 7 0 <end>        653 + 49 = 702; the sum has its last digit first
  0   9 8 7 6 9 8 7 6 7 8 9 10  0          digits of one significance share an id, whatever their place

python addition_task.py
lengthlab tasks addition_task.py:Addition
lengthlab train addition.toml
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

import lengthlab as ll
from lengthlab.tasks import Batch, Task

BOS, PLUS, EQUALS, END, ZERO = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class Addition(Task):
    """The sum of two numbers of n digits, its last digit first. Ids begin at random, so that all below `ids` are trained."""

    ids: int = 64

    name = "coupled-addition"
    questions = ("sum",)
    words = ("<pad>", "<bos>", "+", "=", "<end>", *"0123456789")

    @property
    def longest(self) -> int:
        return self.ids - 3

    def chance(self, length: int) -> Mapping[str, float]:
        return {"sum": 0.1**length}  # of all sums, 99…9 comes out most often

    def draw(self, n_B: torch.Tensor, generator: torch.Generator) -> Batch:
        device, longest = generator.device, int(n_B.max())
        n_B1, size = n_B.to(device)[:, None], len(n_B)
        place_1N = torch.arange(longest, device=device)[None]  # by significance: units first
        digit_2BN = torch.randint(10, (2, size, longest), generator=generator, device=device) * (place_1N < n_B1)
        sum_BN, carry_B = [], torch.zeros(size, dtype=torch.long, device=device)
        for place in range(longest + 1):
            column_B = carry_B + (digit_2BN[:, :, place].sum(dim=0) if place < longest else 0)
            sum_BN.append(column_B % 10)
            carry_B = column_B // 10
        start_B1 = 1 + (torch.rand(size, 1, generator=generator, device=device) * (self.ids - n_B1 - 2)).long()

        tokens_BT = torch.full((size, 3 * longest + 5), self.pad, device=device)
        position_BT = torch.zeros_like(tokens_BT)
        tokens_BT[:, 0] = BOS
        place_BN = place_1N.expand(size, -1)
        for number_BN, end_B1 in zip(digit_2BN, (n_B1, 2 * n_B1 + 1), strict=True):  # where the units of each stand
            at_BN = (end_B1 - place_BN).where(place_BN < n_B1, 0)
            tokens_BT.scatter_(1, at_BN, (number_BN + ZERO).where(place_BN < n_B1, BOS))
            position_BT.scatter_(1, at_BN, (start_B1 + 1 + place_BN).where(place_BN < n_B1, 0))
        for sign, at_B1 in ((PLUS, n_B1 + 1), (EQUALS, 2 * n_B1 + 2)):
            tokens_BT.scatter_(1, at_B1, sign)
            position_BT.scatter_(1, at_B1, start_B1)
        for place, digit_B in enumerate(sum_BN):
            at_B1, there_B1 = 2 * n_B1 + 3 + place, place <= n_B1
            tokens_BT.scatter_(1, at_B1.where(there_B1, 0), (digit_B[:, None] + ZERO).where(there_B1, BOS))
            position_BT.scatter_(1, at_B1.where(there_B1, 0), (start_B1 + 1 + place).where(there_B1, 0))
        tokens_BT.scatter_(1, 3 * n_B1 + 4, END)
        place_1T = torch.arange(3 * longest + 5, device=device)[None]
        asked_BT = (place_1T >= 2 * n_B1 + 2) & (place_1T <= 3 * n_B1 + 3)  # from = to the last digit
        return Batch.asking(tokens_BT, {"sum": asked_BT}, length_B=3 * n_B1[:, 0] + 5, position_BT=position_BT)

    def tokens(self, length: int) -> int:
        return 3 * length + 5

    def solve(self, words: Sequence[str]) -> dict[str, list[str]]:
        plus, equals = words.index("+"), words.index("=")
        one, other = "".join(words[1:plus]), "".join(words[plus + 1 : equals])
        total = str(int(one) + int(other)).zfill(len(one) + 1)
        return {"sum": [*reversed(total), "<end>"]}


def coupled(width: int = 64, heads: int = 4, ids: int = 64) -> ll.models.Model:
    """One block of attention; a learned vector for each position id is added to the token's."""
    attention = ll.models.attention(blocks=1, heads=heads, positions="none")
    return ll.models.Model("coupled", width, attention, position_ids=ids)


if __name__ == "__main__":
    run = ll.Run(
        task=Addition(ids=32),
        model=coupled(width=128, ids=32),
        schedule=ll.end_to_end(1_500, lr=ll.Cosine(1e-3, warm_up=50)),
        lengths=(1, 6),
        batch=128,
        optimizer=ll.AdamW(beta2=0.95, clip=1.0),
    )
    result = ll.train(run, store="runs")
    for length in (3, 6, 12):
        print(f"n={length}: {result.accuracy(length):.3f}")
