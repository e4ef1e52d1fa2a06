"""What theory promises for a task: the verdict, its program, tried just now, and what follows from it and what does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from lengthlab.theory.lemmas import KNOWN, Known
from lengthlab.theory.primitives import Expression, Periodic, Positions
from lengthlab.theory.program import Program
from lengthlab.theory.text import shown
from lengthlab.theory.trial import Trial, try_drawn, try_every
from lengthlab.theory.verdict import Verdict, own_program, verdict

if TYPE_CHECKING:
    from lengthlab.tasks import Task

LINES = 60
"""Of a program that are shown."""
OWN = Known("yes", "")
"""A task with a program of its own: shown and tried as it is."""


@dataclass(frozen=True)
class Guarantee:
    """All that `lengthlab guarantee` tells of a task."""

    verdict: Verdict
    lines: tuple[str, ...] = ()
    """Of the program."""
    shown_with: str = ""
    """Parameters with which it is shown, where they are not the task's: `alphabet = 2`."""
    listed: Trial | None = None
    """On every short input."""
    listed_with: str = ""
    """Parameters with which they are listed, where they are not the task's."""
    drawn: Trial | None = None
    """On inputs that the task draws."""
    follows: tuple[str, ...] = ()
    does_not: tuple[str, ...] = ()

    @property
    def wrong(self) -> str | None:
        """The first input that the program gets wrong, in a sentence."""
        return next((trial.wrong for trial in (self.listed, self.drawn) if trial is not None and trial.wrong), None)


def guarantee(task: Task) -> Guarantee:
    """Look a task up, and try its program if there is one.

    >>> from lengthlab.tasks import ModuloRecall
    >>> guarantee(ModuloRecall()).does_not
    ('That there is none: that takes a proof.',)
    """
    found = verdict(task)
    if found.program is None:
        return Guarantee(found, follows=_promise(found), does_not=_limits(found, task.longest))
    known = KNOWN.get(found.task, OWN) if own_program(task) is None else OWN
    listed, short = _made_with(task, known.listed), _made_with(task, known.shown)
    prompts = partial(known.prompts, listed) if known.prompts else getattr(task, "prompts", None)
    return Guarantee(
        found,
        lines=_first(shown(verdict(short).program or found.program)),
        shown_with=_differences(task, short),
        listed=try_every(verdict(listed).program or found.program, listed, prompts) if prompts else None,
        listed_with=_differences(task, listed),
        drawn=try_drawn(found.program, task),
        follows=_promise(found),
        does_not=_limits(found, task.longest),
    )


def _made_with(task: Task, parameters: Mapping[str, object]) -> Task:
    made: Any = task
    return cast("Task", replace(made, **parameters)) if parameters else task


def _differences(task: Task, other: Task) -> str:
    """Parameters of another that are not the task's."""
    return ", ".join(f"{name} = {value}" for name, value in vars(other).items() if getattr(task, name) != value)


def _first(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - LINES
    return (*lines[:LINES], f"… {more} lines more") if more > 0 else tuple(lines)


def uses_positions(program: Program) -> bool:
    """Whether it counts over a bounded distance or looks at the position itself.

    >>> from lengthlab.theory.primitives import back, count, token
    >>> uses_positions(Program({"a": count(token("a")) > 2})), uses_positions(Program({"a": back(token("a"))}))
    (False, True)
    """
    roots = [*(line.value for line in program.lines), *program.says.values()]
    return any(map(_positional, roots))


def _positional(expression: Expression) -> bool:
    local = isinstance(expression, Positions) and expression.within is not None
    return local or isinstance(expression, Periodic) or any(map(_positional, expression.made_of))


def _promise(found: Verdict) -> tuple[str, ...]:
    if found.in_class == "no":
        return ("Nothing: no program of this class does the task, so the theorem is silent.",)
    if found.program is None:
        return ("Nothing yet: write a program for it, and have it tried here (docs/theory.md, Your own program).",)
    return (
        "Idealized training reaches every length: a transformer with absolute positions that sees all inputs up to length N,"
        " and is the exact minimizer of a regularized loss on them, is right on longer ones once N is large enough (the"
        " theorem of Huang et al., arXiv 2410.02140).",
    )


def _limits(found: Verdict, longest: int | None) -> tuple[str, ...]:
    if found.in_class == "no":
        return (
            "That training fails: that is an observation of the papers, not a theorem.",
            "Anything about recurrences, hybrids, or position ids of the task's own (position coupling).",
        )
    if found.program is None:
        return ("That there is none: that takes a proof.",)
    nope = "it has local counts or periodic positions" if uses_positions(found.program) else "this one does"
    bound = f"Every length ends at {longest} here: the alphabet is fixed, and the task reaches no further with it."
    return (
        "How large N is, or that training with finite data and steps gets there.",
        f"Rotary positions: there it is an observation. No positions: the program must do without them, and {nope}.",
        *([bound] if longest else []),
    )
