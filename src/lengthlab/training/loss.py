"""What a model is blamed for: cross-entropy at the answers of the questions that count, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.models.model import speak
from lengthlab.training.feed import Lesson


def answer_loss(network: nn.Module, lesson: Lesson, asks: Sequence[str]) -> Tensor:
    """Mean over the samples and over the questions asked."""
    at_BQ, say_BQ = lesson.asked(asks)
    logits_BQV = speak(network, lesson.tokens_BT, at_BQ)
    return F.cross_entropy(logits_BQV.flatten(0, 1).float(), say_BQ.flatten())
