"""Whether the weights that a run begins with are those that the model's own constructor gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.inspection.subject import TASK, Subject
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import end_to_end


@dataclass(frozen=True)
class _Made:
    """A user's maker as a run's model."""

    name: str
    subject: Subject

    def build(self, vocabulary: int) -> nn.Module:
        return self.subject.make()


def compare_weights(subject: Subject, network: nn.Module, before: Mapping[str, Tensor]) -> tuple[bool, str]:
    """Whether they are the same, and what was seen. `before` are those of a network that has been read with since.

    >>> from lengthlab.inspection.subject import find_subject
    >>> subject = find_subject("lstm")
    >>> compare_weights(subject, network := subject.network(), dict(network.named_parameters()))
    (True, 'bit for bit as a run builds it')
    """
    built = _through_a_run(subject, seed=1)
    own, others = (subject.network(seed).state_dict() for seed in (1, 2))
    for name in _differing(built, own):
        return False, f"'{name}' is not what its own constructor gives under the same seed"
    for name in _differing(dict(network.named_parameters()), before):
        return False, f"reading changes '{name}'"
    seeded = next(_differing(own, others), None) is not None
    return True, "bit for bit as a run builds it" + ("" if seeded else "; every seed gives the same weights")


def _through_a_run(subject: Subject, seed: int) -> dict[str, Any]:
    """As `lengthlab train` builds it: a model of ours from the run's file."""
    run = Run(TASK, subject.model or _Made(subject.name, subject), end_to_end(1), seed=seed)
    return dict((Run.from_json(run.to_json()) if subject.model else run).network().state_dict())


def _differing(one: Mapping[str, Any], two: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(one.keys() | two.keys()):
        if name not in one or name not in two or not torch.equal(one[name], two[name]):
            yield name
