"""Do the claims of a study hold in what was measured?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt

from lengthlab.experiments.study import Arm, At, Check, Claim
from lengthlab.report.scores import MISSING

HOLDS, FAILS = "holds", "does not hold"
SIGNS = {"<": lt, "≤": le, "≥": ge, ">": gt}
Measured = Callable[[Arm, str, int], float | None]
"""The accuracy of an arm in a question at a length, where there are rows."""


@dataclass(frozen=True)
class Finding:
    """What became of a claim. `against` are the checks that failed, `unknown` those for which there are no rows."""

    claim: Claim
    against: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """More failed checks than it allows are enough against a claim; else a check that could not be made leaves it open."""
        return FAILS if len(self.against) > self.claim.exceptions else MISSING if self.unknown else HOLDS

    @property
    def evidence(self) -> str:
        total = len(self.claim.checks)
        made = total - len(self.unknown)
        words = [f"{made - len(self.against)} of {made} checks hold"] if made else []
        if self.against:
            words.append(f"not {_some(self.against)}")
        if self.unknown:
            words.append(f"{len(self.unknown)} of {total} checks have no rows")
        return "; ".join(words)


def _some(words: Sequence[str], most: int = 5) -> str:
    rest = [f"{len(words) - most} more"] if len(words) > most else []
    return ", ".join([*words[:most], *rest])


def judge(claim: Claim, measured: Measured) -> Finding:
    """What these accuracies say of a claim.

    >>> arm = Arm("delayed", "sandwich", "modulo-recall", "delayed")
    >>> claim = Claim("It reaches far.", "above 0.90 at n = 75", (Check(arm, 75, ">", 0.9),))
    >>> finding = judge(claim, lambda arm, question, length: 0.875)
    >>> finding.verdict, finding.evidence
    ('does not hold', '0 of 1 checks hold; not delayed (0.875 at n=75)')
    """
    against, unknown = [], []
    for check in claim.checks:
        ours, bound = measured(check.arm, check.question, check.length), _bound(check, measured)
        if ours is None or bound is None:
            unknown.append(str(check))
        elif not SIGNS[check.sign](ours, bound):
            other = f", {bound:.3f} beside it" if isinstance(check.bound, At) and check.bound.arm else ""
            against.append(f"{check.arm} ({ours:.3f} at n={check.length}{other})")
    return Finding(claim, tuple(against), tuple(unknown))


def _bound(check: Check, measured: Measured) -> float | None:
    if not isinstance(check.bound, At):
        return check.bound
    return measured(check.bound.arm or check.arm, check.question, check.bound.length or check.length)
