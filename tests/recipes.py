"""The code of docs/trainers.md, block by block, and a small language model to run it on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

PAGE = Path(__file__).parent.parent / "docs" / "trainers.md"
UNTIL, STEPS, VOCABULARY = 3, 6, 20


def block(name: str) -> str:
    """The block of this name, which opens sooner than it says."""
    (code,) = re.findall(rf"```\w+ {name}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    text: str = code
    return text.replace("2_000", str(UNTIL)).replace("2000", str(UNTIL))


def blocks() -> set[str]:
    return set(re.findall(r"```\w+ ([\w-]+)\n", PAGE.read_text(encoding="utf-8")))


def run(name: str, **given: Any) -> dict[str, Any]:
    """What a block leaves, with `torch` and what else it stands on."""
    scope = {"torch": torch} | given
    exec(compile(block(name), f"{PAGE.name}: {name}", "exec"), scope)
    return scope


class Gpt(nn.Module):
    """Embedding, a GRU, attention beside it, logits."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(VOCABULARY, 8)
        self.recurrence = nn.GRU(8, 8, batch_first=True)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, VOCABULARY)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        x_BTD = self.embedding(tokens_BT)
        x_BTD = x_BTD + self.recurrence(x_BTD)[0]
        x_BTD = x_BTD + self.attention(x_BTD, x_BTD, x_BTD, need_weights=False)[0]
        out: Tensor = self.head(x_BTD)
        return out


def batches(steps: int = STEPS) -> list[tuple[Tensor, Tensor]]:
    """Tokens and the ones after them."""
    rows = torch.randint(3, VOCABULARY, (steps, 2, 9), generator=torch.Generator().manual_seed(1))
    return [(row[:, :-1], row[:, 1:]) for row in rows]


def changed(model: nn.Module, before: dict[str, Tensor], part: str) -> bool:
    return any(not torch.equal(value, before[name]) for name, value in model.state_dict().items() if part in name)
