"""What the studies of long memory train: recurrences with hierarchical sparse attention, attention, recurrences alone.
No torch.

Where no source is given, numbers are those of a trial with other code: an LSTM with hierarchical sparse attention, batches of
65,536 tokens, AdamW at 1e-3 with clipped gradients, the last fifth of the steps at a tenth.
Needles and variable tracking have shorter sequences and fewer tokens. Landmarks are means and weights over chunks a softmax:
what else was tried stands in `passkey`, `needles` and `variable_tracking`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lengthlab.experiments.study import Arm

if TYPE_CHECKING:
    from lengthlab.models import Model, Part
    from lengthlab.spec.run import Run
    from lengthlab.tasks import Task

RECURRENCES = (
    "lstm",
    "gru",
    "rnn",
    "slstm",
    "mlstm",
    "mamba2",
    "gated-deltanet",
    "negative gated-deltanet",
    "deltaproduct",
    "bilinear",
)
"""By the name under which they are registered, but for the one whose eigenvalues may be negative."""
WITH_MEMORY = ("lstm", "mamba2")
"""Recurrences that are tried with hierarchical sparse attention."""
ATTENTION = {"rope": ("rope", "none"), "log-n": ("none", "log-n")}
"""Positions and scores of transformers."""


@dataclass(frozen=True)
class Recipe:
    """`blocks` of attention, hierarchical or not; a query of the hierarchical one reads `chunks` of `chunk` tokens, and the
    last `window` tokens, two chunks if not said; a chunk has `overlap` tokens in common with the one before it. A
    transformer has one block more: nothing before it tells a token which one is beside it.
    """

    width: int
    heads: int
    chunk: int
    chunks: int
    batch: int
    steps: int
    lr: float = 1e-3
    blocks: int = 1
    window: int | None = None
    overlap: int = 0

    def model(self, name: str) -> Model:
        """Of an arm's name: `lstm + hsa`, `attention, rope`, `gru`."""
        from lengthlab.models import lstm, lstm_hsa, transformer

        kind, _, way = name.partition(", ")
        if kind == "attention":
            positions, scores = ATTENTION[way]
            return transformer(self.width, blocks=self.blocks + 1, heads=self.heads, positions=positions, scores=scores)
        if not name.endswith(" + hsa"):
            return lstm(self.width, recurrence=recurrence_named(name))
        recurrence = recurrence_named(name.removesuffix(" + hsa"))
        return lstm_hsa(
            self.width,
            recurrence,
            self.blocks,
            self.heads,
            chunk=self.chunk,
            chunks=self.chunks,
            window=self.window,
            weights="softmax",
            encoder=0,
            overlap=self.overlap,
        )

    def run(self, name: str, task: Task, lengths: tuple[int, int]) -> Run:
        """The last fifth of the steps at a tenth of the rate."""
        from lengthlab.spec.optimizer import AdamW
        from lengthlab.spec.run import Run
        from lengthlab.spec.schedule import end_to_end

        last = self.steps // 5
        schedule = end_to_end(self.steps - last, last, self.lr)
        return Run(task, self.model(name), schedule, lengths, self.batch, optimizer=AdamW(clip=1.0))


def recurrence_named(name: str) -> Part:
    """One of RECURRENCES as a part."""
    from lengthlab.models import GatedDeltanet, Part
    from lengthlab.registry import chosen

    if name.startswith("negative "):
        return GatedDeltanet(negative_eigenvalues=True)
    part: Part = chosen(Part, name)
    return part


def memory_arm(name: str, task: str) -> Arm:
    """
    >>> memory_arm("mamba2 + hsa", "passkey").model, memory_arm("negative gated-deltanet", "passkey").model
    ('lstm-hsa', 'gated-deltanet')
    """
    model = "transformer" if name.startswith("attention") else name.removeprefix("negative ")
    return Arm(name, "lstm-hsa" if name.endswith(" + hsa") else model, task, "end-to-end")


def memory_arms(task: str) -> tuple[Arm, ...]:
    """Recurrences with hierarchical sparse attention."""
    return tuple(memory_arm(f"{recurrence} + hsa", task) for recurrence in WITH_MEMORY)


def attention_arms(task: str) -> tuple[Arm, ...]:
    """Attention that reads everything: what it takes grows with the square of the length."""
    return tuple(memory_arm(f"attention, {way}", task) for way in ATTENTION)


def alone_arms(task: str) -> tuple[Arm, ...]:
    """The recurrences of `memory_arms`, without any attention."""
    return tuple(memory_arm(recurrence, task) for recurrence in WITH_MEMORY)
