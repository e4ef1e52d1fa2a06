"""The textbook loop: one model, eager, padded batches, Adam, as a reader of the paper would write it.

Shapes: B samples, T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from lengthlab.bench.case import Case
from lengthlab.bench.textbook import Textbook
from lengthlab.tasks import IGNORE, Task

SILENT = -100
"""The target that cross-entropy ignores."""
LOOK_EVERY = 50
"""Steps between two looks at the loss; each look waits for the GPU."""


class Loop:
    """Trains the textbook network of a case. `tuned` is what a reader who knows PyTorch would add on a GPU."""

    turn = 1

    def __init__(self, case: Case, device: torch.device, tuned: bool = False) -> None:
        self.case, self.device = case, device
        shape = case.shape
        sizes = (case.task.vocabulary, shape.width, shape.blocks, shape.heads, shape.mlp, case.tokens)
        self.network = Textbook(shape.kind, *sizes, off=case.off).to(device)
        lr, betas = case.phase.rates["rest"], case.run.optimizer.betas
        assert isinstance(lr, float), "the cells of the paper have constant rates"
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr, betas, fused=True if tuned else None)
        self.generator = Generator(device=device).manual_seed(case.run.seed)
        self.lengths = Generator().manual_seed(case.run.seed)
        self.losses: list[float] = []
        self._step = 0

    def go(self, steps: int) -> None:
        """So many steps, and wait until they are done."""
        run = self.case.run
        for _ in range(steps):
            n_B = torch.randint(run.lengths[0], run.lengths[1] + 1, (run.batch,), generator=self.lengths)
            tokens_BT, targets_BT = draw(self.case.task, n_B, self.case.asks, self.generator)
            loss = loss_of(self.network, tokens_BT, targets_BT)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            self._step += 1
            if self._step % LOOK_EVERY == 0:
                self.losses.append(loss.item())
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def loss_of(network: torch.nn.Module, tokens_BT: Tensor, targets_BT: Tensor) -> Tensor:
    """Cross-entropy at the answers."""
    logits_BTV = network(tokens_BT)
    return F.cross_entropy(logits_BTV.flatten(0, 1), targets_BT.flatten(), ignore_index=SILENT)


def draw(task: Task, n_B: Tensor, asks: Sequence[str], generator: Generator) -> tuple[Tensor, Tensor]:
    """Tokens of a padded batch, and targets at the answers of the questions that count.

    >>> from lengthlab.tasks import ModuloRecall
    >>> task = ModuloRecall(modulus=2, values=10, keys=64)
    >>> tokens_BT, targets_BT = draw(task, torch.tensor([2]), ["recall"], Generator().manual_seed(0))
    >>> " ".join(task.decode(tokens_BT[0])), task.words[targets_BT[0, -1]]
    ('<bos> k12 5 k35 0 <modulo> 1 <recall> k35', '0')
    """
    batch = task.draw(n_B, generator)
    targets_BT = torch.full_like(batch.tokens_BT, SILENT)
    for question in asks:
        targets_BT = targets_BT.where(batch.target[question] == IGNORE, batch.target[question])
    return batch.tokens_BT[:, :-1], targets_BT[:, :-1]
