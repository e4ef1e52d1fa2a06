"""What every table in Markdown is made of."""

from __future__ import annotations


def table_row(*cells: str) -> str:
    """
    >>> table_row("n=5", "0.99")
    '| n=5 | 0.99 |'
    """
    return f"| {' | '.join(cells)} |"
