"""`lengthlab rules square`: does a model add by cases or by a rule?"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from lengthlab.cli import options
from lengthlab.cli.pages import say
from lengthlab.errors import LabError, require

if TYPE_CHECKING:
    from lengthlab.rules.plane import Plane
    from lengthlab.training import Result

TITLE = "Leave-Square-Out: addition by cases, or by a rule?"
NOT_FOR = {
    "RUNS": ("half", "centre", "seeds", "seed", "steps", "epochs", "lr", "device"),
    "--model": ("steps",),
    "our models": ("epochs", "lr"),
}
"""Options that say nothing of what is asked."""
WAYS = {"whole": "a number is one token", "digits": "a number is its digits"}


class Centre(click.ParamType):  # type: ignore[type-arg]  # older click cannot be subscripted
    """`50,50`"""

    name = "centre"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        numbers = str(value).split(",")
        if len(numbers) != 2 or not all(number.isdecimal() and number.isascii() and len(number) < 4 for number in numbers):
            self.fail(f"'{value}': write the middle of the square as two whole numbers, like 50,50", param, ctx)
        return int(numbers[0]), int(numbers[1])


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUNS]...")
@click.option("--model", type=options.Place(path_type=Path), metavar="FOLDER", help="A Hugging Face model, instead of ours.")
@click.option(
    "--half", type=click.IntRange(min=0), default=8, show_default=True, help="The square reaches so far to each side."
)
@click.option("--centre", type=Centre(), default="50,50", show_default=True, metavar="A,B", help="The middle of the square.")
@click.option("--seeds", type=click.IntRange(1, 100), default=1, show_default=True, help="So many, from --seed on.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The first seed.")
@click.option("--steps", type=click.IntRange(min=1), default=2000, show_default=True, help="Of training each of ours.")
@click.option(
    "--epochs", type=options.Finite(min=0), default=100.0, show_default=True, help="Of --model; 0: it is asked as it is."
)
@click.option("--lr", type=options.Finite(min=0, min_open=True), default=1e-4, show_default=True, help="Of --model.")
@options.store
@options.device
@options.progress
@click.option("--out", type=options.Place(path_type=Path), metavar="FOLDER", help="STORE/square if not given.")
def square(
    runs: tuple[str, ...],
    model: Path | None,
    half: int,
    centre: tuple[int, int],
    seeds: int,
    seed: int,
    steps: int,
    epochs: float,
    lr: float,
    store: str,
    device: str,
    progress: bool,
    out: Path | None,
) -> None:
    """Leave-Square-Out: all pairs of numbers below 100, a square of them held out; where a model that adds goes wrong.

    Who adds by a rule has the square right; who adds by cases has not, though it has pairs right that are held out at random.
    Without RUNS a small transformer is trained here four times: numbers as one token and as digits, with a square held out and
    with as many pairs at random. RUNS are finished ones of your own, of the task addition-plane, whatever their model. With
    --model a causal language model on this disk is fine-tuned, on 42+7= and the like, once for each split.

    \b
    lengthlab rules square
    lengthlab rules square runs/3f… runs/8a… --out my-figure
    lengthlab rules square --model ./gpt2 --device cuda

    FOLDER gets square.svg, square.png, plane.csv (what was said to each of the 10,000 pairs) and plane.json.
    """
    from lengthlab.rules.plane import Split
    from lengthlab.store import check_place

    folder = out or Path(store) / "square"
    check_place(folder, "--out")
    Split("square", half, centre)
    require(not (runs and model), "name RUNS or a --model, not both")
    _refuse_unused("RUNS" if runs else "--model" if model else "our models")
    chosen = range(seed, seed + seeds)
    if runs:
        planes = _of_runs(runs, store)
    elif model:
        planes = _tuned(model, half, centre, epochs, lr, chosen, store, device)
    else:
        planes = _trained(half, centre, chosen, steps, store, device, progress)
    show_planes(planes, folder)


def _refuse_unused(subject: str) -> None:
    source_of = click.get_current_context().get_parameter_source
    given = [f"--{name}" for name in NOT_FOR[subject] if source_of(name) is ParameterSource.COMMANDLINE]
    require(not given, f"{' and '.join(given)}: not for {subject}")


def show_planes(planes: Sequence[Plane], folder: Path) -> None:
    """Say how many pairs are right, and write figure and data."""
    from lengthlab.report.figure import plane_pictures
    from lengthlab.report.publication import write_files
    from lengthlab.rules.plane import as_csv

    for plane in planes:
        told = plane.summary
        held = f"held out: {told['held_out_accuracy']:.3f} of {told['held_out']:,}"
        trained = f"trained on: {told['trained_on_accuracy']:.3f} of {told['trained_on']:,}"
        say(f"{plane.model}, {plane.split.held} held out, seed {plane.seed}: {held}, {trained} right")
    data = {"planes": [plane.summary for plane in planes]}
    files = {"plane.csv": as_csv(planes).encode(), "plane.json": f"{json.dumps(data, indent=1)}\n".encode()}
    try:
        files |= plane_pictures(planes, TITLE)
    except LabError as error:
        say(f"no figure: {error}", err=True)
    for path in write_files(folder, files):
        say(f"wrote {path}")


def _trained(
    half: int, centre: tuple[int, int], seeds: Sequence[int], steps: int, store: str, device: str, progress: bool
) -> list[Plane]:
    from lengthlab.experiments.square import square_runs
    from lengthlab.launch import train_all

    return [_plane(result) for result in train_all(square_runs(half, centre, seeds, steps), store, device, progress=progress)]


def _tuned(
    model: Path, half: int, centre: tuple[int, int], epochs: float, lr: float, seeds: Sequence[int], store: str, device: str
) -> list[Plane]:
    from lengthlab.device import device_named
    from lengthlab.integrations.square_lm import tuned_planes

    place = device_named(device)
    with redirect_stdout(sys.stderr):
        return [plane for seed in seeds for plane in tuned_planes(model, half, centre, epochs, lr, seed, Path(store), place)]


def _of_runs(names: Sequence[str], store: str) -> list[Plane]:
    from lengthlab.cli.run_folder import finished_folder
    from lengthlab.training import read_result

    return [_plane(read_result(finished_folder(name, store))) for name in names]


def _plane(result: Result) -> Plane:
    from lengthlab.evaluation.plane import measure_plane
    from lengthlab.tasks import AdditionPlane

    run = result.run
    if not isinstance(run.task, AdditionPlane):
        raise LabError(f"run {result.folder.id} is of task '{run.task.name}': the plane is of runs of 'addition-plane'")
    return measure_plane(result.network(), run.task, run.label or f"{run.model.name}, {WAYS[run.task.numbers]}", run.seed)
