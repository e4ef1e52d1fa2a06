"""What docs/rules.md shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from lengthlab.cli import cli
from lengthlab.report.publication import texts
from lengthlab.rules import FORMS, rows
from lengthlab.spec.plan import read_plan
from lengthlab.tasks import AdditionPlane

PAGE = Path(__file__).parents[1] / "docs" / "rules.md"
TEXT = PAGE.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_every_form_is_printed_as_it_is() -> None:
    samples = [next(rows("coin-flips", form, (2, 2), 1)) for form in FORMS]
    assert blocks("text") == [f"{sample['prompt']}{sample['completion']}\n" for sample in samples]


def test_the_python_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks("python")
    exec(compile(block, "rules.md", "exec"), {})
    assert capsys.readouterr().out.startswith("2 {3: 3}\nApply the rule line by line")


def test_the_toml_example_is_a_run_of_the_plane(tmp_path: Path) -> None:
    (block,) = blocks("toml")
    (tmp_path / "plan.toml").write_text(block)
    (run,) = read_plan(tmp_path / "plan.toml")
    assert run.task == AdditionPlane(half=10, numbers="whole")
    assert run.task.split.size == 441


def test_every_command_is_one_that_would_start() -> None:
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("lengthlab")]
    assert len(commands) >= 8
    for line in commands:
        words = shlex.split(line, comments=True)[1:]
        command: click.Command = cli
        while isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        command.make_context("lengthlab", words)  # complains of an unknown option, or a value that cannot be


def test_the_numbers_under_the_figure_are_those_in_it() -> None:
    drawn = " ".join(texts((PAGE.parent / "rules" / "square.svg").read_bytes()))
    assert re.findall(r"held out: (\d\.\d+) of 289", drawn) == ["0.104", "0.976", "0.879", "1.000"]
    for number in ("0.104", "0.976", "0.879", "1.000"):
        assert number in TEXT.partition("*`lengthlab rules square --seed 0`")[2].partition("*\n")[0]


def test_every_file_it_links_to_is_there() -> None:
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", TEXT):
        assert (PAGE.parent / link).exists(), link
