"""What a command line call came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def said(self) -> list[str]:
        """What the command said of itself; lines of progress are not that."""
        return [line for line in self.err.splitlines() if line.startswith("lengthlab: ")]

    def refused(self, *words: str) -> None:
        """One line with these words in it, exit code 2, no stack trace, no table."""
        assert (self.code, self.out) == (2, ""), self.err
        assert len(self.said) == 1, self.err
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.said[0]


Call = Callable[..., Done]
