"""`lengthlab reproduce`"""

from __future__ import annotations

import click

from lengthlab.cli import options
from lengthlab.cli.call import typed
from lengthlab.cli.study import studies
from lengthlab.paper.cells import EVERY_PART, PARTS

PROFILE = click.Choice(["short", "paper"])


@click.group()
def reproduce() -> None:
    """The paper, run again, and our own questions: every number with its seeds and interval."""


for command in studies:
    reproduce.add_command(command)


@reproduce.command()
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(EVERY_PART),
    help="May be repeated; without it the two tables and the figure.",
)
@click.option("--seeds", type=click.IntRange(min=1), help="So many, from 0 on; 1 if not given, or all that --from has.")
@click.option("--profile", type=PROFILE, default="short", show_default=True, help="The cheapest schedule, or the paper's.")
@options.reproduction
def dat(parts: tuple[str, ...], seeds: int | None, profile: str, asked: options.Asked) -> None:
    """Delayed attention training (arXiv 2510.00258): two tables and a figure, 26 cells, ours beside the paper's.

    Says first how long it will take on this machine. Only what is missing is trained. Stop it when you like: the same command
    goes on where it was. Without a GPU, look at what was published.

    \b
    lengthlab reproduce dat --part table2
    lengthlab reproduce dat --from published
    lengthlab reproduce dat --from here/runs --from there/runs --out published/dat
    lengthlab reproduce dat --seeds 3 --have published

    Page, figures and rows are written to --out, or to STORE/dat-PROFILE; what --from reads, to STORE/dat-PROFILE-read.
    """
    from lengthlab.cli.publication import drawn, show, write_page, write_results
    from lengthlab.cli.reproduction import train
    from lengthlab.cli.sources import read_results, wanted_of_paper
    from lengthlab.report.grid import grids
    from lengthlab.report.results import gather

    parts = tuple(part for part in EVERY_PART if part in parts)
    out = asked.folder("dat", profile, *parts)
    if asked.sources:
        results = read_results(asked.sources, parts, seeds, profile, typed())
    else:
        found = train(wanted_of_paper(profile, parts or tuple(PARTS)), seeds or 1, asked, out)
        results = gather(found.rows, found.made, parts or tuple(PARTS), found.courses)
    show(results)
    pictures = drawn(lambda: grids(results))
    written = write_results(results, out, pictures)
    written += write_page(results, asked.page, pictures) if asked.page else []
    for path in written:
        click.echo(f"wrote {path}")
