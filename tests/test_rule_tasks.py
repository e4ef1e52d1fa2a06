"""Rules as tasks: drawn for many at once as one by one, sound in every form, read back from what is drawn."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from command import Call
from lengthlab.errors import LabError
from lengthlab.evaluation.rule_answers import rule_answers
from lengthlab.experiments.rule_adaptation import KNOWN, NEW
from lengthlab.inspection import check_task
from lengthlab.models import Learned, lstm, transformer
from lengthlab.rules import EXERCISES, FORMS, Rule, Wording, read_words, vocabulary
from lengthlab.rules.many import write_many
from lengthlab.rules.page import NotTogether
from lengthlab.rules.program import numbered_rule
from lengthlab.rules.wording import Form
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import end_to_end
from lengthlab.spec.toml import make
from lengthlab.store.settings import name_runs
from lengthlab.tasks import Copy, Few, Mixture, RuleFollowing, RulePointers, RulePrograms, Task, coin_flips_rule
from lengthlab.tasks.rules import RuleTask
from lengthlab.training import Result, train

TOGETHER = ("addition", "base-9", "coin-flips", "digit-sum")
MARKS = ("<bos>", "<sep>", "<eos>")
LINES = (
    "n += xs.pop() if xs else 1",
    "n = n % 5",
    "n = n * 2 + len(ys)",
    "if xs: ys.append(xs.pop(0))",
    "if ys and n > 2 or not xs: ys.insert(0, n % 7)",
    "while len(ys) > 3: n = ys.pop()",
    "n = n // 2 if n != 3 else 0",
    "ys = []",
    "m = not xs",
    "n = 3 - n",
    "n = xs[0]",
    "if ys: k = 2",
    "n = k",
    "n = 1 if xs and xs.pop() else 0",
    "n, m = 1, n",
    "ys = ys[::-1]",
    "if n > 3: break",
    "if not ys: continue",
)
"""The last are beyond what is done together, or may be."""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rule", TOGETHER)
def test_many_at_once_are_as_one_by_one(rule: str, form: str) -> None:
    task = RuleFollowing(rule, form)  # type: ignore[arg-type]
    random = Random(0)
    samples = [task.drawn(n, random) for n in [1, 1, 2, 3, 5, 8, 12, 20] * 4]
    together = write_many(task.exercise.rule, form, [tuple(inputs) for _, inputs in samples], task._token, MARKS)
    for one, other in zip(together, task.one_by_one(samples), strict=True):
        assert np.array_equal(one, other)


@given(lines=st.lists(st.sampled_from(LINES), min_size=1, max_size=5), seed=st.integers(0, 10**6), form=st.sampled_from(FORMS))
@example(lines=["n = k"], seed=0, form="trace")
@settings(max_examples=80)
def test_of_any_rule_many_at_once_are_as_one_by_one_or_left_alone(lines: list[str], seed: int, form: str) -> None:
    body = "\n".join(f"        {line}" for line in lines)
    rule = Rule.of(f"def f(xs, ys):\n    n = 1\n    while xs:\n{body}\n        xs.pop()\n    return ys")
    words = ("<pad>", *MARKS, *vocabulary(rule, letters=False))
    token = {word: number for number, word in enumerate(words)}
    random = Random(seed)
    inputs = [tuple(random.choices(range(10), k=random.randint(0, 5)) for _ in range(2)) for _ in range(6)]
    try:
        tokens_BT, begin_B, end_B = write_many(rule, form, inputs, token, MARKS)
    except NotTogether:
        return
    for row, given_, begin, end in zip(tokens_BT, inputs, begin_B, end_B, strict=True):
        trace, wording = rule.trace(*given_), Wording(rule, {})
        said = [words[number] for number in row[:end]]
        assert said[:begin] == ["<bos>", *wording.prompt(trace), "<sep>"]
        assert said[begin:] == [*wording.answer(trace, form), "<eos>"]
        assert not row[end:].any()


@pytest.mark.parametrize("rule", EXERCISES)
def test_a_direct_answer_is_what_it_says_of_itself(rule: str) -> None:
    report = check_task(RuleFollowing(rule, "direct"), longest=3)
    assert report.holds, report


@pytest.mark.parametrize("task", [RuleFollowing("coin-flips", "trace"), RuleFollowing("digit-sum", "scratchpad")])
def test_longer_answers_are_what_they_say_of_themselves(task: Task) -> None:
    report = check_task(task, longest=3)
    assert report.holds, report


@pytest.mark.parametrize("form", FORMS)
def test_programs_are_what_they_say_of_themselves(form: str) -> None:
    task = RulePrograms(form, programs=40)  # type: ignore[arg-type]
    if form == "direct":
        report = check_task(task, longest=2)
        assert report.holds, report
    prompts = {tuple(words[: words.index("xs:")]) for words in _drawn(task, 200)}
    assert 20 < len(prompts) <= 40
    others = {tuple(words[: words.index("xs:")]) for words in _drawn(RulePrograms(form, first=40, programs=40), 200)}  # type: ignore[arg-type]
    assert len(others - prompts) > 20


@pytest.mark.parametrize("rule", EXERCISES)
def test_what_is_drawn_is_solved_and_read_back(rule: str) -> None:
    for form in FORMS:
        task = RuleFollowing(rule, form)  # type: ignore[arg-type]
        for words in _drawn(task, 6):
            answer = words[words.index("<sep>") + 1 :]
            assert tuple(answer) == task.solve(words)["answer"]
            read = read_words(answer, form, task.exercise.rule)
            assert read.answer is not None
            outer = task.exercise.rule.loops[0]
            assert form == "direct" or (read.turns or {})[outer] == 4


def _drawn(task: RuleTask, size: int) -> list[list[str]]:
    batch = task.sample(size, (4, 4), torch.Generator().manual_seed(0))
    return [task.decode(tokens_T) for tokens_T in batch.tokens_BT]


def test_what_there_is_not_is_refused() -> None:
    with pytest.raises(LabError, match="there is no rule 'adition'; did you mean 'addition'"):
        RuleFollowing("adition")
    with pytest.raises(LabError, match="there is no form 'traces' of an answer; did you mean 'trace'"):
        RuleFollowing(form="traces")  # type: ignore[arg-type]
    with pytest.raises(LabError, match=r"task\.programs must be at least 1"):
        RulePrograms(programs=0)
    with pytest.raises(LabError, match=r"length 501: task 'rule-addition' reaches 500 at most"):
        RuleFollowing().sample(1, (501, 501), torch.Generator())


class Sayer(nn.Module):
    """Says the right words of a rule for inputs of which it reads one element less, or more."""

    def __init__(self, task: RuleFollowing, elements: int) -> None:
        super().__init__()
        self.task, self.elements = task, elements

    def forward(self, tokens_BT: Tensor) -> Tensor:
        logits_BTV = torch.zeros(*tokens_BT.shape, self.task.vocabulary)
        for row, tokens_T in enumerate(tokens_BT):
            words = [self.task.words[token] for token in tokens_T.tolist()]
            sep = words.index("<sep>")
            flips = words[words.index("[") + 1 : words.index("]")]
            heard = [*flips, "False", "False"][: len(flips) + self.elements]
            said = self.task.solve(["<bos>", "flips:", "[", *heard, "]", "<sep>"])["answer"]
            place = min(len(words) - sep - 1, len(said) - 1)
            logits_BTV[row, -1, self.task.words.index(said[place])] = 1
        return logits_BTV


@pytest.mark.parametrize(("elements", "early", "late"), [(0, 0, 0), (-1, 3, 0), (1, 0, 3)])
@pytest.mark.parametrize("form", ["scratchpad", "trace"])
def test_loops_that_end_early_or_late_are_counted(form: Form, elements: int, early: int, late: int) -> None:
    task = coin_flips_rule(form)
    found = rule_answers(Sayer(task, elements), task, 2, samples=3)
    assert (found.early, found.late, found.samples) == (early, late, 3)
    assert found.exact == (3 if elements == 0 else 0)
    assert found.turns_off == abs(elements)


def test_a_direct_answer_tells_of_no_loop() -> None:
    task = coin_flips_rule("direct")
    found = rule_answers(Sayer(task, 0), task, 3, samples=4)
    assert (found.answer, found.exact, found.early, found.turns_off) == (4, 4, None, None)


def test_the_command_reads_a_run_and_refuses_one_of_another_task(call: Call, desk: Path, tmp_path: Path) -> None:
    run = Run(coin_flips_rule("scratchpad"), lstm(width=8), end_to_end(2), (1, 3), batch=4, evaluate=(3,))
    folder = train(run, tmp_path / "ruled").folder
    done = call("rules", "loops", folder.path, "--lengths", "2,3", "--samples", "5", "--json")
    assert [(each["length"], each["samples"]) for each in json.loads(done.out)] == [(2, 5), (3, 5)]
    (other,) = (path.parent for path in (desk / "runs").glob("*/run.json"))
    call("rules", "loops", other, "--lengths", "2").refused("rule-… tasks")


def test_loops_are_read_of_several_runs_of_few_samples_and_of_a_mixture(call: Call, tmp_path: Path) -> None:
    rule = coin_flips_rule("scratchpad")
    alone = trained(rule, tmp_path / "alone")
    few, mixed = trained(Few(rule, samples=3), tmp_path / "few"), trained(Mixture((Copy(), rule)), tmp_path / "mixed")
    folders = [result.folder.path for result in (alone, few, mixed)]
    told = json.loads(call("rules", "loops", *folders, "--lengths", "2,3", "--samples", 5, "--json").out)
    runs = [result.run.id for result in (alone, few, mixed)]
    assert [(each["run"], each["length"]) for each in told] == [(run, n) for run in runs for n in (2, 3)]
    assert all(each["early"] + each["late"] <= 5 for each in told)
    lines = call("rules", "loops", *folders[:2], "--lengths", "2", "--samples", 5).out.splitlines()
    assert [line.split(",")[0].split(" ")[0] for line in lines] == ["rule-coin-flips", "n", "few-rule-coin-flips", "n"]
    two = trained(Mixture((rule, RuleFollowing("digit-sum"))), tmp_path / "two").folder.path
    call("rules", "loops", two, "--lengths", "2").refused("a mixture of several: rule-coin-flips, rule-digit-sum")


def test_a_mixture_asks_its_rule_alone_and_scores_its_words_as_the_rule_does() -> None:
    rule = coin_flips_rule("trace")
    mixed = Mixture((Copy(), rule))

    class Tagged(Sayer):
        def forward(self, tokens_BT: Tensor) -> Tensor:
            words = [[mixed.words[token] for token in tokens_T.tolist()] for tokens_T in tokens_BT]
            assert all(each[0] == "<task:rule-coin-flips>" for each in words)
            own = torch.tensor([[rule.words.index(word) if word in rule.words else 0 for word in each[1:]] for each in words])
            said = super().forward(own)[:, -1].argmax(dim=-1).tolist()
            logits_BTV = torch.zeros(*tokens_BT.shape, mixed.vocabulary)
            for row, token in enumerate(said):
                logits_BTV[row, -1, mixed.words.index(rule.words[token])] = 1
            return logits_BTV

    for elements, early, late in ((0, 0, 0), (-1, 3, 0), (1, 0, 3)):
        found = rule_answers(Tagged(rule, elements), mixed, 2, samples=3)
        assert (found.early, found.late, found.exact) == (early, late, 3 * (elements == 0))


def test_a_length_that_a_model_cannot_read_leaves_what_came_before(call: Call, tmp_path: Path) -> None:
    model = transformer(width=8, blocks=1, heads=2, positions=Learned(40))
    run = Run(coin_flips_rule("direct"), model, end_to_end(2), (1, 2), batch=4, evaluate=(2,))
    folder = train(run, tmp_path / "ruled").folder.path
    done = call("rules", "loops", folder, "--lengths", "2,60", "--samples", 5)
    assert done.code == 2
    assert done.out.startswith("n = 2 ")
    assert len(done.out.splitlines()) == 1
    assert [each["length"] for each in json.loads(call("rules", "loops", folder, "--lengths", "2,60", "--json").out)] == [2]


def trained(task: Task, place: Path) -> Result:
    return train(Run(task, lstm(width=8), end_to_end(2), (1, 3), batch=4, evaluate=(3,)), place)


def test_programs_that_are_held_out_are_measured_and_never_trained_on() -> None:
    task = RulePrograms("direct", programs=3, held=2)
    drawn = {
        name: {tuple(each.drawn(1, Random(seed))[0].rule.lines) for seed in range(60)}
        for name, each in (("trained", task), ("measured", task.as_measured))
    }
    assert (len(drawn["trained"]), len(drawn["measured"])) == (3, 2)
    assert not drawn["trained"] & drawn["measured"]


def test_no_program_has_two_numbers_and_none_that_is_new_was_trained_on() -> None:
    """As many as the study of rules has; a program whose lists have changed places is no other one."""
    programs = [numbered_rule(number)[0] for number in range(1_200)]
    alike = [min(each.lines, each.mirrored.lines) for each in programs]
    assert len(set(alike)) == len(programs)
    assert [numbered_rule(number)[0] for number in (0, 3, 999)] == [programs[number] for number in (0, 3, 999)]
    known, new = (set(alike[first:last]) for first, last in ((0, KNOWN), (KNOWN, KNOWN + NEW)))
    assert (len(known), len(new), len(known & new)) == (KNOWN, NEW, 0)


def test_more_programs_than_have_numbers_are_refused() -> None:
    with pytest.raises(LabError, match="first, programs and held come to 65,537, and 65,536 have numbers"):
        RulePrograms(first=60_000, programs=5_000, held=537)


@pytest.mark.parametrize("rule", ["coin-flips", "digit-sum"])
@pytest.mark.parametrize("form", ["scratchpad", "trace"])
def test_a_pointer_has_the_id_of_the_element_that_its_turn_takes(rule: str, form: Form) -> None:
    task = RulePointers(rule, form, ids=12)
    batch = task.sample(30, (1, 5), torch.Generator().manual_seed(0))
    assert batch.position_BT is not None
    loop, starts = f"L{task.exercise.rule.loops[0]}", set()
    for tokens_T, position_T2 in zip(batch.tokens_BT, batch.position_BT, strict=True):
        words, (ids, within) = task.decode(tokens_T), position_T2.T.tolist()
        sep, n = words.index("<sep>"), words.index("]") - 3
        start = ids[3]
        starts.add(start)
        assert ids[:sep] == [0, 0, 0, *range(start, start + n + 1)]
        turns = [sum(word == loop for word in words[sep + 1 : place + 1]) for place in range(sep, len(words))]
        assert ids[sep : len(words)] == [start + max(0, turn - 1) for turn in turns]
        places = [0]
        for word in words[sep + 1 :]:
            places.append(0 if word == loop else places[-1] + 1)
        assert within[: len(words)] == [0] * sep + [min(place, 11) for place in places]
        assert not any(ids[len(words) :] + within[len(words) :])
        assert max(ids) == start + n < 12
        assert tuple(words[sep + 1 :]) == task.solve(words)["answer"]
        assert "[" not in words[sep:]
    assert len(starts) > 3
    random = Random(0)
    samples = [task.drawn(n, random) for n in (1, 4, 2)]
    assert all(np.array_equal(*pair) for pair in zip(task._tokens(samples), task.one_by_one(samples), strict=True))
    assert check_task(task, longest=3).holds


def test_pointers_are_of_rules_that_go_through_one_list() -> None:
    for rule in ("addition", "last-letters"):
        with pytest.raises(LabError, match="has no list to point into"):
            RulePointers(rule)
    words = Rule.of("def f(xs: list[str]):\n    x = 1\n    while xs:\n        y = xs.pop(0)\n        x = 2\n    return x")
    with pytest.raises(LabError, match="points to elements of one word"):
        RulePointers(words)
    flips = Rule.of("def f(xs: list[bool]):\n    n = 0\n    while xs:\n        n += xs.pop(0)\n    return n")
    assert check_task(RulePointers(flips, "scratchpad", ids=12), longest=3).holds
    with pytest.raises(LabError, match=r"length 11: task 'rule-pointers' reaches 10 at most \(ids = 12\)"):
        RulePointers(ids=12).sample(1, (11, 11), torch.Generator())


OWN = """
raise SystemExit("never run")

