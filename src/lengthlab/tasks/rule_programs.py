"""List programs to follow, made at random: the rule of each sample is another, and stands before its input.

<bos> L3 s2:xs L4 s20:ys xs: [ 1 ] ys: [ 5 6 ] <sep> return [ 1 6 5 ] <eos>
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from random import Random

from lengthlab.errors import require, require_whole
from lengthlab.rules.guess import SETTLED, commonest
from lengthlab.rules.program import LISTS, MOST, NUMBERED, Program, numbered_rule, snippet_words
from lengthlab.rules.step import Value
from lengthlab.rules.wording import Form, Wording, check_form, line_of, vocabulary
from lengthlab.tasks.alphabet import MARKS
from lengthlab.tasks.rules import RuleTask, Sample, inputs_in


@dataclass(frozen=True)
class RulePrograms(RuleTask):
    """List programs, made at random: the rule of each sample is another, and stands before its input.

    They are numbered, no two with the same lines: those from `first` on, so many `programs`. A length n is that of both lists.
    With `held`, so many others, those that come next, are drawn when it is measured, and none that was trained on.

    >>> task = RulePrograms(form="direct")
    >>> task.solve("<bos> L3 s2:xs L4 s20:ys xs: [ 1 ] ys: [ 5 6 ] <sep>".split())
    {'answer': ('return', '[', '1', '6', '5', ']', '<eos>')}
    """

    form: Form = "trace"
    first: int = 0
    programs: int = 1_000
    held: int = 0

    name = "rule-programs"

    def __post_init__(self) -> None:
        check_form(self.form)
        require_whole(self.first, "task.first", 0)
        require_whole(self.programs, "task.programs", 1)
        require_whole(self.held, "task.held", 0)
        last = self.first + self.programs + self.held
        require(
            last <= NUMBERED, f"task '{self.name}': first, programs and held come to {last:,}, and {NUMBERED:,} have numbers"
        )

    @property
    def as_measured(self) -> RulePrograms:
        return replace(self, first=self.first + self.programs, programs=self.held, held=0) if self.held else self

    @property
    def written(self) -> Form:
        return self.form

    @property
    def words(self) -> tuple[str, ...]:
        rule = Program(((0, 0),) * MOST).rule()
        return (*MARKS, *vocabulary(rule, letters=False), *snippet_words())

    def chance(self, length: int) -> Mapping[str, float]:
        """Of a direct answer, counted on samples: the likeliest is an empty list."""
        if self.form == "direct":
            return {"answer": _commonest(self, min(length, SETTLED))}
        return {"answer": 0.01**length / self.programs}

    def drawn(self, n: int, random: Random) -> Sample:
        program, rule = numbered_rule(self.first + random.randrange(self.programs))
        return Wording(rule, program.words), [random.choices(range(10), k=n) for _ in LISTS]

    def told(self, prompt: Sequence[str]) -> Sample:
        lines = [word for before, word in pairwise(prompt) if line_of(before) is not None]
        program = Program.of_words(lines)
        return Wording(program.rule(), program.words), inputs_in(prompt[2 * len(lines) :])


@lru_cache(maxsize=256)
def _commonest(task: RulePrograms, length: int) -> float:
    """How often the commonest answer comes up."""

    def answer(random: Random) -> Value:
        wording, inputs = task.drawn(length, random)
        return wording.rule.trace(*inputs).answer

    return commonest(answer)
