"""What a model is blamed for: cross-entropy at the answers of the questions that count, and nowhere else.

Shapes: B samples, T tokens, Q questions asked, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.models.model import speak
from lengthlab.tasks import Batch


def answer_loss(network: nn.Module, batch: Batch, asks: Sequence[str]) -> Tensor:
    """Mean over the samples and over the questions asked."""
    answers = [batch.answers[question] for question in asks]
    at_BQ = torch.stack([answer.position_B for answer in answers], dim=1)
    say_BQ = torch.stack([answer.token_B for answer in answers], dim=1)
    # The last token is only ever an answer, so the model need not read it.
    logits_BQV = speak(network, batch.tokens_BT[:, :-1], at_BQ)
    return F.cross_entropy(logits_BQV.flatten(0, 1), say_BQ.flatten())
