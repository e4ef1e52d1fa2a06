"""`lengthlab evaluate`"""

from __future__ import annotations

import click

from lengthlab.cli import options


@click.command()
@click.argument("run")
@click.option("--lengths", required=True, type=options.Lengths(), help="Like 25,50,100,1000.")
@click.option("--samples", type=click.IntRange(min=1), help="At each length; 1,000 if not given, beyond 16,384 tokens fewer.")
@click.option("--part", metavar="NAME", help="Of a mixture: one task alone. It is printed, and not kept.")
@click.option(
    "--set", "choices", multiple=True, metavar="KEY=VALUE", help="With another value of the task: start=1. Printed, not kept."
)
@options.store
@options.device
@click.option("--trust", is_flag=True, help="Run the code of your own files that lies in the run folder.")
@click.option("--progress/--no-progress", default=True, help="Show how far it is, and how long it will take.")
@options.as_json
def evaluate(
    run: str,
    lengths: tuple[int, ...],
    samples: int | None,
    part: str | None,
    choices: tuple[str, ...],
    store: str,
    device: str,
    trust: bool,
    progress: bool,
    as_json: bool,
) -> None:
    """Measure a finished run at other lengths. RUN is a run folder, or the start of an id in the store.

    Beyond 32,768 tokens a model of the package reads a sequence in pieces, with the same result. Memory then grows by what the
    model keeps: a recurrence a few numbers, attention its keys and values. --lengths 1e6 is a length, too; how long it will
    take is said first. Of longer ones fewer are read, unless --samples says how many: 64 of 65,536 tokens, 20 of a million.

    \b
    lengthlab evaluate RUN --lengths 200,300
    lengthlab evaluate RUN --lengths 200 --set start=1            # coupled positions that begin elsewhere
    lengthlab evaluate RUN --lengths 50 --set within=first-half   # retrieval, the query's letter in the first half alone

    A run of a task or model of your own keeps the text of its file. Opening a folder never runs that, unless you trust it.
    """
    from contextlib import nullcontext
    from functools import partial

    from lengthlab.cli.run_folder import run_folder
    from lengthlab.cli.work import show
    from lengthlab.errors import require
    from lengthlab.evaluation.samples import USUAL
    from lengthlab.launch.measuring import Measuring
    from lengthlab.report.curves import curve_elsewhere, read_curves
    from lengthlab.training import measure, measure_on
    from lengthlab.training.other_task import made_with, part_of

    require(part is None or not choices, "--part and --set are two other tasks: give one of them")
    folder, most = run_folder(run, store), samples or USUAL
    elsewhere = bool(part or choices)
    with Measuring() if progress else nullcontext() as watch:
        # What is there is read first: nothing is added to what cannot be shown.
        for wanted in ((),) if elsewhere else ((), lengths):
            measure(folder, wanted, device, most, trust, watch)
            curves, problems = read_curves([folder])
            require(not problems, "; ".join(problems))
        if elsewhere:
            whose, told = f"run {folder.id}", f"{part} alone" if part else ", ".join(choices)
            other = partial(part_of, name=part, whose=whose) if part else partial(made_with, choices=choices, whose=whose)
            found = measure_on(folder, other, lengths, device, most, trust, watch)
            curves = [curve_elsewhere(curve, told, found.counts, found.chance) for curve in curves]
    show([curve.at(lengths) for curve in curves], as_json)
