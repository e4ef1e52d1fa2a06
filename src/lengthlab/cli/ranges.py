"""What the commands on rules are told: lengths from here to there, and forms by their names here and in the papers."""

from __future__ import annotations

import click

ALSO = {"rule": "trace"}
"""What the papers call the form that recites the rule."""
FORMS = ["direct", "scratchpad", "trace", *ALSO]


class Range(click.ParamType):  # type: ignore[type-arg]  # older click cannot be subscripted
    """`1-5`, or one length"""

    name = "lengths"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        ends = str(value).split("-")
        if len(ends) > 2 or not all(end.isdecimal() and end.isascii() and len(end) < 10 for end in ends):
            self.fail(f"'{value}': write lengths as 1-5, or as one whole number", param, ctx)
        shortest, longest = int(ends[0]), int(ends[-1])
        if not 1 <= shortest <= longest:
            self.fail(f"'{value}': the shortest length comes first, and is at least 1: 1-5", param, ctx)
        return shortest, longest
