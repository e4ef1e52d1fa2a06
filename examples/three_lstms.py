"""A model of your own: the parts of the package in another order, and a part of your own among them.

Run this file, or train with it from the command line:

    python three_lstms.py
    lengthlab models three_lstms.py:three_lstms
    lengthlab train three_lstms.toml
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

import lengthlab as ll
from lengthlab.models import Lstm, Model, chain, named, repeat, residual


def three_lstms(width: int = 64) -> Model:
    """LN(x + LSTM(x)), three times."""
    return Model("three-lstms", width, repeat(3, residual(Lstm())))


@dataclass(frozen=True)
class RunningMean:
    """A part is data with `build`; its fields are what a user may choose."""

    bias: bool = True

    def build(self, width: int) -> nn.Module:
        return _RunningMean(width, self.bias)


class _RunningMean(nn.Module):
    """The mean of all tokens so far, mapped. Never a token ahead: a part is causal."""

    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.out = nn.Linear(width, width, bias)

    def forward(self, x_BTD: Tensor) -> Tensor:
        count_T = torch.arange(1, x_BTD.shape[1] + 1, device=x_BTD.device)
        return self.out(x_BTD.cumsum(dim=1) / count_T[:, None])


def lstms_and_mean(width: int = 64) -> Model:
    """Two LSTMs, then the running mean, under a name by which a schedule can switch it off."""
    return Model("lstms-and-mean", width, chain(repeat(2, residual(Lstm())), named("mean", residual(RunningMean()))))


if __name__ == "__main__":
    together = ll.end_to_end(200, lr=1e-2)
    mean_later = ll.Schedule("mean later", (ll.Phase(100, lr=1e-2, off=("mean",)), ll.Phase(100, lr=1e-2)))
    for model, schedule in ((three_lstms(16), together), (lstms_and_mean(16), mean_later)):
        task = ll.tasks.modulo(modulus=2, values=2, keys=16)
        run = ll.Run(task, model, schedule, lengths=(1, 4), batch=32, evaluate=(4, 8, 16))
        result = ll.train(run, store="runs")
        print(f"{model.name}:", ", ".join(f"{result.accuracy(n):.3f} at n={n}" for n in run.evaluate))
