"""`lengthlab guarantee`: what it says of our tasks and of users', and that the page of docs/ says the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from command import Call
from lengthlab.registry import registered
from lengthlab.tasks import Minesweeper, ParityScratchpad, Task, dyck
from lengthlab.theory import verdict

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "doubles_task.py"
NEEDY = ("mixture", "few", "language", "rule")
"""Tasks that are made of something."""
REPEATED = {"copy": {"letters": "repeated"}, "reverse": {"letters": "repeated"}}


def table() -> str:
    """Every task that can be chosen by name and needs nothing to be made, as docs/theory.md has it."""
    tasks = [maker() for name, maker in registered(Task).items() if name not in NEEDY]
    tasks += [registered(Task)[name](**parameters) for name, parameters in REPEATED.items()]
    rows = ["| task | in the class | source | operations |", "|---|---|---|---|"]
    for task in tasks:
        found = verdict(task)
        size = f"{found.program.size:,}" if found.program else ""
        why = f"{found.citation}{f': {found.reason}' if found.reason else ''}"
        rows.append(f"| `{found.task}` | {found.in_class} | {why} | {size} |")
    return "\n".join(rows)


def test_the_page_has_every_task_with_its_verdict() -> None:
    assert table() in (ROOT / "docs" / "theory.md").read_text(encoding="utf-8"), f"put this into docs/theory.md:\n{table()}"


@pytest.mark.parametrize("name", [name for name in registered(Task) if name not in (*NEEDY, "copy", "reverse")])
def test_the_command_tells_of_every_task_and_finds_its_program_right(name: str, call: Call) -> None:
    done = call("guarantee", name, "--json")
    told = json.loads(done.out)
    assert (done.code, told["wrong"]) == (0, None)
    if told["in_class"] == "yes":
        assert told["program"]
        assert told["listed"]["inputs"] >= 100 or told["listed"]["longest"] == 40
        assert told["drawn"]["longest"] >= 150
    assert told["follows"]
    assert told["does_not"]


def test_it_fits_a_terminal_and_says_what_is_shown_smaller(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = call("guarantee", "reverse", "--set", "alphabet=40")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("reverse unique: in C-RASP[pos]: length generalization is promised")
    assert any(line.endswith("operations, shown with alphabet = 2") for line in lines)
    assert "INPUT(i)        := #[j ≤ i] Q_<sep>(j) = 0" in lines
    assert "every input up to length 6, 1,956 in all, with alphabet = 6" in " ".join(done.out.split())


def test_what_is_outside_the_class_is_told_with_its_lemma_and_without_a_claim_that_it_fails(call: Call) -> None:
    told = " ".join(call("guarantee", "copy", "--set", "letters=repeated").out.split())
    assert told.startswith("copy repeated: not in C-RASP[pos]: nothing is promised")
    assert "Lemma 8" in told
    assert "That training fails: that is an observation" in told


@pytest.mark.parametrize(
    ("task", "symbols", "sides"), [(ParityScratchpad(), "01", range(1, 9)), (Minesweeper(), ".M", (1, 4, 9))]
)
def test_what_we_argue_ourselves_rests_on_an_answer_of_its_own_for_every_prompt(
    task: Task, symbols: str, sides: Sequence[int]
) -> None:
    assert verdict(task).in_class == "no"
    assert verdict(task).citation.startswith("our argument, after Lemma 8")
    for read in sides:
        answers = [task.solve(["<bos>", *prompt, "=", "<end>"]) for prompt in product(symbols, repeat=read)]
        assert len({str(answer) for answer in answers}) == 2**read
    assert verdict(replace(task, positions="coupled")).in_class == "unknown"  # type: ignore[call-arg]


def test_a_task_that_nobody_has_looked_at_is_told_with_what_to_do(call: Call) -> None:
    done = call("guarantee", "modulo-recall")
    assert done.code == 0
    assert done.out.startswith("modulo-recall: it is not known whether")
    assert "nobody has looked at it here" in done.out
    assert "docs/theory.md" in done.out


def test_a_language_of_a_known_name_with_another_automaton_is_not_taken_for_it() -> None:
    assert verdict(dyck(2)).in_class == "yes"
    assert verdict(replace(dyck(3), name="D2")).in_class == "unknown"
    assert verdict(dyck(5)).in_class == "unknown"


def test_a_task_that_is_not_there_is_refused_with_a_suggestion(call: Call) -> None:
    call("guarantee", "unique-leff").refused("'unique-leff' is no task here", "did you mean 'unique-left'?")


def test_the_example_has_its_program_tried_on_listed_and_drawn_inputs(call: Call) -> None:
    done = call("guarantee", f"{EXAMPLE}:Doubles")
    assert done.code == 0
    assert "next is yes := ∃[j ≤ i] DOUBLED(j)" in done.out
    assert "3,279 in all; 210 drawn, of up to 300 tokens: all right" in " ".join(done.out.split())


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.py"


def edit(file: Path, old: str, new: str) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_a_wrong_program_is_shown_with_the_first_input_that_it_gets_wrong(edited: Path, call: Call) -> None:
    edit(edited, "token(a) & back(token(a))", "token(a)")
    done = call("guarantee", "mine.py:Doubles")
    assert done.code == 1
    assert done.out.splitlines() == [
        "doubles: nothing is shown, because its program is wrong",
        "  after '<bos> a <twice>' the program says yes, and right is no",
    ]


def test_a_wrong_program_is_found_by_drawn_inputs_alone(edited: Path, call: Call) -> None:
    edit(edited, "def prompts", "def listed")
    assert "210 drawn" in " ".join(call("guarantee", "mine.py:Doubles").out.split())
    edit(edited, 'yes="yes", no="no"', 'yes="no", no="yes"')
    assert call("guarantee", "mine.py:Doubles").code == 1


def test_the_name_of_a_users_task_is_not_taken_for_ours(edited: Path, call: Call) -> None:
    edit(edited, "def program", "def shown")
    edited.write_text(edited.read_text(encoding="utf-8").replace('name = "doubles"', 'name = "last-left"'))
    assert json.loads(call("guarantee", "mine.py:Doubles", "--json").out)["in_class"] == "unknown"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("    @property\n    def program", "    def program", "'program' is a method, and has to be a property"),
        ("return Program.deciding(", "return str(", "has to be a lengthlab.theory.Program"),
        ('else "no",)}', 'else "no", "no")}', "'twice' is asked 1 times of '<bos> "),
        ("in self.alphabet)", "in self.alphabett)", "no attribute 'alphabett'"),
        ('list(words).index("<twice>")', 'list(words).index("<once>")', "cannot solve '<bos> a <twice>'"),
    ],
)
def test_what_is_wrong_with_a_users_file_is_told_in_one_line(edited: Path, call: Call, old: str, new: str, told: str) -> None:
    edit(edited, old, new)
    if new == "return str(":
        edited.write_text(
            edited.read_text(encoding="utf-8").replace('str(exists(doubled), yes="yes", no="no")', "str(doubled)")
        )
    call("guarantee", "mine.py:Doubles").refused(told)
