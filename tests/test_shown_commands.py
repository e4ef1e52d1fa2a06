"""Every command that a page or a docstring shows is there, with every option that it has."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from lengthlab.cli import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = sorted((ROOT / "src").rglob("*.py"))


def shown(text: str) -> Iterator[str]:
    """In a fenced block or an indented one, as a study's command, or in backquotes."""
    text = re.sub(r"\\\n\s*", " ", text)
    fenced = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    for line in (
        *re.findall(r"^lengthlab (.+)", fenced, re.MULTILINE),
        *re.findall(r"^(?: +|Command: )lengthlab (.+)", text, re.M),
    ):
        yield re.split(r"\s+#|\s{3,}", line)[0]
    yield from re.findall(r"`lengthlab ([^`]+)`", text)


def problem(line: str) -> str:
    """What is wrong with it; nothing, mostly."""
    rest = shlex.split(re.split(r" [|>;&]", line)[0])
    found: click.Command = cli
    while isinstance(found, click.Group) and rest and rest[0] in found.commands:
        found, rest = found.commands[rest[0]], rest[1:]
    if found is cli and rest and not rest[0].startswith("-"):
        return f"no command '{rest[0]}'"
    known = {"-h", "--help"} | {option for each in found.params for option in (*each.opts, *each.secondary_opts)}
    return ", ".join(word for word in rest if re.match(r"--?[a-z]", word) and word.split("=")[0] not in known)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("tasks modulo --set keys=8", ""),
        ("tasks modulo --keys=8", "--keys=8"),
        ("rules square --seed 0 -o x.svg", "-o"),
        ("trian plan.toml", "no command 'trian'"),
        ("report runs > page.txt", ""),
    ],
)
def test_a_command_that_is_not_there_is_found_out(line: str, wrong: str) -> None:
    assert problem(line) == wrong


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_of_a_page_is_there(path: Path) -> None:
    lines = list(shown(path.read_text(encoding="utf-8")))
    assert {line: wrong for line in lines if (wrong := problem(line))} == {}


def test_every_command_of_a_docstring_is_there() -> None:
    lines = [line for path in MODULES for line in shown(path.read_text(encoding="utf-8"))]
    assert len(lines) > 50
    assert {line: wrong for line in lines if (wrong := problem(line))} == {}
