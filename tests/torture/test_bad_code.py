"""Files of users' own that go wrong, wherever we call them: one line that names the file and the line in it, and no success."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import Call
from desk import RUN, refuse
from lengthlab.errors import LabError
from lengthlab.spec.plan import read_plan
from lengthlab.training import train

EXIT = "raise an error instead"

TASK = """
from dataclasses import dataclass
from lengthlab.tasks import Batch, ModuloRecall, Task
import torch

@dataclass(frozen=True)
class Mine(ModuloRecall):
    keys: int = 32
    def draw(self, n_B, generator):
        DRAW
    def solve(self, words):
        SOLVE
    def chance(self, length):
        CHANCE
"""
USUAL = {
    "DRAW": "return super().draw(n_B, generator)",
    "SOLVE": "return super().solve(words)",
    "CHANCE": "return super().chance(length)",
}


def task(**bodies: str) -> str:
    text = TASK
    for name, body in (USUAL | bodies).items():
        text = text.replace(name, body)
    return text


FILES: list[tuple[str, ...]] = [
    # when it is loaded
    ("def f(:\n", "mine.py cannot be loaded", "SyntaxError", "line 1"),
    ("class Mine:\nx = 1\n", "IndentationError", "line 2"),
    ("x = '\n", "SyntaxError", "line 1"),
    ("import not_there\n", "'not_there'", "stands alone", "line 1"),
    ("from lengthlab import not_there\n", "not_there", "line 1"),
    ("from . import neighbour\n", "mine.py cannot be loaded", "relative import"),
    ("Mine = undefined\n", "'undefined' is not defined", "mine.py, line 1"),
    ("1 / 0\n", "ZeroDivisionError", "mine.py, line 1"),
    ("def f(): return f()\nf()\n", "RecursionError", "mine.py, line 1"),
    ("len(5)\n", "TypeError", "mine.py, line 1"),
    ("assert False\n", "AssertionError", "mine.py, line 1"),
    ("open('nowhere.txt')\n", "nowhere.txt: No such file", "mine.py, line 1"),
    ("raise ValueError('not today')\n", "not today", "mine.py, line 1"),
    ("raise ValueError('x' * 5000)\n", "ValueError: xxx", "mine.py, line 1"),
    ("raise ValueError('a\\n\\x1b[31mb')\n", r"\x1b[31mb", "mine.py, line 1"),
    ("import sys\nsys.exit(0)\n", "sys.exit(0) is called (mine.py, line 2)", EXIT),
    ("import sys\nsys.exit('bye')\n", "sys.exit('bye') is called (mine.py, line 2)", EXIT),
    ("exit()\n", "sys.exit() is called (mine.py, line 1)", EXIT),
    ("raise SystemExit\n", "sys.exit() is called (mine.py, line 1)", EXIT),
    # what it has
    ("", "mine.py has no 'Mine'", "nothing"),
    ("class Other: ...\n", "mine.py has no 'Mine'", "Other"),
    ("class Mime: ...\n", "did you mean 'Mime'?"),
    ("Mine = None\n", "mine.py:Mine is None", "what makes a task"),
    ("Mine = 5\n", "mine.py:Mine is an int", "what makes a task"),
    ("class Mine: ...\n", "made a Mine", "is not a task"),
    ("def Mine(): return 5\n", "made an int", "is not a task"),
    ("def Mine(): pass\n", "made None", "is not a task"),
    ("def Mine(size): pass\n", "needs 'size'", "size = …"),
    ("def Mine(): raise RuntimeError('no such thing')\n", "no such thing", "mine.py, line 1"),
    ("def Mine():\n    raise SystemExit(3)\n", "sys.exit(3) is called (mine.py, line 2)", EXIT),
    ("from lengthlab.tasks import Task\nclass Mine(Task): ...\n", "cannot be made", "draw"),
    ("from lengthlab.tasks import ModuloRecall\nclass Mine(ModuloRecall):\n    def __init__(self): 1 / 0\n", "line 3"),
    # what it does
    (task(DRAW="1 / 0"), "ZeroDivisionError", "mine.py, line 10"),
    (task(DRAW="return 'a' + 1"), "TypeError", "mine.py, line 10"),
    (task(DRAW="return self.draw(n_B, generator)"), "RecursionError", "mine.py, line 10"),
    (task(DRAW="return self.tokens_BT"), "AttributeError", "mine.py, line 10"),
    (task(DRAW="raise StopIteration"), "StopIteration", "mine.py, line 10"),
    (task(DRAW="raise BaseException('odd')"), "odd", "mine.py, line 10"),
    (task(DRAW="raise GeneratorExit"), "GeneratorExit", "mine.py, line 10"),
    (task(DRAW="raise SystemExit(0)"), "sys.exit(0) is called (mine.py, line 10)", EXIT),
    (task(DRAW="return None"), "draw gave None", "a Batch"),
    (task(DRAW="return 5"), "draw gave an int", "a Batch"),
    (task(DRAW="return torch.zeros(2)"), "draw gave a Tensor", "a Batch"),
    (task(DRAW="return Batch(torch.ones(len(n_B), 3).long(), {}, n_B)"), "no target for 'modulo', 'recall'"),
    (task(SOLVE="1 / 0"), "ZeroDivisionError", "mine.py, line 12"),
    (task(SOLVE="raise SystemExit(0)"), "sys.exit(0) is called (mine.py, line 12)", EXIT),
    (task(SOLVE="return None"), "solve gave None", "words by question"),
    (task(SOLVE="return 5"), "solve gave an int", "words by question"),
    (task(CHANCE="1 / 0"), "ZeroDivisionError", "mine.py, line 14"),
    (task(CHANCE="return None"), "chance gave None", "a share by question"),
    (task(CHANCE="return {'modulo': 'x'}"), "chance of 'modulo' must be a number, not 'x'"),
    (task(CHANCE="return {'modulo': 5}"), "chance of 'modulo' must be at least 0 and at most 1, not 5"),
    ("\ufeff" + task(DRAW="1 / 0"), "ZeroDivisionError", "mine.py, line 10"),
]


@pytest.mark.parametrize("case", FILES, ids=lambda case: repr(case[0].strip()[-160:])[-100:])
def test_a_task_of_ones_own_that_goes_wrong_is_told_by_file_and_line(call: Call, desk: Path, case: tuple[str, ...]) -> None:
    (desk / "mine.py").write_text(case[0], encoding="utf-8")
    refuse(call, desk, "tasks mine.py:Mine", case[1:])


def test_what_stops_a_program_stops_it_with_an_exit_code(call: Call, desk: Path) -> None:
    (desk / "mine.py").write_text("raise KeyboardInterrupt\n")
    assert call("tasks", "mine.py:Mine").code == 130


NET = """
import sys
from torch import nn