def rotate(xs: list[int], k: int) -> list[int]:
    # moves the first elements to the end
    while k > 0:
        if xs: xs.append(xs.pop(0))
        k -= 1
    return xs

def initials(words: list[str]):
    ys = []
    for word in words:
        ys.append(word[0])
    return ys

def first(xs):
    return xs[0]

def fails(xs):
    return xs[3]
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(OWN)
    return f"{tmp_path}/own.py"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["rotate", "initials", "first"])
def test_a_rule_of_ones_own_is_a_task_that_is_what_it_says_of_itself(name: str, form: Form, own: str) -> None:
    task = RuleFollowing(f"{own}:{name}", form)
    assert task.name == f"rule-{name}"
    report = check_task(task, longest=3)
    assert report.holds, report


def test_a_run_keeps_the_text_of_its_rule_and_needs_the_file_no_more(own: str, tmp_path: Path) -> None:
    def run_of(name: str) -> Run:
        return Run(RuleFollowing(f"{own}:{name}", "direct"), lstm(width=8), end_to_end(2), (1, 3), batch=4, evaluate=(3,))

    run = run_of("rotate")
    Path(own).write_text(OWN.replace("# moves", "# brings").replace("def first", "def last"))
    assert run_of("rotate").id == run.id  # what is no part of the rule makes no new run
    Path(own).write_text(OWN.replace("k -= 1", "k -= 2"))
    assert run_of("rotate").id != run.id
    Path(own).unlink()
    result = train(run, tmp_path / "run")
    assert Run.from_json(json.loads((result.folder.path / "run.json").read_text())) == run
    assert result.count(3).total == 1_000


