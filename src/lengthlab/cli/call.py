"""How a command was called: what the user typed."""

from __future__ import annotations

import shlex
import sys

PLACES = ("--store", "--out", "--page")


def typed() -> str:
    """What the user typed, for provenance; where files were put on that machine is of no use to a reader."""
    words: list[str] = []
    for word, before in zip(sys.argv[1:], ["", *sys.argv[1:]], strict=False):
        if before not in PLACES and word.split("=")[0] not in PLACES:
            words.append(word)
    return shlex.join(["lengthlab", *words])
