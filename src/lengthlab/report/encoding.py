"""Texts for a terminal that has not all letters: signs and rules get an equal that every encoding has."""

from __future__ import annotations

import codecs
from typing import TextIO

EQUALS = {
    **{"…": "...", "–": "-", "—": "-", "×": "x", "±": "+-", "≥": ">=", "≤": "<=", "≠": "!=", "·": ".", "∘": "o", "•": "*"},
    **{"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "→": "->", "←": "<-", "✓": "ok", "✗": "x", "−": "-", "†": "+"},
    **dict(zip("▁▂▃▄▅▆▇█▲", "_.-:=+*#^", strict=True)),
    **dict.fromkeys("─━═╌╍┄┅", "-"),
    **dict.fromkeys("│┃║", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰╷╵╴╶╸╺", "+"),
}
HANDLER = "lengthlab-equals"


def spelled(text: str, encoding: str) -> str:
    """What such an encoding can say of a text.

    >>> spelled("n ≥ 25…", "ascii"), spelled("n ≥ 25…", "utf-8")
    ('n >= 25...', 'n ≥ 25…')
    """
    return text.encode(encoding, HANDLER).decode(encoding)


def spell(stream: TextIO) -> None:
    """Let a stream write what its encoding lacks in letters that it has, instead of failing in the middle of a table."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure and not (stream.encoding or "").lower().startswith("utf"):
        reconfigure(errors=HANDLER)


def _equals(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(EQUALS.get(letter) or ascii(letter)[1:-1] for letter in lacking), error.end


codecs.register_error(HANDLER, _equals)
