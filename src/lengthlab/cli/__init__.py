"""What a user types. Nothing here imports torch before it is needed, so that help is quick."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from traceback import walk_tb

import click

import lengthlab
from lengthlab.cli.bench import bench
from lengthlab.cli.catalogue import experiments, models, tasks
from lengthlab.cli.check import check
from lengthlab.cli.delay import delay
from lengthlab.cli.demo import demo
from lengthlab.cli.evaluate import evaluate
from lengthlab.cli.fetch import fetch
from lengthlab.cli.figure import figure
from lengthlab.cli.guarantee import guarantee
from lengthlab.cli.launch import launch
from lengthlab.cli.pages import say
from lengthlab.cli.report import report
from lengthlab.cli.reproduce import reproduce
from lengthlab.cli.rules import rules
from lengthlab.cli.serve import serve
from lengthlab.cli.status import status
from lengthlab.cli.train import train
from lengthlab.cli.why import why
from lengthlab.cli.worker import worker
from lengthlab.errors import TRACE, LabError, explain, place_of
from lengthlab.report.encoding import spell


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(lengthlab.__version__, prog_name="lengthlab")
def cli() -> None:
    """Train sequence models on short sequences, and find out how far beyond that length they still work.

    Start with: lengthlab demo
    """


COMMANDS = (
    *(demo, train, launch, worker, status, fetch, reproduce, evaluate, why, report, figure, serve, bench, delay, check),
    *(guarantee, rules, tasks, models, experiments),
)
for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Run the command line; whatever the user can mend ends in one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        spell(stream)
    atexit.register(gc.freeze)  # all of it goes with the process: nobody has to look for garbage in it first
    sys.exit(_run())


def _run() -> int:
    """The exit code of what was typed."""
    try:
        return cli(standalone_mode=False) or 0
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        ctx = getattr(error, "ctx", None)
        _say(f"{error.format_message().rstrip('.')}; see {ctx.command_path if ctx else 'lengthlab'} --help")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _say("stopped; what was trained so far is kept, and the same command goes on from there")
        return 130
    except BaseException as error:
        if isinstance(error, BrokenPipeError) or _pipe_is_closed(error):  # nobody reads on, as after `| head`
            sys.stderr.close()
            return 1
        foreseen = isinstance(error, (LabError, OSError, SystemExit))
        if TRACE in os.environ and not foreseen:
            raise
        hint = "" if foreseen or place_of(error) else f" (set {TRACE}=1 to see where)"
        _say(f"{explain(error)}{hint}")
        return 2


def _pipe_is_closed(error: BaseException) -> bool:
    """Whether click or rich exits by itself: each does where a pipe is closed, and says no more of it."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return isinstance(error, SystemExit) and str(frames[-1].f_globals.get("__name__")).startswith(("click.", "rich."))


def _say(text: str) -> None:
    say(f"lengthlab: {' '.join(text.split())}", err=True)
