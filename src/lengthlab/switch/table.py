"""A delay as lines of text: where it is, how much it holds, and what stands in for it."""

from __future__ import annotations

from collections.abc import Sequence

from lengthlab.switch.sites import Site
from lengthlab.switch.stand_in import StandIn


def status(is_open: bool, opened_at: int | None, until: object) -> str:
    """
    >>> status(False, None, 2_000), status(True, 2_000, 2_000)
    ('closed until step 2000', 'open since step 2000')
    """
    if is_open:
        return "open" if opened_at is None else f"open since step {opened_at}"
    return "closed" + (f" until step {until}" if isinstance(until, int) else " until a metric says so" if until else "")


def table(sites: Sequence[Site]) -> list[str]:
    rows = [("module", "parameters", "while off")]
    for site in sites:
        shared = f"; shared with other parts, where they learn on: {', '.join(site.shared)}" if site.shared else ""
        instead = str(site.stand_in) if isinstance(site.stand_in, StandIn) else getattr(site.stand_in, "__name__", "own")
        rows.append((site.name, f"{sum(each.numel() for each in site.parameters()):,}", instead + shared))
    wide = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return [f"  {name:<{wide[0]}}  {count:>{wide[1]}}  {instead}" for name, count, instead in rows]
