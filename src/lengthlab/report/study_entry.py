"""An arm of a study as an entry of its tables and figures: what it is called, how its training went, and its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lengthlab.experiments.study import Arm, Section
from lengthlab.report.page import Entry
from lengthlab.report.results import Results

GROUPS = 3
"""Arms stand in groups by their training where there are no more trainings than this."""
FACTS = ("parameters", "steps", "opened", "plateau", "ms a step")
NOT_KNOWN = "–"


def entry_of(results: Results, section: Section, arm: Arm, questions: Sequence[str]) -> Entry:
    """What tells an arm from the others of its section, how its training went, and its scores."""
    arms = section.arms
    about = dict.fromkeys((column for other in arms for column, _ in other.about), "")  # every arm has every column
    shared = shared_by(arms)
    own = {column: word for column, word in (("task", arm.task), ("model", arm.model)) if column not in shared}
    names = ({} if _told(arms) else {"arm": str(arm)}) | own | about | dict(arm.about) | {"training": arm.training}
    series = tuple(results.series(arm, question, section) for question in questions)
    trainings = {other.training for other in arms}
    facts = tuple(_facts(results, arm))
    return Entry(tuple(names.items()), series, facts, arm.training if len(trainings) <= GROUPS else "")


def known_facts(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries without the facts that are known of none of them: these are no columns."""
    known = {fact for entry in entries for fact, word in entry.facts if word != NOT_KNOWN}
    return tuple(replace(entry, facts=tuple(each for each in entry.facts if each[0] in known)) for entry in entries)


def shared_by(arms: Sequence[Arm]) -> dict[str, str]:
    """Task and model, where all arms have the same: said once, above the table."""
    words = {"model": {arm.model for arm in arms}, "task": {arm.task for arm in arms}}
    return {column: next(iter(found)) for column, found in words.items() if len(found) == 1}


def _told(arms: Sequence[Arm]) -> bool:
    """Whether arms are told apart by what is said about them, so that their names add nothing."""
    said = {(arm.task, arm.model, arm.about, arm.training) for arm in arms}
    return all(arm.about for arm in arms) and len(said) == len(arms)


def _facts(results: Results, arm: Arm) -> list[tuple[str, str]]:
    """How many numbers it learns, steps, when all was on, and how long its loss stayed up; a seed that never learned is counted
    apart.
    """
    traces = results.traces(arm)
    if not traces:
        return [(fact, NOT_KNOWN) for fact in FACTS]
    plateaus = [trace.plateau_steps for trace in traces if trace.plateau_steps is not None]
    rest = len(traces) - len(plateaus)
    never = f"{rest} of {len(traces)} to the end" if rest else ""
    steps, opened = _mean([trace.steps for trace in traces]), _mean([trace.opened for trace in traces])
    sizes = [trace.parameters for trace in traces if trace.parameters is not None]
    plateau = "; ".join(filter(None, (_mean(plateaus), never)))
    return list(zip(FACTS, (_mean(sizes) or NOT_KNOWN, steps, opened, plateau, _cost(results, arm)), strict=True))


def _mean(numbers: Sequence[int]) -> str:
    return f"{sum(numbers) / len(numbers):,.0f}" if numbers else ""


def _cost(results: Results, arm: Arm) -> str:
    own, beside = results.step_seconds([arm]), results.beside_baseline(arm)
    if own is None:
        return NOT_KNOWN
    return f"{1000 * own:.2f}" + (f" (×{beside:.2f})" if beside else "")
