"""What a check comes to: a property, whether it holds, and what was seen of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["holds", "does not hold", "not checked"]
Seen = tuple[bool, str]
"""Whether it holds, and the evidence."""


@dataclass(frozen=True)
class Check:
    """One property, and what was seen of it."""

    what: str
    verdict: Verdict
    evidence: str


def judged(what: str, seen: Seen) -> Check:
    """
    >>> judged("is causal", (True, "24 later tokens changed, no earlier output did")).verdict
    'holds'
    """
    return Check(what, "holds" if seen[0] else "does not hold", seen[1])
