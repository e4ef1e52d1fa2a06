"""`lengthlab reproduce`"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lengthlab.cli import options
from lengthlab.cli.progress import duration
from lengthlab.errors import LabError, require
from lengthlab.paper.cells import PARTS
from lengthlab.report.curves import Curve
from lengthlab.report.results import Results, gather

if TYPE_CHECKING:
    from lengthlab.experiments.dat import Trial
    from lengthlab.run import Run

PART = click.Choice([*PARTS, "readings"])
PROFILE = click.Choice(["short", "paper"])


@click.group()
def reproduce() -> None:
    """Papers, run again: their numbers beside ours."""


@reproduce.command()
@click.option("--part", type=PART, help="One part alone; without it the two tables and the figure.")
@click.option("--seeds", type=click.IntRange(min=1), help="So many, from 0 on; 1 if not given, or all that --from has.")
@click.option("--profile", type=PROFILE, default="short", show_default=True, help="The cheapest schedule, or the paper's.")
@options.store
@click.option("--device", help="cpu, cuda, cuda:1, mps; if not given, cuda where there is one, else cpu.")
@options.precision
@click.option("--from", "sources", multiple=True, metavar="FOLDER", help="Train nothing, read rows or runs; may be repeated.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for page, figures, rows and provenance.")
@click.option("--page", type=click.Path(path_type=Path), help="Write the page as this file, its figures beside it.")
def dat(
    part: str | None,
    seeds: int | None,
    profile: str,
    store: str,
    device: str | None,
    precision: str | None,
    sources: tuple[str, ...],
    out: Path | None,
    page: Path | None,
) -> None:
    """Delayed attention training (arXiv 2510.00258): two tables and a figure, 26 cells, ours beside the paper's.

    Says first how long it will take on this machine. Only what is missing is trained. Stop it when you like: the same command
    goes on where it was. Without a GPU, look at what was published.

    \b
    lengthlab reproduce dat --part table2
    lengthlab reproduce dat --from published
    lengthlab reproduce dat --from here/runs --from there/runs --out published/dat

    What is trained is written to --out, or to STORE/dat-PROFILE.
    """
    from lengthlab.cli.publication import show, write_page, write_results
    from lengthlab.cli.sources import read_results

    require(not (sources and (device or precision)), "--from trains nothing, so it takes no --device and no --precision")
    if sources:
        results = read_results(sources, part, seeds, profile, _command())
    else:
        out = out or Path(store) / "-".join(filter(None, ("dat", profile, part)))
        results = _train(part, seeds or 1, profile, store, device or _best_device(), precision, out)
    show(results)
    pictures = _pictures(results) if out or page else {}
    written = [*(write_results(results, out, pictures) if out else ()), *(write_page(results, page, pictures) if page else ())]
    for path in written:
        click.echo(f"wrote {path}")


def _pictures(results: Results) -> dict[str, bytes]:
    """None where they cannot be drawn; the rest is written all the same."""
    from lengthlab.report.grid import grids

    try:
        return grids(results)
    except LabError as error:
        click.echo(f"no figure: {error}", err=True)
        return {}


def _train(part: str | None, seeds: int, profile: str, store: str, device: str, precision: str | None, out: Path) -> Results:
    from lengthlab.cli.publication import write_rows
    from lengthlab.cli.work import work
    from lengthlab.experiments.dat import PROFILES, trials
    from lengthlab.report.curves import read_curves
    from lengthlab.store import Store

    wanted = trials([part] if part else list(PARTS), range(seeds), PROFILES[profile])
    runs = list({trial.run.id: trial.run for trial in wanted}.values())
    _announce(runs, store, device, precision)
    try:
        return _results(work(runs, store, device, precision=precision), wanted, profile)
    except KeyboardInterrupt:
        finished, _ = read_curves([Store(store).folder(run.id) for run in runs if Store(store).folder(run.id).finished])
        if finished:
            write_rows(_results(finished, wanted, profile), out)
            click.echo(f"{len(finished)} of {len(runs)} runs are finished; their rows are in {out}", err=True)
        raise


def _results(curves: Sequence[Curve], wanted: Sequence[Trial], profile: str) -> Results:
    """What these curves come to, for the parts that were asked for."""
    from lengthlab.cli.sources import found_in

    found = found_in(curves, wanted, profile, _command())
    return gather(found.rows, found.made, dict.fromkeys(trial.cell.part for trial in wanted))


def _announce(runs: Sequence[Run], store: str, device: str, precision: str | None) -> None:
    """How much there is to do, and how long it will take."""
    from lengthlab.cli.forecast import seconds_for, steps_done
    from lengthlab.store import Store

    Store(store).prepare()
    left = [run for run in runs if not Store(store).folder(run.id).finished]
    click.echo(f"{len(runs)} runs, {len(runs) - len(left)} of them finished.", err=True)
    if left:
        click.echo("Timing a few steps of each kind.", err=True)
        seconds = seconds_for(left, device, steps_done(left, store), precision)
        click.echo(f"The other {len(left)} take about {duration(seconds)} on {device}.", err=True)


def _best_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _command() -> str:
    """What the user typed, for provenance."""
    return shlex.join(["lengthlab", *sys.argv[1:]])
