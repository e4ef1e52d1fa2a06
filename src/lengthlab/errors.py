"""What goes wrong in a way the user can mend: always one line that says what, where and what to do."""

import errno
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from math import inf, isfinite
from numbers import Real
from pathlib import Path
from traceback import walk_tb

LIBRARIES = tuple({str(Path(__file__).parent), *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))})
"""Where code lies that no user wrote."""
KEPT = "what was kept before is whole, and the same command goes on from there"
WAYS_OUT = {
    errno.EISDIR: "a file is wanted there, not a folder",
    errno.ENOTDIR: "a file is in the way of a folder",
    errno.EEXIST: "a file is in the way of a folder",
    errno.ELOOP: "it is a link that leads to itself",
    errno.ENAMETOOLONG: "give it a shorter name",
    errno.ENOENT: "",
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "name another place, or ask for the right to this one"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), f"make room; {KEPT}"),
}
"""What to do about an error of the disk's; about any other, the same again."""
LARGEST = 2**53
"""Whole numbers that every reader of JSON can hold."""

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


def cut(text: str, most: int = 100) -> str:
    """A text in one line that is not too long.

    >>> cut("a  long one", 6)
    'a long …'
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most].rstrip()} …"


def a_kind(value: object) -> str:
    """What something is, in a sentence.

    >>> a_kind(5), a_kind("five"), a_kind(None)
    ('an int', 'a str', 'None')
    """
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def require(holds: bool, text: str) -> None:
    """Raise `LabError(text)` unless `holds`.

    >>> require(3 > 2, "never shown")
    """
    if not holds:
        raise LabError(text)


def require_whole(value: object, name: str, least: int, most: int = LARGEST) -> None:
    """Refuse what is no whole number, or one out of range.

    >>> require_whole(0, "model.blocks", 1, 1000)
    Traceback (most recent call last):
    lengthlab.errors.LabError: model.blocks must be at least 1, not 0
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole, f"{name} must be a whole number, not {cut(repr(value))}")
    assert isinstance(value, int)
    require(value >= least, f"{name} must be at least {least}, not {value}")
    require(value <= most, f"{name} must be at most {most:,}, not {cut(str(value))}")


def require_number(
    value: object, name: str, *, above: float = -inf, least: float = -inf, below: float = inf, most: float = inf
) -> None:
    """Refuse what is no finite number, or one out of range.

    >>> require_number("fast", "schedule.lr", least=0)
    Traceback (most recent call last):
    lengthlab.errors.LabError: schedule.lr must be a number, not 'fast'
    """
    number = isinstance(value, Real) and not isinstance(value, bool)
    require(number, f"{name} must be a number, not {cut(repr(value))}")
    try:
        exact = float(value)  # type: ignore[arg-type]
    except OverflowError:  # a whole number of hundreds of digits
        exact = inf
    ends = (("above", above), ("at least", least), ("less than", below), ("at most", most))
    words = " and ".join(f"{word} {end:g}" for word, end in ends if isfinite(end))
    fits = isfinite(exact) and least <= exact <= most and above < exact < below
    require(fits, f"{name} must be {'finite and ' if exact == inf else ''}{words}, not {cut(str(value))}")


def require_names(value: object, name: str) -> None:
    """Refuse what is no list of names; a text alone would be one of letters.

    >>> require_names("attention", "off")
    Traceback (most recent call last):
    lengthlab.errors.LabError: off must be a list of names, like ['attention'], not 'attention'
    """
    listed = isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)
    example = value if isinstance(value, str) else "modulo"
    require(listed, f"{name} must be a list of names, like ['{example}'], not {cut(repr(value))}")


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
    """Any error as one line for the user, with the line of the user's own file that it comes from, where there is one.

    >>> explain(ValueError("too long")), explain(IsADirectoryError(21, "Is a directory", "plan.toml"))
    ('ValueError: too long', 'plan.toml: Is a directory; a file is wanted there, not a folder')
    """
    if isinstance(error, LabError):
        return str(error)
    if isinstance(error, SystemExit):
        code = "" if error.code is None else repr(error.code)
        return f"sys.exit({code}) is called{place_of(error)}: raise an error instead that says what is wrong"
    if isinstance(error, OSError) and error.errno is not None:
        return f"{error.filename or 'the store'}: {reason(error)}{place_of(error)}"
    return f"{type(error).__name__}: {cut(str(error), 400) or 'no text'}{place_of(error)}"


def reason(error: OSError) -> str:
    """What the disk has against it, and what to do.

    >>> reason(OSError(errno.ENOTDIR, "Not a directory"))
    'Not a directory; a file is in the way of a folder'
    """
    return "; ".join(filter(None, (error.strerror or str(error), WAYS_OUT.get(error.errno or 0, KEPT))))


def place_of(error: BaseException) -> str:
    """The innermost line of the trace that is neither ours nor a library's, in brackets; empty where there is none."""
    lines = [(frame.f_code.co_filename, number) for frame, number in walk_tb(error.__traceback__)]
    own = [f" ({Path(file).name}, line {number})" for file, number in lines if not file.startswith((*LIBRARIES, "<"))]
    return own[-1] if own else ""


@contextmanager
def refuse_exit() -> Iterator[None]:
    """Around what users wrote: `sys.exit` in it is an error like any other, and does not end this program as if all were well.

    >>> with refuse_exit():
    ...     raise SystemExit(0)
    Traceback (most recent call last):
    lengthlab.errors.LabError: sys.exit(0) is called: raise an error instead that says what is wrong
    """
    try:
        yield
    except SystemExit as error:
        raise LabError(explain(error)) from error
