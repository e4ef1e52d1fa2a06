"""What goes wrong in a way the user can mend: always one line that says what, where and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches
from textwrap import shorten

TRACE = "LENGTHLAB_TRACE"
"""With this in the environment, an error that nobody foresaw is shown with its stack trace."""


class LabError(Exception):
    """Bad input or a broken file. Its text is shown to the user as it is, without a stack trace.

    >>> raise LabError("task.modulus must be at least 2, not 0")
    Traceback (most recent call last):
    lengthlab.errors.LabError: task.modulus must be at least 2, not 0
    """


class RunFailed(LabError):
    """One run cannot go on (its loss is not finite, say); other runs can."""


def require(holds: bool, text: str) -> None:
    """Raise `LabError(text)` unless `holds`.

    >>> require(3 > 2, "never shown")
    """
    if not holds:
        raise LabError(text)


def nearest(word: str, words: Iterable[str]) -> str:
    """A "did you mean" for an unknown name, or the list of what there is.

    >>> nearest("modullus", ["modulus", "values"])
    "did you mean 'modulus'?"
    >>> nearest("xyz", ["modulus", "values"])
    'there is: modulus, values'
    """
    known = sorted(words)
    close = get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else f"there is: {', '.join(known)}"


def explain(error: BaseException) -> str:
    """Any error as one line for the user.

    >>> explain(ValueError("too long"))
    'ValueError: too long'
    """
    if isinstance(error, LabError):
        return str(error)
    if isinstance(error, OSError):
        what = f"{error.filename or 'the store'}: {error.strerror or error}"
        return f"{what}; what was kept before is whole, and the same command goes on from there"
    return f"{type(error).__name__}: {shorten(str(error), 400, placeholder=' …') or 'no text'}"
