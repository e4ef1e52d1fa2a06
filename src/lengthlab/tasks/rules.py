"""Rules to follow: the input of a rule, and after it the answer alone, a scratchpad, or every step of the rule.

    <bos> digits: [ 5 7 ] <sep> return 3 <eos>                                        direct
    <bos> digits: [ 5 7 ] <sep> L3 [ 5 7 ] 0 L3 [ 7 ] 5 L3 [ ] 3 return 3 <eos>       scratchpad
    <bos> digits: [ 5 7 ] <sep> L2 = total: 0 L3 digits: [ 5 7 ] ? True L4 …          trace

After rule-following fine-tuning (Hu et al. 2024, arXiv 2402.17709; 2025, arXiv 2502.11525), as words for models that are
trained from scratch: lengthlab.rules.wording tells how they are written, lengthlab.rules.exercise what a length is and how
inputs are drawn, lengthlab.rules.written the rules.

Everything after <sep> is asked, as the question `answer`, which is right if all of it is. (Whoever says all of it right after
the right words says it after its own, too: the two ways to measure agree.) Where a model reads its own words, outcomes are
counted: the `result` that it ends with, whatever stands before it, and where steps are told `enough-turns`, loops take as many
turns in all as they have to, or more, and `no-extra-turn`, as many or fewer.

Sequences are made on the CPU, from random numbers that the generator seeds: with numpy for a whole batch at once where the rule
allows it (lengthlab.rules.many), one by one in plain Python where it does not (texts, programs).

Shapes: B samples, T tokens.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from lengthlab.errors import a_kind, require
from lengthlab.rules.exercise import LONGEST, Exercise, exercise, is_own
from lengthlab.rules.guess import likeliest_words, own_exercise
from lengthlab.rules.many import write_many
from lengthlab.rules.page import Ints, NotTogether
from lengthlab.rules.reading import Score, score_words
from lengthlab.rules.rule import Rule
from lengthlab.rules.step import Value
from lengthlab.rules.wording import Form, Wording, check_form, read_value, vocabulary
from lengthlab.tasks.alphabet import MARKS
from lengthlab.tasks.batch import Batch
from lengthlab.tasks.task import Task

Sample = tuple[Wording, Sequence[Any]]
"""How a rule is worded, and what it is given."""
Tokens = tuple[Ints, Ints, Ints]

OUTCOMES = ("result", "enough-turns", "no-extra-turn")


@dataclass(frozen=True)
class RuleTask(Task):
    """What the tasks of one rule and of many have in common. Derive a frozen dataclass, with `drawn` and `told`."""

    questions = ("answer",)
    longest = LONGEST
    limit = "a rule is carried out for 10,000 steps"

    @abstractmethod
    def drawn(self, n: int, random: Random) -> Sample:
        """A sample of a length: how its rule is worded, and what the rule is given."""

    @abstractmethod
    def told(self, prompt: Sequence[str]) -> Sample:
        """The same, from the words of a prompt."""

    @property
    @abstractmethod
    def written(self) -> Form:
        """The form of its answers."""

    @cached_property
    def _token(self) -> dict[str, int]:
        return {word: token for token, word in enumerate(self.words)}

    @property
    def outcomes(self) -> tuple[str, ...]:
        return OUTCOMES[:1] if self.written == "direct" else OUTCOMES

    def outcome_of(self, right: Sequence[str], said: Sequence[str]) -> Mapping[str, bool]:
        score = self.score(right, said)
        more = score.turns_more or 0
        return dict(zip(self.outcomes, (score.answer, more >= 0, more <= 0), strict=False))

    def score(self, right: Sequence[str], said: Sequence[str]) -> Score:
        """How right it is what was said in the place of the answer of a written sequence."""
        begin = list(right).index("<sep>") + 1
        rule = self.told(right[1 : begin - 1])[0].rule
        return score_words(_ended(said), _ended(right[begin:]), self.written, rule)

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        seed = int(torch.randint(2**62, (1,), generator=generator, device=generator.device))
        random = Random(seed)
        tokens_BT, begin_B, length_B = self._tokens([self.drawn(n, random) for n in n_B.tolist()])
        place_T = np.arange(tokens_BT.shape[1])
        asked_BT = (place_T >= begin_B[:, None] - 1) & (place_T < length_B[:, None] - 1)
        tokens, asked, length = (torch.from_numpy(each).to(generator.device) for each in (tokens_BT, asked_BT, length_B))
        return Batch.asking(tokens, {"answer": asked}, length)

    def _tokens(self, samples: Sequence[Sample]) -> Tokens:
        """tokens_BT, where each answer begins and where it ends."""
        return self.one_by_one(samples)

    def one_by_one(self, samples: Sequence[Sample]) -> Tokens:
        """The same, each rule carried out by itself: the slow way, for any rule."""
        rows, begins = [], []
        for wording, inputs in samples:
            trace = wording.rule.trace(*inputs)
            read = ["<bos>", *wording.prompt(trace), "<sep>"]
            begins.append(len(read))
            rows.append([*read, *wording.answer(trace, self.written), "<eos>"])
        length_B = np.array([len(row) for row in rows], np.int64)
        tokens_BT = np.full((len(rows), length_B.max()), self.pad, np.int64)
        inside_BT = np.arange(tokens_BT.shape[1]) < length_B[:, None]
        tokens_BT[inside_BT] = [*map(self._token.__getitem__, chain.from_iterable(rows))]
        return tokens_BT, np.array(begins, np.int64), length_B

    def solve(self, words: Sequence[str]) -> Mapping[str, Sequence[str]]:
        wording, inputs = self.told(words[1 : list(words).index("<sep>")])
        return {"answer": (*wording.answer(wording.rule.trace(*inputs), self.written), "<eos>")}


@dataclass(frozen=True)
class RuleFollowing(RuleTask):
    """Addition, digit by digit, or another rule that is the same in all samples.

    The rule is one of ours by its name, or a function of a user's file, `my_rule.py:merge`, whose text is read here and kept: a
    run of it needs the file no more.

    >>> task = RuleFollowing(form="scratchpad")
    >>> task.solve("<bos> num1: [ 5 9 ] num2: [ 3 ] <sep>".split())["answer"][-16:]
    ('L4', '[', ']', '[', ']', '[', '6', '2', ']', '0', 'return', '[', '6', '2', ']', '<eos>')
    """

    rule: str | Rule = "addition"
    form: Form = "trace"

    def __post_init__(self) -> None:
        check_form(self.form)
        if isinstance(self.rule, str) and is_own(self.rule):
            object.__setattr__(self, "rule", Rule.from_reference(self.rule))
        require(isinstance(self.rule, (str, Rule)), f"task.rule must be the name of a rule, not {a_kind(self.rule)}")
        _ = self.exercise

    def check_length(self, length: int) -> None:
        """Of a user's rule, one that goes wrong or does not end is refused before training."""
        super().check_length(length)
        if isinstance(self.rule, Rule):
            _tried(self.rule, self.form, length)

    @property
    def name(self) -> str:
        return f"rule-{self.rule if isinstance(self.rule, str) else self.rule.name}"

    @property
    def written(self) -> Form:
        return self.form

    @property
    def exercise(self) -> Exercise:
        return exercise(self.rule) if isinstance(self.rule, str) else own_exercise(self.rule)

    @property
    def pointed(self) -> str:
        """The list that is told by a pointer, if there is one."""
        return ""

    @cached_property
    def _wording(self) -> Wording:
        return Wording(self.exercise.rule, {}, self.pointed)

    @property
    def words(self) -> tuple[str, ...]:
        return (*MARKS, *vocabulary(self.exercise.rule, self.exercise.letters))

    def chance(self, length: int) -> Mapping[str, float]:
        """Whoever tells the steps of our rules tells the input; for the result alone it takes none. A user's are counted."""
        result = self.exercise.likeliest_answer(length)
        if self.form == "direct":
            return {"answer": result, "result": result}
        own = isinstance(self.rule, Rule)
        whole = likeliest_words(self.rule, self.form, length) if own else self.exercise.likeliest_input(length)
        return {"answer": whole, "result": result}

    def drawn(self, n: int, random: Random) -> Sample:
        return self._wording, self.exercise.inputs(n, random)

    def told(self, prompt: Sequence[str]) -> Sample:
        return self._wording, inputs_in(prompt)

    def _tokens(self, samples: Sequence[Sample]) -> Tokens:
        inputs = [tuple(given) for _, given in samples]
        try:
            marks = ("<bos>", "<sep>", "<eos>")
            return write_many(self.exercise.rule, self.form, inputs, self._token, marks, self.pointed)
        except NotTogether:
            return self.one_by_one(samples)


