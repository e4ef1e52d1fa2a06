"""`lengthlab reproduce far`, `remedies`, …: a command for each of our own questions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from lengthlab.cli import options
from lengthlab.cli.call import best_device, typed
from lengthlab.errors import LabError
from lengthlab.paper.cells import TRAINED

if TYPE_CHECKING:
    from lengthlab.cli.sources import Found, Wanted
    from lengthlab.report.study import Findings
    from lengthlab.rows import Row

ABOUT = {
    "far": "Both skills of one model, to 40 times its training length and beyond.",
    "plateau": "What lets recall wake up when attention is opened, and a delay that ends by itself.",
    "remedies": "Positions × scores × {end to end, delayed}: which keeps recall, which keeps the state.",
}
"""What `--help` says; experiments say more, and need torch to be read."""


def _command(name: str, about: str) -> click.Command:
    @click.option("--size", type=click.Choice(["gpu", "cpu"]), help="Of models and data; if not given, gpu where there is one.")
    @click.option("--seeds", type=click.IntRange(min=1), help="So many, from 0 on; as many as published if not given.")
    @options.reproduction
    def study(size: str | None, seeds: int | None, asked: options.Asked) -> None:
        reproduce_study(name, size, seeds, asked)

    study.__doc__ = f"""{about}

    Says first how long it will take on this machine. Only what is missing is trained; stop it when you like, and the same
    command goes on where it was.

    \b
    lengthlab reproduce {name} --from published
    lengthlab reproduce {name} --size cpu

    `lengthlab experiments {name}` tells the claim, the runs and what they cost.
    """
    return click.command(name)(study)


def reproduce_study(name: str, size: str | None, seeds: int | None, asked: options.Asked) -> None:
    """Train or read a study, show it, and write its rows, page and figures."""
    from lengthlab.cli.publication import show_study, write_study
    from lengthlab.cli.reproduction import train
    from lengthlab.experiments import STUDIES

    if asked.sources:
        wanted, found = read_study(name, size, asked.sources, seeds)
    else:
        device = asked.device or best_device()
        wanted = wanted_of_study(name, size or ("gpu" if device.startswith("cuda") else "cpu"))
        found = train(wanted, seeds or STUDIES[name].seeds, asked, asked.folder(name, wanted.profile))
    results = findings_of(name, wanted, found, asked.sources or asked.have)
    show_study(results)
    for path in write_study(results, asked.folder(name, wanted.profile), asked.page):
        click.echo(f"wrote {path}")


def read_study(name: str, size: str | None, sources: tuple[str, ...], seeds: int | None) -> tuple[Wanted, Found]:
    """The rows of the size asked for, or of the first that there are rows of."""
    from lengthlab.cli.sources import read_sources

    wanted = wanted_of_study(name, size or "gpu")
    try:
        return wanted, read_sources(sources, wanted, typed(), seeds)
    except LabError:
        if size:
            raise
        other = wanted_of_study(name, "cpu")
        return other, read_sources(sources, other, typed(), seeds)


def wanted_of_study(name: str, size: str) -> Wanted:
    """The rows of a study at one size."""
    from lengthlab.cli.sources import Wanted
    from lengthlab.experiments import STUDIES

    study = STUDIES[name]
    lengths = sorted({length for arm in study.arms(size) for length in arm.run.evaluate})
    return Wanted(name, size, tuple(lengths), lambda seeds: study.trials(size, seeds))


def findings_of(name: str, wanted: Wanted, found: Found, sources: Sequence[str] = ()) -> Findings:
    """What is shown of a study; `sources` may have the paper's rows, to be shown beside it."""
    from lengthlab.experiments import STUDIES
    from lengthlab.report.study import Findings

    study, trials = STUDIES[name], wanted.trials((0,))
    longest, cells = trials[0].run.lengths[1], tuple(trial.cell for trial in trials)
    beside = _paper_rows(sources) if study.beside_paper and longest == TRAINED[1] else ()
    asked = Findings(
        name, study.title, study.question, longest, wanted.lengths, cells, study.reference, study.note, beside=beside
    )
    return asked.having(found.rows, found.made, found.courses)


def _paper_rows(sources: Sequence[str]) -> tuple[Row, ...]:
    """Of the paper's figure, where there are any."""
    from lengthlab.cli.sources import read_sources, together, wanted_of_paper

    found = {}
    for name in dict.fromkeys(sources):
        with suppress(LabError):  # most folders have none
            found[name] = read_sources((name,), wanted_of_paper("short"), typed())
    return tuple(row for row in together(found).rows if row.part == "figure1")


studies = [_command(name, about) for name, about in ABOUT.items()]
