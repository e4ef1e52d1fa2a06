"""The small job that several tools do (trainers.py, loops.py) to be disturbed at it (faults.py).

It is 300 steps of Adam on a small network of ours, 4 samples of modulo-recall at a time, one pass over 1,200 of them, with a
checkpoint every 20 steps.

Shapes: B samples, T tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

STEPS, EVERY, BATCH, LR, LOG = 300, 20, 4, 1e-2, 10
Weights = dict[str, Tensor]
Tick = Callable[[], None]
"""Called after each step."""


@dataclass(frozen=True)
class Tool:
    package: str
    preload: tuple[str, ...]
    job: Callable[[Path, Tick], Weights]
    newest: Callable[[Path], list[Path]]
    """The files of its newest checkpoint."""
    losses: Callable[[Path], dict[int, float]] | None = None
    """As it logged them; None: the author of the loop logs."""


def network() -> nn.Module:
    from small_runs import TASK, small_model

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return small_model().build(len(TASK.words))


def samples() -> tuple[Tensor, Tensor]:
    """tokens_BT and target_BT."""
    from lengthlab.tasks.batch import merged
    from small_runs import TASK

    draw = torch.Generator().manual_seed(0)
    batch = TASK.draw(torch.randint(1, 4, (STEPS * BATCH,), generator=draw), draw)
    return batch.tokens_BT, merged(batch.target)


def loss_of(model: nn.Module, tokens_BT: Tensor, target_BT: Tensor) -> Tensor:
    return F.cross_entropy(model(tokens_BT).flatten(0, 1), target_BT.flatten())


def stateful_loader() -> Any:
    """torchdata's, which knows where it is: what Lightning, accelerate and torchtitan ask for. In the order of the samples, so
    that no random state has to be kept: that would be a question to the loader.
    """
    from torch.utils.data import TensorDataset
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(TensorDataset(*samples()), batch_size=BATCH)


def numbered(folder: Path, pattern: str) -> list[Path]:
    """Paths in order of the last number in their names."""
    return sorted(folder.glob(pattern), key=lambda path: int(re.findall(r"\d+", path.name)[-1]))


def files_of_last(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in numbered(folder, pattern)[-1].rglob("*") if path.is_file())
