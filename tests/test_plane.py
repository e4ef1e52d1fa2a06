"""Leave-Square-Out: the plane, the task that leaves a square of it out, and what a model says to every pair."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from command import Call
from lengthlab.errors import LabError
from lengthlab.evaluation.plane import measure_plane
from lengthlab.report.figure import plane_pictures
from lengthlab.report.plane import KNOWN, SEEN, WRONG, colours
from lengthlab.rules.plane import COLUMNS, HELD, NONE, SUM_AB, Plane, Split, as_csv
from lengthlab.tasks import AdditionPlane

PLAN = """
[[run]]
task = { name = "addition-plane", held = "%s", half = 10, centre = [40, 60], numbers = "whole" }
model = { name = "gpt2", width = 8, blocks = 1, heads = 2, position_ids = 6 }
schedule = { name = "end-to-end", joint = 2 }
lengths = [2, 2]
batch = 4
"""


@pytest.mark.parametrize("held", HELD)
@given(half=st.integers(0, 20), a=st.integers(20, 79), b=st.integers(20, 79))
@settings(max_examples=20)
def test_both_splits_hold_out_as_many_pairs_and_the_square_is_where_it_is_asked_for(
    held: str, half: int, a: int, b: int
) -> None:
    split = Split(held, half, (a, b))  # type: ignore[arg-type]
    assert split.held_out.sum() == split.size == (2 * half + 1) ** 2
    near = np.maximum(abs(np.arange(100)[:, None] - a), abs(np.arange(100) - b)) <= half
    assert held == "random" or (split.held_out == near).all()
    assert len(split.pairs(held=True)) + len(split.pairs(held=False)) == 10_000


@pytest.mark.parametrize(
    ("half", "centre", "words"), [(60, (50, 50), "not inside"), (8, (3, 50), "not inside"), (-1, (5, 5), "half")]
)
def test_a_square_that_is_not_inside_the_plane_is_refused(half: int, centre: tuple[int, int], words: str) -> None:
    with pytest.raises(LabError, match=words):
        Split("square", half, centre)


@pytest.mark.parametrize("numbers", ["digits", "whole"])
@pytest.mark.parametrize("held", HELD)
def test_training_meets_every_pair_but_those_that_are_held_out(held: str, numbers: str) -> None:
    task = AdditionPlane(held, 8, (50, 50), numbers)  # type: ignore[arg-type]
    batch = task.sample(60_000, (2, 2), torch.Generator().manual_seed(0))
    met = np.zeros((100, 100), bool)
    for a, b in _pairs(task, batch.tokens_BT):
        met[a, b] = True
    assert not (met & task.split.held_out).any()
    assert met.sum() > 0.95 * (10_000 - 289)


def _pairs(task: AdditionPlane, tokens_BT: Tensor) -> list[tuple[int, int]]:
    """Read from the tokens, by hand."""
    number_BT = tokens_BT - task.words.index("0")
    if task.numbers == "whole":
        a_B, b_B, sum_B = number_BT[:, 1], number_BT[:, 3], number_BT[:, 5]
    else:
        a_B, b_B = 10 * number_BT[:, 1] + number_BT[:, 2], 10 * number_BT[:, 4] + number_BT[:, 5]
        sum_B = 100 * number_BT[:, 7] + 10 * number_BT[:, 8] + number_BT[:, 9]
    assert (a_B + b_B == sum_B).all()
    return list(zip(a_B.tolist(), b_B.tolist(), strict=True))


def test_what_is_measured_asks_both_kinds_apart() -> None:
    task = AdditionPlane()
    batch = task.as_measured.sample(200, (2, 2), torch.Generator().manual_seed(0))
    asked = {question: (target_BT != -100).any(dim=1).tolist() for question, target_BT in batch.target.items()}
    held = [bool(task.split.held_out[pair]) for pair in _pairs(task, batch.tokens_BT)]
    assert asked == {"trained": [not each for each in held], "held-out": held}
    assert 60 < sum(held) < 140
    assert set(task.chances(2)) == {"trained", "held-out", "all"}


class Adder(nn.Module):
    """Adds numbers that are one token each, but says <end> where the first is above a bound."""

    def __init__(self, task: AdditionPlane, bound: int) -> None:
        super().__init__()
        self.task, self.bound = task, bound

    def forward(self, tokens_BT: Tensor) -> Tensor:
        zero, end = self.task.words.index("0"), self.task.words.index("<end>")
        said_B = torch.full((len(tokens_BT),), end)
        if tokens_BT.shape[1] == 5:
            said_B = (tokens_BT[:, 1] + tokens_BT[:, 3] - zero).where(tokens_BT[:, 1] - zero <= self.bound, end)
        return nn.functional.one_hot(said_B, self.task.vocabulary)[:, None].float().expand(-1, tokens_BT.shape[1], -1)


def test_the_plane_of_an_adder_is_right_where_it_adds() -> None:
    task = AdditionPlane(numbers="whole")
    plane = measure_plane(Adder(task, bound=49), task, "adder")
    assert (plane.correct == (np.arange(100)[:, None] <= 49)).all()
    assert (plane.said_AB[50:] == NONE).all()
    assert plane.summary["held_out_right"] == 8 * 17


def test_data_and_figure_say_what_was_said() -> None:
    said = SUM_AB.copy()
    said[50, 50], said[0, 1] = 7, NONE
    planes = [Plane('a "small" model', Split(held), 3, said) for held in HELD]
    rows = list(csv.DictReader(io.StringIO(as_csv(planes))))
    assert len(rows) == 20_000
    assert rows[1] == dict(zip(COLUMNS, ('a "small" model', "square", "3", "0", "1", "0", "1", ""), strict=True))
    assert rows[50 * 100 + 50]["said"] == "7"
    colour = colours(planes[:1])
    assert [tuple(colour[pair]) for pair in ((50, 50), (0, 1), (50, 51), (9, 9))] == [WRONG, WRONG, KNOWN, SEEN]
    drawn = plane_pictures(planes, "Held $out$")
    texts = [node.text for node in ElementTree.fromstring(drawn["square.svg"].decode()).iter() if node.text]
    assert "held out: 0.997 of 289 right" in texts
    assert drawn == plane_pictures(planes, "Held $out$")


def test_the_command_draws_finished_runs_and_refuses_others(call: Call, tmp_path: Path) -> None:
    for held in HELD:
        (tmp_path / "plan.toml").write_text(PLAN % held)
        assert call("train", tmp_path / "plan.toml", "--store", tmp_path / "runs").code == 0
    runs = [path.parent for path in (tmp_path / "runs").glob("*/run.json")]
    done = call("rules", "square", *runs, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"square.svg", "square.png", "plane.csv", "plane.json"}
    told = json.loads((tmp_path / "out" / "plane.json").read_text())["planes"]
    assert {(each["split"], each["held_out"], each["trained_on"]) for each in told} == {(held, 441, 9559) for held in HELD}
    call("rules", "square", "--half", 70, "--store", tmp_path / "none").refused("not inside the plane")
    call("rules", "square", "--centre", "50", "--store", tmp_path / "none").refused("50,50")
    call("rules", "square", tmp_path / "nothing", "--store", tmp_path / "runs").refused("nothing")
    assert not (tmp_path / "none").exists()


def test_a_run_of_another_task_has_no_plane(call: Call, desk: Path) -> None:
    (run,) = (path.parent for path in (desk / "runs").glob("*/run.json"))
    call("rules", "square", run).refused("addition-plane")
