"""A task whose answers are as long as its input: write the letters down again.

<bos> c1 c2 ... cn <copy> c1 c2 ... cn <end>

python copy_task.py
lengthlab tasks copy_task.py:Copy
lengthlab train copy.toml
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

import lengthlab as ll
from lengthlab.tasks import Batch, Task

BOS, COPY, END, FIRST = 1, 2, 3, 4


@dataclass(frozen=True)
class Copy(Task):
    """The letters of a sequence, once more and in order, and then the end. Right is who has every token right."""

    letters: int = 16

    name = "copy"
    questions = ("copy",)

    @property
    def words(self) -> tuple[str, ...]:
        return ("<pad>", "<bos>", "<copy>", "<end>", *(f"c{letter}" for letter in range(self.letters)))

    def chance(self, length: int) -> Mapping[str, float]:
        return {"copy": (1 / self.letters) ** length}  # if the end is known, and nothing else

    def draw(self, n_B: torch.Tensor, generator: torch.Generator) -> Batch:
        device, longest = generator.device, int(n_B.max())
        n_B1 = n_B.to(device)[:, None]
        letter_BN = FIRST + torch.randint(self.letters, (len(n_B), longest), generator=generator, device=device)
        place_1T = torch.arange(2 * longest + 3, device=device)[None]
        asked_BT = (place_1T > n_B1) & (place_1T <= 2 * n_B1 + 1)  # from <copy> to the last letter
        source_BT = torch.where(place_1T <= n_B1, place_1T - 1, place_1T - n_B1 - 2).clamp(0, longest - 1)
        tokens_BT = letter_BN.gather(1, source_BT).masked_fill(place_1T > 2 * n_B1 + 2, self.pad)
        tokens_BT[:, 0] = BOS
        tokens_BT.scatter_(1, n_B1 + 1, COPY).scatter_(1, 2 * n_B1 + 2, END)
        return Batch.asking(tokens_BT, {"copy": asked_BT}, length_B=2 * n_B1[:, 0] + 3)

    def tokens(self, length: int) -> int:
        return 2 * length + 3  # a task that says so is trained without padding

    def solve(self, words: Sequence[str]) -> dict[str, list[str]]:
        return {"copy": [*words[1 : words.index("<copy>")], "<end>"]}


if __name__ == "__main__":
    model = ll.models.hybrid_block(width=64, blocks=2, heads=4, positions="rope", scores="log-n")
    run = ll.Run(Copy(), model, ll.end_to_end(800, last=200, lr=1e-3), lengths=(1, 10), batch=64)
    result = ll.train(run, store="runs")
    for length in (5, 10, 20):
        count = result.count(length)
        print(f"n={length}: {count.accuracy:.3f} of the samples, {count.token_accuracy:.3f} of their tokens")