class Net(nn.Module):
    def __init__(self, vocabulary: int, width: int = 8):
        super().__init__()
        INIT
        self.table = nn.Embedding(vocabulary, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens_BT):
        FORWARD
"""


def net(init: str = "pass", forward: str = "return self.head(self.table(tokens_BT))") -> str:
    return NET.replace("INIT", init).replace("FORWARD", forward)


SET = "train plan.toml --set schedule=end-to-end --set schedule.joint=2 --set model=mine.py:Net"
NETS: list[tuple[str, ...]] = [
    *(("class Net(\n", typed, "mine.py cannot be loaded", "SyntaxError") for typed in ("models", "check", "delay", SET)),
    *((net(init="1 / 0"), typed, "ZeroDivisionError", "mine.py, line 8") for typed in ("models", "check", "delay", SET)),
    *((net(init="sys.exit(0)"), typed, "(mine.py, line 8)", EXIT) for typed in ("models", "check", "delay", SET)),
    *((net() + "Net = Net(5)\n", typed, "made already", "name") for typed in ("models", "check", "delay", SET)),
    *(("Net = 5\n", typed, "mine.py:Net is an int") for typed in ("models", "check", "delay", SET)),
    *(("def Net(): return 'x'\n", typed, "made a str") for typed in ("models", "check", "delay", SET)),
    *((net().replace("vocabulary", "n"), typed, "name it one of vocabulary") for typed in ("models", SET)),
    *((net().replace("vocabulary", "n"), typed, "cannot be made", "'n'") for typed in ("check", "delay")),
    (net().replace("        super().__init__()\n", ""), "models", "Module.__init__() call", "mine.py, line 8"),
    (net(forward="sys.exit(0)"), "check", "sys.exit(0) is called (mine.py, line 13)", EXIT),
]


@pytest.mark.parametrize("case", NETS, ids=lambda case: f"{case[1][:6]} {case[2]}")
def test_a_model_of_ones_own_that_goes_wrong_is_told_by_file_and_line(call: Call, desk: Path, case: tuple[str, ...]) -> None:
    text, typed, *says = case
    (desk / "mine.py").write_text(text)
    refuse(call, desk, typed if typed == SET else f"{typed} mine.py:Net", tuple(says))


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero (mine.py, line 13)"),
        ("return self.forward(tokens_BT)", "RecursionError"),
        ("return None", "NoneType"),
        ("return tokens_BT", "shape"),
    ],
)
def test_a_forward_that_goes_wrong_does_not_hold(call: Call, desk: Path, forward: str, says: str) -> None:
    (desk / "mine.py").write_text(net(forward=forward))
    done = call("check", "mine.py:Net")
    assert done.code == 1
    assert says in done.out


STUDIES: list[tuple[str, ...]] = [
    ("STUDY = None\n", "STUDY is None, not a Study"),
    ("STUDY = 1 / 0\n", "ZeroDivisionError", "mine.py, line 1"),
    ("import sys\nsys.exit(0)\n", "sys.exit(0) is called (mine.py, line 2)", EXIT),
    ("from lengthlab.experiments import Study\nSTUDY = Study\n", "not a Study"),
    ("from lengthlab.experiments import Study\nSTUDY = Study('a b', '', '', None, ())\n", "'a b'", "letters, digits"),
    (
        "from lengthlab.experiments import Study\nSTUDY = Study('a', '', '', None, ())\n",
        "study 'a' has no arm",
        "mine.py, line 2",
    ),
    ("from lengthlab.experiments import FAR\nSTUDI = FAR\n", "has no 'STUDY'"),
]


@pytest.mark.parametrize("case", STUDIES, ids=lambda case: repr(case[0].strip()[-60:]))
@pytest.mark.parametrize("command", ["reproduce", "experiments"])
def test_a_study_of_ones_own_that_is_none_is_refused(call: Call, desk: Path, command: str, case: tuple[str, ...]) -> None:
    (desk / "mine.py").write_text(case[0])
    refuse(call, desk, f"{command} mine.py:STUDY", ("mine.py", *case[1:]))


LATE = "if self.training: sys.exit(0)\n        return self.head(self.table(tokens_BT))"


@pytest.mark.parametrize(
    ("text", "chosen", "line", "begun"),
    [
        (task(DRAW="raise SystemExit(0)"), 'task = "mine.py:Mine"', 10, False),
        (net(forward="sys.exit(0)"), 'model = "mine.py:Net"', 13, False),
        (net(forward=LATE), 'model = "mine.py:Net"', 13, True),
    ],
    ids=["draw", "forward", "forward in training"],
)
def test_a_file_that_exits_is_refused_or_fails_its_run_with_a_record(
    desk: Path, text: str, chosen: str, line: int, begun: bool
) -> None:
    (desk / "mine.py").write_text(text)
    old = next(each for each in RUN.splitlines() if each.startswith(chosen.split()[0]))
    schedule = 'schedule = { name = "end-to-end", joint = 2 }'
    plan = RUN.replace(old, chosen).replace(next(each for each in RUN.splitlines() if "delayed" in each), schedule)
    (desk / "own.toml").write_text(plan)
    (run,) = read_plan(desk / "own.toml")
    with pytest.raises(LabError, match=rf"sys\.exit\(0\) is called \(mine\.py, line {line}\)"):
        train(run, desk / "runs")
    kept = desk / "runs" / run.id / "failure.json"
    assert kept.exists() == begun
    assert not begun or EXIT in kept.read_text()
