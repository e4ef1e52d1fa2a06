"""What docs/rules.md shows is what happens."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import shlex
from pathlib import Path

import click
import numpy as np
import pytest
from matplotlib.image import imread
from numpy.typing import NDArray

from lengthlab.cli import cli
from lengthlab.cli.square import TITLE
from lengthlab.report.figure import plane_pictures
from lengthlab.report.publication import texts
from lengthlab.rules import FORMS, rows
from lengthlab.rules.plane import NONE, SUM_AB, Plane, Split
from lengthlab.spec.plan import read_plan
from lengthlab.tasks import AdditionPlane

PAGE = Path(__file__).parents[1] / "docs" / "rules.md"
PUBLISHED = Path(__file__).parents[1] / "published" / "square"
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


def published_planes() -> list[Plane]:
    """What plane.json sums up; pairs that are not in wrong.csv, the rows of plane.csv that are wrong, were answered right."""
    wrong = list(csv.DictReader((PUBLISHED / "wrong.csv").read_text(encoding="utf-8").splitlines()))
    planes = []
    for told in json.loads((PUBLISHED / "plane.json").read_text(encoding="utf-8"))["planes"]:
        said_AB = SUM_AB.copy()
        for row in wrong:
            if (row["model"], row["split"], int(row["seed"])) == (told["model"], told["split"], told["seed"]):
                said_AB[int(row["a"]), int(row["b"])] = int(row["said"] or NONE)
        split = Split(told["split"], told["half"], tuple(told["centre"]))
        planes.append(Plane(told["model"], split, told["seed"], said_AB))
        assert planes[-1].summary == told
    return planes


def pictures(svg: bytes) -> list[NDArray[np.float32]]:
    """The images in a figure, pixel by pixel: how they are packed may change."""
    packed = re.findall(rb"data:image/png;base64,([^\"]+)\"", svg)
    return [imread(io.BytesIO(base64.b64decode(each)), format="png") for each in packed]


def test_the_figure_is_drawn_from_what_is_published_and_the_numbers_under_it_are_those_of_it() -> None:
    planes, shown = published_planes(), (PAGE.parent / "rules" / "square.svg").read_bytes()
    drawn = plane_pictures(planes, TITLE)["square.svg"]
    assert texts(drawn) == texts(shown)
    assert len(pictures(drawn)) == len(pictures(shown)) == len(planes) == 4
    assert all(np.array_equal(*pair) for pair in zip(pictures(drawn), pictures(shown), strict=True))
    for plane in planes:
        number = f"{plane.summary['held_out_accuracy']:.3f}"
        assert number in TEXT.partition("*`lengthlab rules square --seed 0`")[2].partition("*\n")[0]


def test_every_file_it_links_to_is_there() -> None:
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", TEXT):
        assert (PAGE.parent / link).exists(), link
