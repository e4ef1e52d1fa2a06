"""`lengthlab evaluate`"""

from __future__ import annotations

import click

from lengthlab.cli import options


@click.command()
@click.argument("run")
@click.option("--lengths", required=True, type=options.Lengths(), help="Like 25,50,100,1000.")
@click.option("--samples", type=click.IntRange(min=1), help="At each length; 1,000 if not given, beyond 16,384 tokens fewer.")
@click.option("--part", metavar="NAME", help="Of a mixture: one task alone. It is printed, and not kept.")
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

    A run of a task or model of your own keeps the text of its file. Opening a folder never runs that, unless you trust it.
    """
    from contextlib import nullcontext

    from lengthlab.cli.run_folder import run_folder
    from lengthlab.cli.work import show
    from lengthlab.errors import require
    from lengthlab.evaluation.samples import USUAL
    from lengthlab.launch.measuring import Measuring
    from lengthlab.report.curves import curve_of_part, read_curves
    from lengthlab.training import measure, measure_part

    folder, most = run_folder(run, store), samples or USUAL
    with Measuring() if progress else nullcontext() as watch:
        # What is there is read first: nothing is added to what cannot be shown.
        for wanted in ((), lengths) if part is None else ((),):
            measure(folder, wanted, device, most, trust, watch)
            curves, problems = read_curves([folder])
            require(not problems, "; ".join(problems))
        if part is not None:
            alone = measure_part(folder, part, lengths, device, most, trust, watch)
            curves = [curve_of_part(curve, part, alone.counts, alone.chance) for curve in curves]
    show([curve.at(lengths) for curve in curves], as_json)
