"""Whether a task says what it means: in full for `lengthlab check`, and the quick part before a task of a user's is trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from lengthlab.errors import LabError, explain
from lengthlab.inspection.chance import compare_chance
from lengthlab.inspection.draws import Draws, tokens_of
from lengthlab.inspection.task_trials import LONGER, NAMES, QUICK, SHAPES, TRIALS, TaskTrial
from lengthlab.inspection.verdict import Check, judged
from lengthlab.memory import TOKEN_BYTES, require_memory
from lengthlab.registry import is_ours
from lengthlab.spec import content
from lengthlab.spec.source import Sources
from lengthlab.tasks import Mixture, Task

LENGTHS = (1, 2, 3, 5, 10, 25)
EACH = 50
"""Samples of a length."""
GUESSED = 4000
"""Samples on which a blind guess is chosen and counted, half of them each."""
ERRORS = 3.5
"""Standard errors: once in 2,000 comparisons, what is stated rightly is taken for wrong."""
QUICK_EACH, QUICK_GUESSED, QUICK_ERRORS, QUICK_APART = 4, 400, 5.0, 0.1
"""Before training: fewer samples, and nobody is sent away for a chance that is a little off."""
TOKENS = 2**23
"""That are drawn at once."""
CHANCE = "is guessed as often as it states"
KEPT = "can be kept by a run"


@dataclass(frozen=True)
class TaskReport:
    """All checks of a task."""

    task: str
    lengths: tuple[int, ...]
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing that was checked fails."""
        return all(check.verdict != "does not hold" for check in self.checks)


def check_task(task: Task, name: str = "", longest: int | None = None) -> TaskReport:
    """Try everything, at lengths up to `longest` or a usual one.

    >>> from lengthlab.tasks import ModuloRecall
    >>> report = check_task(ModuloRecall(keys=32))
    >>> report.lengths, {each.verdict for each in report.checks}
    ((1, 2, 3, 5, 10, 25), {'holds'})
    """
    lengths = _lengths(task, longest)
    draws = Draws(task, lengths, _affordable(task, lengths, EACH))
    checks = [*_tried(NAMES | SHAPES, draws)]
    if checks[-1].verdict == "holds":
        # The shortest may be another task: of one pair, the sum is the value that is recalled.
        guessed = tuple(sorted({lengths[len(lengths) // 2], lengths[-1]}))
        some = Draws(task, guessed, _affordable(task, guessed, GUESSED))
        checks += _tried(TRIALS | LONGER, draws)
        checks += _tried({CHANCE: partial(compare_chance, errors=ERRORS)}, some)
    else:
        checks += [Check(what, "not checked", "nothing that fits is drawn") for what in (*TRIALS, *LONGER, CHANCE)]
    return TaskReport(name or task.name, lengths, (*checks, _kept(task)))


def examine_task(task: Task, lengths: Sequence[int]) -> None:
    """The quick part, at these lengths: raise the first thing that does not hold. Of a mixture, every task that is not ours."""
    if isinstance(task, Mixture):
        for each in task.tasks:
            reached = [n for n in lengths if each.shortest <= n <= (each.longest or n)]
            examine_task(each, reached or [each.shortest])
        return
    if is_ours(type(task)):
        return
    chance = partial(compare_chance, errors=QUICK_ERRORS, apart=QUICK_APART)
    few = Draws(task, tuple(sorted(set(lengths))), QUICK_EACH)
    many = Draws(task, (max(lengths),), _affordable(task, lengths, QUICK_GUESSED))
    for check in (*_tried(NAMES | SHAPES, few, stop=True), *_tried(QUICK, few, stop=True), *_tried({CHANCE: chance}, many)):
        if check.verdict == "does not hold":
            raise LabError(f"task '{task.name}' is not sound: {check.evidence}")


def _lengths(task: Task, longest: int | None) -> tuple[int, ...]:
    """The least, and the usual ones as far as it reaches, up to the greatest that is asked for."""
    usual_limit = LENGTHS[-1] if task.shortest < LENGTHS[-1] else task.shortest + LENGTHS[-1]
    limit = longest or min(usual_limit, task.longest or usual_limit)
    task.check_length(limit)
    usual = (task.shortest, *(length for length in LENGTHS if length > task.shortest))
    return (*(length for length in usual if length < limit), limit)


def _affordable(task: Task, lengths: Sequence[int], wanted: int) -> int:
    """So many samples of each length, or as many as have no more tokens than are drawn in a moment."""
    tokens = tokens_of(task, max(lengths)) * len(lengths)
    least = TOKEN_BYTES * tokens * (1 + len(task.questions))
    require_memory(least, f"a batch of task '{task.name}' up to length {max(lengths)}")
    return max(2, min(wanted, TOKENS // tokens))


def _tried(trials: dict[str, TaskTrial], draws: Draws, stop: bool = False) -> Iterator[Check]:
    """What each comes to; with `stop`, none after the first that does not hold."""
    for what, trial in trials.items():
        try:
            check = judged(what, trial(draws))
        except Exception as error:  # a user's own draw or solve
            check = Check(what, "does not hold", f"it fails: {explain(error)}")
        yield check
        if stop and check.verdict == "does not hold":
            return


def _kept(task: Task) -> Check:
    sources = Sources()
    try:
        content.to_json(task, sources)
        files = sources.texts()
    except LabError as error:
        return Check(KEPT, "does not hold", str(error))
    return Check(KEPT, "holds", f"with the text of {', '.join(files)}" if files else "as it is: it is one of ours")
