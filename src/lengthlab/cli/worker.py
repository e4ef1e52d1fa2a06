"""`lengthlab worker`"""

from __future__ import annotations

import click

from lengthlab.cli import options
from lengthlab.cli.pages import say
from lengthlab.store.lease import HOST, SECONDS


@click.command()
@options.shared
@options.device
@options.precision
@click.option("--most", type=click.IntRange(min=1), help="Runs side by side on a GPU; as many as have room if not given.")
@click.option("--watch", is_flag=True, help="Go on for ever: wait for new runs when there are none.")
@click.option("--trust", is_flag=True, help="Run code that lies in run folders, where a run has some of its own.")
@click.option("--host", default=HOST, help="What this machine is called, if several call themselves the same.")
@click.option(
    "--lease",
    type=options.Finite(1, 86_400),
    default=SECONDS,
    show_default=True,
    help="Seconds without a sign of life after which others take over.",
)
def worker(
    store: str, device: str, precision: str | None, most: int | None, watch: bool, trust: bool, host: str, lease: float
) -> None:
    """Train runs of a store that are not finished, beside any number of other workers, on any machine that sees the
    folder. STORE may be an object store, s3://bucket/runs, too: then that is all they share.

    \b
    lengthlab train sweep.toml --queue --store /shared/runs    once
    lengthlab worker /shared/runs                              on every machine, once for each GPU or core
    lengthlab status /shared/runs                              who has what

    A GPU gets as many runs at a time as it has room for, or --most, so that several workers share what there is; a CPU gets
    one. A worker that is killed loses nothing: another one takes its runs over and goes on from their checkpoints, and if it
    was only slow, it finds out before it writes.
    """
    from lengthlab.device import device_named, in_words
    from lengthlab.launch.claims import ClaimingWorker
    from lengthlab.store.lease import Owner
    from lengthlab.training.precision import precision_named

    chosen = device_named(device)
    me = Owner(host, seconds=lease)
    kept_in = precision_named(precision, chosen)
    claiming = ClaimingWorker(store, chosen, kept_in, me, trust, lambda line: say(line, err=True), most=most)
    claiming.store.prepare()
    say(f"worker {me.id} on {host}, {in_words(chosen, 1)}", err=True)
    tally = claiming.work(watch)
    say(
        f"nothing is left to do: {tally.trained} trained, {tally.taken_over} of them taken over, {tally.failed} failed",
        err=True,
    )
    if tally.failed:
        click.get_current_context().exit(1)
