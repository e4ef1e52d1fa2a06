"""Do the paper's claims hold in our rows?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt

from lengthlab.paper.cells import Cell
from lengthlab.paper.claims import CLAIMS, At, Check, Claim
from lengthlab.report.comparison import MISSING, Line

HOLDS, FAILS = "holds", "does not hold"
SIGNS = {"<": lt, "≤": le, "≥": ge, ">": gt}


@dataclass(frozen=True)
class Finding:
    """What became of a claim. `against` are the checks that failed, `unknown` those for which there are no rows."""

    claim: Claim
    against: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """One failed check is enough against a claim; without one, a check that could not be made leaves it open."""
        return FAILS if self.against else MISSING if self.unknown else HOLDS

    @property
    def evidence(self) -> str:
        """
        >>> judge([])[0].evidence
        '30 of 30 checks have no rows'
        """
        total = len(self.claim.checks)
        made = total - len(self.unknown)
        said = [f"{made - len(self.against)} of {made} checks hold"] if made else []
        if self.against:
            said.append(f"not {_some(self.against)}")
        if self.unknown:
            said.append(f"{len(self.unknown)} of {total} checks have no rows")
        return "; ".join(said)


def _some(words: Sequence[str], most: int = 5) -> str:
    rest = [f"{len(words) - most} more"] if len(words) > most else []
    return ", ".join([*words[:most], *rest])


def judge(lines: Sequence[Line], claims: Sequence[Claim] = CLAIMS) -> list[Finding]:
    """A finding for each claim, by the means over seeds."""
    by_cell = {line.cell: line for line in lines}
    return [_finding(claim, by_cell) for claim in claims]


def _finding(claim: Claim, by_cell: dict[Cell, Line]) -> Finding:
    against, unknown = [], []
    for check in claim.checks:
        ours, bound = _ours(check, by_cell, check.length), check.bound
        limit = _ours(check, by_cell, bound.length) if isinstance(bound, At) else bound
        if ours is None or limit is None:
            unknown.append(str(check))
        elif not SIGNS[check.sign](ours, limit):
            against.append(f"{check.cell.label} ({ours:.3f} at n={check.length})")
    return Finding(claim, tuple(against), tuple(unknown))


def _ours(check: Check, by_cell: dict[Cell, Line], length: int) -> float | None:
    line = by_cell.get(check.cell)
    return line.at(length).ours if line else None
