"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest

import lengthlab as ll
from lengthlab.cli import cli

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
SMALLER = {"2_000": "4", "1_600": "4", "400": "4", "batch=64": "batch=4"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_the_python_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks("python"):
        for number, smaller in SMALLER.items():
            block = block.replace(number, smaller)
        exec(compile(block, "README.md", "exec"), {})


def test_the_toml_example_is_ten_lines_and_eighteen_runs(tmp_path: Path) -> None:
    (toml,) = blocks("toml")
    (tmp_path / "sweep.toml").write_text(toml)
    assert len([line for line in toml.splitlines() if not line.startswith("#")]) <= 10
    assert len({run.id for run in ll.read_plan(tmp_path / "sweep.toml")}) == 18


def test_every_command_it_names_is_there() -> None:
    named = set(re.findall(r"`lengthlab (\w+)", TEXT))
    assert named <= set(cli.commands)
    assert set(cli.commands) - named <= {"models", "experiments"}  # named together with `tasks`


def test_every_file_it_links_to_is_there() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (README.parent / link).exists(), link


def test_every_room_it_draws_is_there_and_none_is_left_out() -> None:
    package = README.parent / "src" / "lengthlab"
    drawn = set(re.findall(r"^  (\w+(?:\.py|/))", TEXT, re.MULTILINE)) | set(re.findall(r"\((\w+\.py):", TEXT))
    drawn |= set(re.findall(r";\s+(\w+\.py):", TEXT))
    rooms = {path.name + ("/" if path.is_dir() else "") for path in package.iterdir() if not path.name.startswith("_")}
    assert rooms - drawn == {"errors.py", "py.typed"}
    assert drawn <= rooms