def test_two_texts_of_a_rule_are_two_versions_of_it(own: str) -> None:
    def content_of(name: str, text: str) -> dict[str, Any]:
        Path(own).write_text(text)
        return Run(RuleFollowing(f"{own}:{name}", "direct"), lstm(width=8), end_to_end(2), (1, 3)).to_json()

    edited = OWN.replace("k -= 1", "k -= 2")
    told = name_runs({"a": content_of("rotate", OWN), "b": content_of("rotate", edited)})
    assert told.names == {"a": "source version 1", "b": "source version 2"}
    others = name_runs({"a": content_of("rotate", OWN), "b": content_of("first", OWN)})
    assert others.names == {"a": "rule rotate", "b": "rule first"}


def test_a_plan_names_a_rule_beside_it(own: str, tmp_path: Path) -> None:
    text = """
        [[run]]
        task = { name = "rule", rule = "own.py:rotate", form = "scratchpad" }
        model = "lstm"
        schedule = { name = "end-to-end", joint = 2 }
        lengths = [1, 3]
    """
    (tmp_path / "plan.toml").write_text(dedent(text))
    (run,) = read_plan(tmp_path / "plan.toml")
    assert run.task == RuleFollowing(f"{own}:rotate", "scratchpad")
    assert make(Task, {"name": "rule", "rule": "digit-sum"}) == RuleFollowing("digit-sum")


def test_a_rule_of_ones_own_that_cannot_be_a_task_is_refused_before_training(own: str) -> None:
    with pytest.raises(LabError, match=r"own\.py: no function is called 'rotat'; did you mean 'rotate'"):
        RuleFollowing(f"{own}:rotat")
    with pytest.raises(LabError, match=r"own\.py: the text has several functions: say which"):
        RuleFollowing(own)
    with pytest.raises(LabError, match=r"rule 'fails', line 2 \(`return xs\[3\]`\): list index out of range"):
        Run(RuleFollowing(f"{own}:fails"), lstm(width=8), end_to_end(2), (1, 3), batch=4)
    with pytest.raises(LabError, match="nothing is drawn for 'x: float'"):
        RuleFollowing(Rule.of("def half(x: float):\n    return x"))
    for source in ("import os", "def f(xs):\n    return open(xs)", "def g(xs):\n    return xs", "def f(xs:"):
        with pytest.raises(LabError, match="rule"):
            Rule("f", source)
    with pytest.raises(LabError, match=r"task\.rule must be the name of a rule, not an int"):
        RuleFollowing(5)  # type: ignore[arg-type]
