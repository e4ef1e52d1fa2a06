"""`lengthlab fetch`"""

from __future__ import annotations

import click

from lengthlab.cli import options
from lengthlab.cli.pages import say


@click.command()
@click.argument("address", metavar="s3://BUCKET/RUNS")
@click.argument("folder", type=options.Place(file_okay=False), metavar="FOLDER")
def fetch(address: str, folder: str) -> None:
    """Bring the finished runs of an object store into a folder, for `report`, `evaluate`, `why`, `serve` and all that reads
    folders. What is there already is not fetched again.

    \b
    lengthlab fetch s3://bucket/runs runs && lengthlab report runs
    """
    from lengthlab.store.copies import fetch as fetch_runs

    done = fetch_runs(address, folder)
    say(f"{done.new} runs fetched to {folder}; {done.there} were there, {done.unfinished} are not finished", err=True)
