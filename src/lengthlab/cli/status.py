"""`lengthlab status`"""

from __future__ import annotations

import json

import click

from lengthlab.cli import options
from lengthlab.cli.pages import say


@click.command()
@options.shared
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def status(store: str, as_json: bool) -> None:
    """Where the runs of a store are, which worker has which, and why runs failed."""
    from lengthlab.store.copies import to_look_at
    from lengthlab.store.holders import holders_of
    from lengthlab.store.status import duration

    with to_look_at(store) as folder:
        found = holders_of(folder)
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=1))
        return
    counts = ", ".join(f"{number} {state}" for state, number in sorted(found.counts.items()))
    say(f"{len(found.statuses)} runs: {counts}" if counts else "no runs")
    known = {each.run: each for each in found.statuses}
    for worker in found.workers:
        said = f"{worker.host}, process {worker.process}, {worker.device}, last heard {worker.heard} by its clock"
        say(f"worker {worker.id}: {said}; {len(worker.runs)} run{'s' * (len(worker.runs) != 1)}")
        for run in worker.runs:
            here = known[run]
            left = f", {duration(here.seconds_left)} left" if here.seconds_left else ""
            name = f"{here.model} {here.training} seed {here.seed}"
            say(f"  {run}  {name}: {here.state}, step {here.step}/{here.steps or '?'}{left}")
    for run, failures in found.failures.items():
        say(f"{run} {'is parked' if run in found.parked else 'failed'}:")
        for failure in failures:
            say(f"  on {failure.host}: {failure.message}")
