"""The languages of Huang et al.'s formal suite (arXiv 2410.02140) that have a name; language.py says what is asked."""

from __future__ import annotations

from lengthlab.tasks.automaton import Automaton
from lengthlab.tasks.language import Language, dyck, repeated


def tomita_1() -> Language:
    """1*: no zero."""
    return _tomita(1, moves=((-1, 0),), accepting=(0,))


def tomita_2() -> Language:
    """(10)*."""
    return _tomita(2, moves=((-1, 1), (0, -1)), accepting=(0,))


def tomita_3() -> Language:
    """No odd number of zeros in a row right after an odd number of ones in a row.

    >>> tomita_3().automaton.after("100")  # after one zero there has to be another, and the string may not end
    ('{01$}', '{0}', '{01$}')
    """
    return _tomita(3, moves=((0, 1), (2, 0), (3, -1), (2, 1)), accepting=(0, 1, 3))


def tomita_4() -> Language:
    """Not 000."""
    return _tomita(4, moves=((1, 0), (2, 0), (-1, 0)), accepting=(0, 1, 2))


def tomita_5() -> Language:
    """An even number of zeros and an even number of ones."""
    return _tomita(5, moves=((1, 2), (0, 3), (3, 0), (2, 1)), accepting=(0,))


def tomita_6() -> Language:
    """As many zeros as ones, modulo 3."""
    return _tomita(6, moves=((1, 2), (2, 0), (0, 1)), accepting=(0,))


def tomita_7() -> Language:
    """0*1*0*1*."""
    return _tomita(7, moves=((0, 1), (2, 1), (2, 3), (-1, 3)), accepting=(0, 1, 2, 3))


def d2() -> Language:
    """(a(ab)*b)*: brackets that are nested to a depth of 2."""
    return dyck(2)


def d3() -> Language:
    """Brackets that are nested to a depth of 3."""
    return dyck(3)


def d4() -> Language:
    """Brackets that are nested to a depth of 4."""
    return dyck(4)


def d12() -> Language:
    """Brackets that are nested to a depth of 12."""
    return dyck(12)


def aa() -> Language:
    """An even number of a."""
    return repeated("aa")


def aaaa() -> Language:
    """A multiple of four a."""
    return repeated("aaaa")


def abab() -> Language:
    """abab again and again."""
    return repeated("abab")


def _tomita(number: int, moves: tuple[tuple[int, int], ...], accepting: tuple[int, ...]) -> Language:
    return Language(Automaton(("0", "1"), moves, accepting), f"tomita-{number}")