def own_rule(rule: str | Rule, form: Form = "trace") -> RuleFollowing:
    """A rule of your own: a function of a file, `my_rule.py:merge`, which is read and not run."""
    return RuleFollowing(rule, form)


def base_9_rule(form: Form = "trace") -> RuleFollowing:
    """Addition in base 9, digit by digit."""
    return RuleFollowing("base-9", form)


def last_letters_rule(form: Form = "trace") -> RuleFollowing:
    """The last letter of each word, joined."""
    return RuleFollowing("last-letters", form)


def coin_flips_rule(form: Form = "trace") -> RuleFollowing:
    """Whether a coin still lies heads up, after each of n people has flipped it or not."""
    return RuleFollowing("coin-flips", form)


def digit_sum_rule(form: Form = "trace") -> RuleFollowing:
    """The sum of the digits of a number, of that again, until one digit is left."""
    return RuleFollowing("digit-sum", form)


def _ended(words: Sequence[str]) -> list[str]:
    """Without the word that ends a sequence, if it was said."""
    return list(words[: words.index("<eos>")] if "<eos>" in words else words)


def inputs_in(words: Sequence[str]) -> list[Value]:
    """The values of a prompt, each of which follows its name."""
    found = (read_value(words[place + 1 :]) for place, word in enumerate(words) if word.endswith(":") and word != ":")
    return [value for value in found if value is not None]


@lru_cache(maxsize=4096)
def _tried(rule: Rule, form: Form, length: int) -> None:
    """Carry a rule out once at a length, and write down what it says."""
    trace = rule.trace(*own_exercise(rule).inputs(length, Random(length)))
    wording = Wording(rule, {})
    wording.prompt(trace)
    wording.answer(trace, form)
