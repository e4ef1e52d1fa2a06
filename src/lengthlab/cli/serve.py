"""`lengthlab serve`"""

from __future__ import annotations

import shlex
import webbrowser

import click

from lengthlab.cli.pages import say
from lengthlab.errors import LabError

PORT = 8011


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUNS...")
@click.option("--host", default="127.0.0.1", show_default=True, help="0.0.0.0: for every machine that gets here.")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="0: one that is free.")
@click.option("--open", "open_it", is_flag=True, help="Open the page in a browser.")
def serve(runs: tuple[str, ...], host: str, port: int, open_it: bool) -> None:
    """The page of a report, live: runs appear, curves grow, finished ones settle. RUNS are run folders or stores;
    or `published`, whose pages stay as they are.

    It reads, and writes nothing. Nobody but this machine can ask for it, unless --host says so; whoever can, sees RUNS.
    """
    try:
        from lengthlab.serve.server import serve as serve_runs
    except ImportError as error:
        raise LabError(f"a live page needs {error.name}: pip install 'lengthlab[serve]'") from None

    def ready(address: str) -> None:
        say(f"{address} shows {', '.join(runs)}; end it with Ctrl-C", err=True)
        if open_it and not webbrowser.open(address):
            say("lengthlab: no browser was found: open the address by hand", err=True)

    serve_runs(runs, host, port, shlex.join(["lengthlab", "report", *runs]), ready)
