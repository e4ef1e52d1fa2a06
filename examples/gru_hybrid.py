"""A recurrence of your own in one of our hybrids: a GRU under attention, with RMSNorm and GELU.

    python gru_hybrid.py
    lengthlab models gru_hybrid.py:gru_hybrid
    lengthlab train gru_hybrid.toml

A mixer lets tokens see each other. Write the plain method; rows of documents, outputs only where they are wanted, delayed parts
and captured steps on a GPU come by themselves. With `read` it can also go on from a state.
"""

from dataclasses import dataclass

from torch import Tensor, nn

import lengthlab as ll


@dataclass(frozen=True)
class Gru:
    """The part: data, from which the module is built."""

    def build(self, width: int) -> nn.Module:
        return GruMixer(width)


class GruMixer(ll.models.Mixer):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.GRU(width, width, batch_first=True)

    def mix(self, x_BTD: Tensor, layout: ll.models.Layout) -> Tensor:
        return self.cell(x_BTD)[0]

    def read(self, x_BTD: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        return self.cell(x_BTD, state)


def gru_hybrid(width: int = 64, blocks: int = 1) -> ll.models.Model:
    """The hybrid block with a GRU in place of the LSTM."""
    choices = {"heads": 4, "positions": "none", "scores": "log-n", "norm": "rms-norm", "activation": "gelu"}
    return ll.models.hybrid_block(width, recurrence=Gru(), blocks=blocks, **choices)


if __name__ == "__main__":
    task = ll.tasks.ModuloRecall(modulus=2, values=9, keys=64)
    run = ll.Run(task, gru_hybrid(48), ll.delayed(joint=2_000, last=300, lr=3e-3), lengths=(1, 10), batch=64)
    result = ll.train(run, store="runs")
    for length in (10, 20, 40):
        print(f"n={length}: {result.accuracy(length):.3f}")
