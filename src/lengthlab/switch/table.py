"""A delay as lines of text: where it is, how much it holds, and what stands in for it."""

from __future__ import annotations

from collections.abc import Sequence

from lengthlab.switch.sites import Site
from lengthlab.switch.stand_in import StandIn


def table(sites: Sequence[Site]) -> list[str]:
    rows = [("module", "parameters", "while off")]
    for site in sites:
        shared = f"; shared with other parts, where they learn on: {', '.join(site.shared)}" if site.shared else ""
        instead = str(site.stand_in) if isinstance(site.stand_in, StandIn) else getattr(site.stand_in, "__name__", "own")
        rows.append((site.name, f"{sum(each.numel() for each in site.parameters()):,}", instead + shared))
    wide = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return [f"  {name:<{wide[0]}}  {count:>{wide[1]}}  {instead}" for name, count, instead in rows]
