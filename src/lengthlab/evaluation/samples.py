"""On how many samples accuracy at a length is counted: fewer where a sample has very many tokens."""

from __future__ import annotations

from dataclasses import dataclass

from lengthlab.errors import require_whole
from lengthlab.tasks import Task


@dataclass(frozen=True)
class Samples:
    """`most` up to `long` tokens a sample. Beyond, as many as have `tokens` in all, at least `least`; of samples that have more
    than `tokens` each, fewer still, so that all of a length never have more than `least` times `tokens`.

    >>> [USUAL.of(tokens) for tokens in (2**14, 2**16, 2**20, 2**22, 2**24, 2**26)]
    [1000, 64, 20, 20, 5, 1]
    """

    most: int = 1000
    long: int = 2**14
    tokens: int = 2**22
    least: int = 20

    def __post_init__(self) -> None:
        for name in ("most", "long", "tokens", "least"):
            require_whole(getattr(self, name), name, 1)

    def of(self, tokens: int) -> int:
        """Samples of so many tokens each."""
        if tokens <= self.long:
            return self.most
        few = max(1, min(self.least, self.least * self.tokens // tokens))
        return min(self.most, max(self.tokens // tokens, few))

    def at(self, task: Task, length: int) -> int:
        """Of a length; where a task does not know how many tokens that is, it counts as so many."""
        return self.of(task.tokens(length) or length)


USUAL = Samples()
"""What everything is measured on, unless a user says how many."""


def samples_at(samples: int | Samples, task: Task, length: int) -> int:
    """
    >>> from lengthlab.tasks import Passkey
    >>> samples_at(USUAL, Passkey(), 2**20), samples_at(7, Passkey(), 2**20)
    (20, 7)
    """
    return samples.at(task, length) if isinstance(samples, Samples) else samples
