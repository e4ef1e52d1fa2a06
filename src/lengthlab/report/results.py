"""A study and what was measured of it: scores by arm, what became of its claims, how training went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, Claim, Section, Study
from lengthlab.report.bins import in_bins
from lengthlab.report.claims import Finding, Measured, judge
from lengthlab.report.evidence import Evidence
from lengthlab.report.provenance import unite
from lengthlab.report.scores import Score, Series, one_a_seed, usual_totals
from lengthlab.report.traces import TrainingTrace, traces_of
from lengthlab.store.ids import SHORT
from lengthlab.store.rows import ALL, Row


@dataclass(frozen=True)
class Results:
    """Sections of a study at one size with the rows of their arms; an arm without rows is missing. `left_out`: rows of other
    numbers of samples than most of their length have, which are not put together with these.
    """

    study: Study
    size: Size
    sections: tuple[Section, ...]
    evidence: Evidence
    left_out: tuple[Row, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.evidence.rows

    @property
    def seeds(self) -> list[int]:
        return sorted({row.seed for row in self.rows})

    @cached_property
    def _found(self) -> dict[tuple[Arm, str, int], list[Row]]:
        """Rows as they are shown: those of a bin are one."""
        by_arm: dict[Arm, list[Row]] = {}
        for row in self.rows:
            by_arm.setdefault(arm_of(row), []).append(row)
        found: dict[tuple[Arm, str, int], list[Row]] = {}
        for arm, rows in by_arm.items():
            for row in in_bins(rows, self.size_of(arm)):
                found.setdefault((arm, row.question, row.length), []).append(row)
        return found

    def size_of(self, arm: Arm) -> Size:
        """Where an arm is measured."""
        return self.study.size_of(arm, self.size) or self.size

    @cached_property
    def _runs_of(self) -> dict[Arm, dict[int, str]]:
        """The runs of an arm, by seed."""
        runs: dict[Arm, dict[int, str]] = {}
        for (arm, _, _), rows in self._found.items():
            runs.setdefault(arm, {}).update((row.seed, row.run[:SHORT]) for row in rows)
        return runs

    @cached_property
    def _trace_of(self) -> dict[str, TrainingTrace]:
        return {trace.run[:SHORT]: trace for trace in self.evidence.traces}

    def questions(self, section: Section) -> tuple[str, ...]:
        """Those that are shown: what the section names, or all that its rows have. One question of a task speaks for all; what
        mixtures ask as `task/question`, and of one task alone, is that question, where other arms are asked it beside others.
        """
        asked: dict[Arm, dict[str, None]] = {arm: {} for arm in section.arms}
        for arm, question, _ in self._found:
            if arm in asked and question != ALL:
                asked[arm][question] = None
        several = dict.fromkeys(question for own in asked.values() if len(own) > 1 for question in own)
        return section.questions or (ALL, *_told_once(list(several)))

    def series(self, arm: Arm, question: str = ALL, section: Section | None = None) -> Series:
        """The scores of an arm; beside others of a section it may lack seeds that they have."""
        says = self.study.says
        scores = [
            Score(length, one_a_seed(self._rows_of(arm, question, length)), says(arm, question, length))
            for length in self.size_of(arm).shown
        ]
        own = set(self._runs_of.get(arm, ()))
        others = {seed for other in section.arms for seed in self._runs_of.get(other, ())} if section and own else set()
        return Series(question, tuple(scores), tuple(sorted(others - own)))

    def _rows_of(self, arm: Arm, question: str, length: int) -> list[Row]:
        """Of a question, by itself or as a mixture has it."""
        names = (question, *(f"{task}/{question}" for task in arm.task.split("+")))
        return next((self._found[arm, name, length] for name in names if (arm, name, length) in self._found), [])

    def findings(self) -> list[Finding]:
        """What became of the claims, by the means over seeds, or by their medians."""
        return [judge(claim, self._medians if claim.by == "median" else self._means) for claim in self.claims]

    @property
    def claims(self) -> list[Claim]:
        """Those of this size and of these sections."""
        shown = {"", *(section.name for section in self.sections)}
        arms = {arm for section in self.sections for arm in section.arms}
        sized = [claim for claim in self.study.claims if claim.size in ("", self.size.name) and claim.section in shown]
        return [claim for claim in sized if claim.section or any(check.arm in arms for check in claim.checks)]

    def verdicts_by_seed(self, claim: Claim) -> dict[int, str]:
        """What each seed alone says of a claim."""
        arms = self.study.section(claim.section).arms if claim.section else self.study.arms
        seeds = sorted({seed for arm in arms for seed in self._runs_of.get(arm, ())})
        return {seed: judge(claim, self._of_seed(seed)).verdict for seed in seeds}

    def _means(self, arm: Arm, question: str, length: int) -> float | None:
        return Score(length, one_a_seed(self._found.get((arm, question, length), ()))).mean

    def _medians(self, arm: Arm, question: str, length: int) -> float | None:
        return Score(length, one_a_seed(self._found.get((arm, question, length), ()))).median

    def _of_seed(self, seed: int) -> Measured:
        def accuracy(arm: Arm, question: str, length: int) -> float | None:
            rows = one_a_seed(self._found.get((arm, question, length), ()))
            return next((row.accuracy for row in rows if row.seed == seed), None)

        return accuracy

    def traces(self, arm: Arm) -> list[TrainingTrace]:
        """How the training of an arm went, by seed, as far as that is known."""
        runs = [run for _, run in sorted(self._runs_of.get(arm, {}).items())]
        return [self._trace_of[run] for run in runs if run in self._trace_of]

    def step_seconds(self, arms: Iterable[Arm]) -> float | None:
        """Of a step of these arms, where they were timed: the mean over arms of the mean over seeds."""
        known = [[trace.step_seconds for trace in self.traces(arm) if trace.step_seconds] for arm in arms]
        means = [sum(seconds) / len(seconds) for seconds in known if seconds]
        return sum(means) / len(means) if means else None

    @cached_property
    def baseline_seconds(self) -> float | None:
        return self.step_seconds(self._baseline)

    def beside_baseline(self, arm: Arm) -> float | None:
        """How many times the seconds of the baseline a step takes, where both were timed on machines of the same kind."""
        own, baseline = self.step_seconds([arm]), self.baseline_seconds
        if own is None or baseline is None or self._machines([arm]) != self._machines(self._baseline):
            return None
        return own / baseline

    @property
    def _baseline(self) -> list[Arm]:
        return [arm for arm in self.study.arms if arm.name == self.study.baseline]

    def _machines(self, arms: Iterable[Arm]) -> set[str]:
        timed = {trace.run[:SHORT] for arm in arms for trace in self.traces(arm) if trace.step_seconds}
        return {origin.hardware for origin in self.evidence.origins if timed & origin.short_runs}


def arm_of(row: Row) -> Arm:
    return Arm(row.arm, row.model, row.task, row.training)


def gather(study: Study, size: Size, sections: Sequence[Section], evidence: Evidence) -> Results:
    """The rows of these sections in the order of their arms, with the entries that made them and how their training went."""
    order = {arm: place for place, arm in enumerate(arm for section in sections for arm in section.arms)}
    lengths = {arm: sized.lengths for arm in order if (sized := study.size_of(arm, size))}
    own = [row for row in evidence.rows if row.length in lengths.get(arm_of(row), ()) and row.size == size.name]
    usual = usual_totals(own)
    kept = [row for row in own if row.total == usual[row.length, row.question]]
    kept.sort(key=lambda row: (order[arm_of(row)], row.seed, row.length, row.question != ALL))
    runs = dict.fromkeys(row.run for row in kept)
    known = replace(
        evidence,
        rows=tuple(kept),
        origins=tuple(unite(evidence.origins, runs)),
        traces=traces_of(runs, evidence.traces),
    )
    left_out = tuple(row for row in own if row.total != usual[row.length, row.question])
    return Results(study, size, tuple(sections), known, left_out)


def _told_once(questions: Sequence[str]) -> list[str]:
    """Without those that one task of a mixture has of a question that is there by itself.

    >>> _told_once(["product", "a/product", "sum", "a/sum", "b/sum", "a/count"])
    ['product', 'sum', 'a/sum', 'b/sum', 'a/count']
    """
    bare = [question.rpartition("/")[2] for question in questions]
    return [
        each
        for each, name in zip(questions, bare, strict=True)
        if each == name or name not in questions or bare.count(name) > 2
    ]
