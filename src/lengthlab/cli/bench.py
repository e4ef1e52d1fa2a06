"""`lengthlab bench`"""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from lengthlab.bench.measurement import PARTS, Findings
from lengthlab.cli import options
from lengthlab.cli.pages import say, show_page
from lengthlab.errors import LabError, nearest, require
from lengthlab.store import check_place

SIZE = click.Choice(["paper", "demo"])


class Parts(click.ParamType):  # type: ignore[type-arg]  # older click cannot be subscripted
    """`one,suite`"""

    name = "parts"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        asked = str(value).split(",")
        for part in asked:
            if part not in PARTS:
                self.fail(f"unknown part '{part}'; {nearest(part, PARTS)}", param, ctx)
        return tuple(part for part in PARTS if part in asked)


@click.command()
@options.device
@click.option("--size", type=SIZE, help="Of the models: the paper's, or the demo's; if not given, the demo's on a CPU.")
@click.option("--part", "parts", type=Parts(), help=f"Some of {','.join(PARTS)}; all if not given. The floor takes one along.")
@click.option("--json", "as_json", is_flag=True, help="Print the data as JSON instead of tables.")
@click.option(
    "--out", type=options.Place(path_type=Path), metavar="FOLDER", help="Write bench.json, bench.md and figures there."
)
def bench(device: str, size: str | None, parts: tuple[str, ...] | None, as_json: bool, out: Path | None) -> None:
    """Our speed against the textbook PyTorch loop: same math, same samples a step, same machine, in one go.

    \b
    one      each of the paper's seven architectures alone
    suite    its 26 cells
    runs     by number of runs, 1 to 26
    lengths  by longest training sequence, 25 to 200 pairs
    floor    how far from the time that the arithmetic alone would take
    guard    what it costs to see that what is delayed stands still, as a share of a step
    reading  a sequence of up to millions of tokens, in pieces: seconds and memory
    """
    # Streams of one process share 8 queues to the GPU unless told otherwise, before the GPU is first touched.
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    from lengthlab.cli.timing import PATIENCE, find
    from lengthlab.device import AUTO, device_named, in_words

    place = device_named(device)
    if device == AUTO and place.type not in PATIENCE:
        place = device_named("cpu")
    require(place.type in PATIENCE, f"the bench times cpu or cuda, not '{place.type}'")
    if out:
        check_place(out, "--out")
    try:
        click.echo(f"timing on {in_words(place, os.cpu_count() or 1)}", err=True)
        findings = find(place, size or ("paper" if place.type == "cuda" else "demo"), parts or tuple(PARTS))
    except KeyboardInterrupt:
        click.echo("lengthlab: stopped; of a bench that was stopped nothing is kept", err=True)
        raise click.exceptions.Exit(130) from None
    _show(findings, as_json)
    if out:
        for path in _write(findings, out):
            say(f"wrote {path}", err=as_json)


def _show(findings: Findings, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(findings.to_json(), indent=1))
        return
    from lengthlab.bench.page import bench_page

    show_page(bench_page(findings))


def _write(findings: Findings, folder: Path) -> list[Path]:
    from lengthlab.bench.page import bench_page
    from lengthlab.report.markdown import markdown
    from lengthlab.report.publication import write_files

    data = json.dumps(findings.to_json(), indent=1) + "\n"
    files = {"bench.json": data.encode(), "bench.md": markdown(bench_page(findings)).encode()}
    return write_files(folder, files | _figure(findings))


def _figure(findings: Findings) -> dict[str, bytes]:
    """Of long sequences, if they were read; numbers are written without it where nothing can be drawn."""
    from lengthlab.report.costs import Cost
    from lengthlab.report.figure import cost_pictures

    read = findings.of("reading")
    if not read:
        return {}
    costs = [Cost(each.way, each.samples, each.pace, each.memory) for each in read]
    try:
        return cost_pictures(costs, PARTS["reading"], f"One sample, on {findings.origin.hardware}; memory beyond the weights.")
    except LabError as error:
        say(f"no figure: {error}", err=True)
        return {}
