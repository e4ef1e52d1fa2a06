"""The textbook loop: one model, eager, padded batches, Adam, as a reader of the paper would write it.

Shapes: B samples, N pairs of the longest sequence, T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from lengthlab.bench.case import Case
from lengthlab.bench.textbook import Textbook
from lengthlab.tasks import ModuloRecall
from lengthlab.tasks.modulo_recall import BOS, MARKS, MODULO, RECALL

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
        self.network = Textbook(shape.kind, *sizes, attention_off=case.attention_off).to(device)
        lr = case.phase.rates["rest"]
        parameters = self.network.parameters()
        self.optimizer = torch.optim.Adam(parameters, lr, fused=True) if tuned else torch.optim.Adam(parameters, lr)
        self.generator = Generator(device=device).manual_seed(case.run.seed)
        self.losses: list[float] = []
        self._step = 0

    def go(self, steps: int) -> None:
        """So many steps, and wait until they are done."""
        run = self.case.run
        for _ in range(steps):
            tokens_BT, targets_BT = draw(self.case.task, run.batch, run.lengths, self.case.asks, self.generator)
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


def draw(
    task: ModuloRecall, size: int, lengths: tuple[int, int], asks: Sequence[str], generator: Generator
) -> tuple[Tensor, Tensor]:
    """Tokens and targets of a batch, n uniform in `lengths` for each sample, padded on the right.

    As `task.draw`, but always as wide as the longest length, so that nothing waits for the GPU to say how wide.

    >>> task = ModuloRecall(modulus=2, values=10, keys=64)
    >>> tokens_BT, targets_BT = draw(task, 1, (2, 2), ["recall"], Generator().manual_seed(3))
    >>> " ".join(task.decode(tokens_BT[0]))
    '<bos> k36 7 k22 8 <modulo> 1 <recall> k36'
    >>> task.words[targets_BT[0, -1]]
    '7'
    """
    device, (shortest, longest) = generator.device, lengths
    n_B = torch.randint(shortest, longest + 1, (size,), generator=generator, device=device)
    key_BN = torch.rand(size, task.keys, generator=generator, device=device).argsort(dim=1)[:, :longest]
    value_BN = torch.randint(task.values, (size, longest), generator=generator, device=device)
    pick_B1 = (torch.rand(size, generator=generator, device=device) * n_B).long().clamp(max=longest - 1)[:, None]
    here_BN = torch.arange(longest, device=device) < n_B[:, None]
    modulo_B1 = (value_BN * here_BN).sum(dim=1, keepdim=True) % task.modulus
    key_BN, value_BN, modulo_B1 = key_BN + len(MARKS) + task.digits, value_BN + len(MARKS), modulo_B1 + len(MARKS)

    tokens_BT = torch.full((size, task.tokens(longest)), task.pad, device=device)
    tokens_BT[:, 0] = BOS
    tokens_BT[:, 1 : 1 + 2 * longest : 2] = torch.where(here_BN, key_BN, task.pad)
    tokens_BT[:, 2 : 2 + 2 * longest : 2] = torch.where(here_BN, value_BN, task.pad)
    one_B1 = torch.ones_like(pick_B1)
    told = {
        "modulo": (MODULO * one_B1, modulo_B1),
        "recall": (RECALL * one_B1, key_BN.gather(1, pick_B1), value_BN.gather(1, pick_B1)),
    }
    targets_BT = _write_questions(tokens_BT, 1 + 2 * n_B[:, None], {q: told[q] for q in task.questions}, asks)
    return tokens_BT[:, :-1], targets_BT[:, :-1]


def _write_questions(tokens_BT: Tensor, place_B1: Tensor, told: Mapping[str, Sequence[Tensor]], asks: Sequence[str]) -> Tensor:
    """Write the questions behind the pairs; the targets of those that count."""
    targets_BT = torch.full_like(tokens_BT, SILENT)
    for question, columns in told.items():
        for column_B1 in columns:
            tokens_BT.scatter_(1, place_B1, column_B1)
            place_B1 = place_B1 + 1
        if question in asks:
            targets_BT.scatter_(1, place_B1 - 2, columns[-1])  # said on reading the token before the answer
    return targets_BT
