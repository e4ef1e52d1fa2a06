"""Whether a task is in C-RASP[pos]: the column of every table of these experiments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import getattr_static
from typing import TYPE_CHECKING

from lengthlab.errors import LabError, a_kind
from lengthlab.registry import is_ours
from lengthlab.theory.lemmas import KNOWN, InClass, kind_of
from lengthlab.theory.program import Program

if TYPE_CHECKING:
    from lengthlab.tasks import Task

OWN = "by a program of the task's own"
NOBODY = "nobody has looked at it here, so that no program is known and no proof that there is none"

COUPLED = "the papers speak of positions 0, 1, 2, …, and not of ids that a task brings along"


@dataclass(frozen=True)
class Verdict:
    """What is known of a task.

    >>> from lengthlab.tasks import LastLeft, UniqueRight
    >>> str(verdict(LastLeft())), verdict(UniqueRight()).citation
    ('not promised', 'Lemma 4 (Born a Transformer, arXiv 2505.21785)')
    """

    task: str
    in_class: InClass
    citation: str
    reason: str = ""
    write: Callable[[], Program] | None = None
    """Writes the program; with a large alphabet that takes a moment, and a table does not need it."""

    @cached_property
    def program(self) -> Program | None:
        """The program that shows it."""
        return self.write() if self.write else None

    def __str__(self) -> str:
        """As it stands in a table."""
        return {"yes": "promised", "no": "not promised", "unknown": "unknown"}[self.in_class]


def verdict(task: Task) -> Verdict:
    """Of a task of ours, what the lemmas say; of a user's, that it is in the class if it has a program (`guarantee` tries it).

    >>> from lengthlab.tasks import ModuloRecall
    >>> verdict(ModuloRecall()).in_class, str(verdict(ModuloRecall()))
    ('unknown', 'unknown')
    """
    own = own_program(task)
    if own is not None:
        return Verdict(task.name, "yes", OWN, write=lambda: own)
    kind = kind_of(task) if is_ours(type(task)) else ""
    if kind not in KNOWN:
        return Verdict(kind or task.name, "unknown", COUPLED if "coupled" in kind.split() else NOBODY)
    known = KNOWN[kind]
    return Verdict(kind, known.in_class, known.citation, known.reason, partial(known.program, task) if known.program else None)


def own_program(task: Task) -> Program | None:
    """The program that a task brings along as its property `program`; None if it has none."""
    if getattr_static(task, "program", None) is None:  # a slip inside the property is not taken for none
        return None
    program: object = task.program  # type: ignore[attr-defined]  # users' tasks may have one, ours have not
    if callable(program):
        raise LabError(f"task '{task.name}': 'program' is a method, and has to be a property: put @property before it")
    if not isinstance(program, Program):
        raise LabError(f"task '{task.name}': 'program' is {a_kind(program)}, and has to be a lengthlab.theory.Program")
    return program
