"""Models whose answers are known, because they were written by hand: by attention alone, by a counter, by one that drifts.

Shapes: B samples, T tokens, D width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.models import Attention, Model, chain, named
from lengthlab.models.model import Network
from lengthlab.models.recurrence.recurrence import Recurrence, State
from lengthlab.tasks import ModuloRecall

FIRST_DIGIT = 4


@dataclass(frozen=True)
class Before:
    """A recurrence that says, beside each token, which came before it."""

    def build(self, width: int) -> nn.Module:
        return _Before()


class _Before(Recurrence):
    def walk(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        half = x_BTD.shape[2] // 2
        first_B1D = torch.zeros_like(x_BTD[:, :1, :half]) if state is None else state[0]
        token_BTD = x_BTD[..., :half]
        before_BTD = torch.cat([first_B1D, token_BTD[:, :-1]], dim=1)
        return torch.cat([token_BTD, before_BTD], dim=2), (token_BTD[:, -1:],)


def recaller(task: ModuloRecall, sharpness: float = 60.0, aside: int = 0) -> Network:
    """The value that stands after the key that is asked, found by one head. `aside`: of the next key instead, by so many."""
    tokens = task.vocabulary
    network = Model("recaller", 2 * tokens, chain(Before(), named("attend", Attention(1, "none")))).build(tokens)
    attend = network.get_submodule("body.attend")
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        eye_VV = torch.eye(tokens)
        network.embedding.weight[:, :tokens] = eye_VV
        attend.q.weight[:tokens, :tokens] = sharpness * sqrt(2 * tokens) * eye_VV.roll(aside, dims=0)
        attend.kv.weight[:tokens, tokens:] = eye_VV
        attend.kv.weight[2 * tokens : 3 * tokens, :tokens] = eye_VV
        attend.out.weight[:tokens, :tokens] = eye_VV
        network.head.weight[:, :tokens] = eye_VV
    return network.eval()


@dataclass(frozen=True)
class Counter:
    """The sum of all values so far modulo 2, beside the token; it goes `drift` off with each value, up or down by the first."""

    drift: float = 0.0

    def build(self, width: int) -> nn.Module:
        return _Counter(self.drift)


class _Counter(Recurrence):
    def __init__(self, drift: float) -> None:
        super().__init__()
        self.drift = drift

    def walk(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        """x has a token's value, whether it has one, and room for the state."""
        value_BT, has_BT = x_BTD[..., 0], x_BTD[..., 1]
        total_B, number_B, way_B = state or (torch.zeros_like(value_BT[:, 0]),) * 3
        out = []
        for value_B, has_B in zip(value_BT.unbind(1), has_BT.unbind(1), strict=True):
            way_B = torch.where((number_B == 0) & (has_B > 0), torch.where(value_B < 3, -1.0, 1.0), way_B)
            total_B, number_B = total_B + value_B * has_B, number_B + has_B
            out.append(total_B % 2 + self.drift * number_B * way_B)
        state_BT = torch.stack(out, dim=1)
        return torch.stack([state_BT, torch.ones_like(state_BT), torch.zeros_like(state_BT)], dim=2), (total_B, number_B, way_B)


def counter(task: ModuloRecall, drift: float = 0.0) -> Network:
    """Says 0 or 1, whichever the state is nearer to."""
    network = Model("counter", 3, chain(Counter(drift))).build(task.vocabulary)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        for digit in range(task.values):
            network.embedding.weight[FIRST_DIGIT + digit] = torch.tensor([float(digit), 1.0, 0.0])
        network.head.weight[FIRST_DIGIT] = torch.tensor([-1.0, 1.0, 0.0])
        network.head.weight[FIRST_DIGIT + 1] = torch.tensor([1.0, 0.0, 0.0])
    return network.eval()


class Foreign(nn.Module):
    """The recaller in plain PyTorch, as anybody may write it, with a GRU and a router beside that nobody listens to."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.aside = nn.GRU(vocabulary, 4, batch_first=True)
        self.scale = nn.Parameter(torch.tensor(60.0))

    def forward(self, tokens_BT: Tensor) -> Tensor:
        token_BTV = F.one_hot(tokens_BT, self.vocabulary).float()
        before_BTV = F.pad(token_BTV[:, :-1], (0, 0, 1, 0))
        heard = self.aside(input=token_BTV)[0].sum() * 0.0 + token_BTV.flatten(0, 1).softmax(dim=-1).sum() * 0.0
        found = F.scaled_dot_product_attention(self.scale * token_BTV, before_BTV, token_BTV, is_causal=True, scale=1.0)
        return found + heard
