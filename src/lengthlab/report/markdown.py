"""What every table in Markdown is made of."""

from __future__ import annotations

from lengthlab.paper.cells import GREEN


def table_row(*cells: str) -> str:
    """
    >>> table_row("n=5", "0.99")
    '| n=5 | 0.99 |'
    """
    return f"| {' | '.join(cells)} |"


def accuracy_mark(accuracy: float, digits: int) -> str:
    """Bold where the paper's figure is green.

    >>> accuracy_mark(0.964, 2), accuracy_mark(0.9, 3)
    ('**0.96**', '0.900')
    """
    return f"**{accuracy:.{digits}f}**" if accuracy > GREEN else f"{accuracy:.{digits}f}"
