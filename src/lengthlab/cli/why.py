"""`lengthlab why`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lengthlab.cli import options
from lengthlab.cli.pages import say, show_page
from lengthlab.errors import LabError, explain, require

if TYPE_CHECKING:
    from lengthlab.store import Folder
    from lengthlab.store.diagnosis import Diagnosis


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@click.option(
    "--model", type=options.Place(path_type=Path), help="A folder with a trained Hugging Face model, instead of runs."
)
@click.option("--task", help="What that model is asked: recall, my_task.py:Task.")
@click.option("--set", "choices", multiple=True, metavar="KEY=VALUE", help="What the task is made with: --set keys=64")
@click.option("--lengths", type=options.Lengths(), default=None, help="Like 10,20,40; those of the run if not given.")
@click.option("--anew", is_flag=True, help="Measure again what is kept beside a run.")
@options.store
@options.device
@click.option("--trust", is_flag=True, help="Run the code of your own files that lies in the run folder.")
@click.option("--progress/--no-progress", default=True, help="Say what is being measured.")
@click.option("--json", "as_json", is_flag=True, help="Print what is kept as JSON instead of tables.")
def why(
    runs: tuple[str, ...],
    model: Path | None,
    task: str | None,
    choices: tuple[str, ...],
    lengths: tuple[int, ...] | None,
    anew: bool,
    store: str,
    device: str,
    trust: bool,
    progress: bool,
    as_json: bool,
) -> None:
    """Why a finished run goes as far as it does. RUN is a run folder, the start of an id in the store, or a store.

    Which pathway carries each answer, attention or the recurrence, found by cutting one of them; whether attention is sharp,
    whether the state is right, where it will break by what short sequences tell, and where it did; what is left of a wrong
    answer. It is kept beside the run (why.json), and `lengthlab report` shows it. Of several runs: where they were foretold to
    break, where they did, and the rank correlation of the two.

    \b
    lengthlab why 65dae4
    lengthlab why --model checkpoint --task recall --set keys=64 --lengths 8,16,32

    A trained Hugging Face model is looked into at --lengths, of which the first is taken for what it knows; nothing is kept.
    """
    import json

    from lengthlab.report.why_page import why_page, why_summary

    if model is not None:
        require(not runs, "name runs, or a --model")
        if task is None or not lengths:
            raise LabError("--model needs --task and --lengths, too: what it is asked, and how long")
        found, failed = [_of_model(model, task, choices, lengths, device, progress)], list[str]()
    else:
        require(task is None and not choices, "--task and --set are for a --model: a run knows its task")
        require(len(runs) > 0, "name a run: a run folder, the start of an id in the store, or a store")
        found, failed = _diagnosed(_folders(runs, store), lengths or (), device, trust, anew, progress)
    if failed and not found:
        raise LabError(failed[0])
    for line in failed:
        say(f"lengthlab: left out: {line}", err=True)
    if as_json:
        data = [each.to_json() for each in found]
        click.echo(json.dumps(data[0] if len(runs) <= 1 and len(data) == 1 else data, indent=1))
    else:
        show_page(why_page(found[0]) if len(found) == 1 else why_summary(found))


def _diagnosed(
    folders: list[Folder], lengths: tuple[int, ...], device: str, trust: bool, anew: bool, progress: bool
) -> tuple[list[Diagnosis], list[str]]:
    """Of every run, and a line for each that could not be looked into."""
    from lengthlab.training.diagnosis import diagnose

    found, failed = [], []
    for folder in folders:

        def told(text: str, run: str = folder.id[:8]) -> None:
            if progress:
                say(f"{run}: {text}", err=True)

        try:
            found.append(diagnose(folder, lengths, device, trust, anew, told))
        except (LabError, OSError) as error:
            failed.append(explain(error))
    return found, failed


def _of_model(
    path: Path, name: str, choices: tuple[str, ...], lengths: tuple[int, ...], device: str, progress: bool
) -> Diagnosis:
    """Of a trained model of Hugging Face's, which is taken to know the shortest of the lengths."""
    from dataclasses import replace

    from lengthlab.device import device_named, settled
    from lengthlab.evaluation.accuracy import accuracy
    from lengthlab.inspection import find_task
    from lengthlab.inspection.why import examine
    from lengthlab.integrations.trained_lm import trained_lm

    task = find_task(name, choices)
    require(task is not None, f"'{name}' is no task: lengthlab tasks lists them")
    assert task is not None
    for length in lengths:
        task.check_length(length)
    network, notes = trained_lm(path, task.words)
    place = device_named(device)
    with settled(place):
        network = network.to(place).eval()
        told = (lambda text: say(f"{path.name}: {text}", err=True)) if progress else (lambda text: None)
        counts = accuracy(network, task, lengths, samples=200)
        known = (task.shortest, max(task.shortest, min(lengths)))
        found = examine(network, task, known, lengths, counts, path.name, path.name, told)
    return replace(found, notes=(*found.notes, *notes))


def _folders(names: tuple[str, ...], store: str) -> list[Folder]:
    """A store stands for its finished runs."""
    from lengthlab.cli.run_folder import run_folder
    from lengthlab.store import Store

    found: list[Folder] = []
    for name in names:
        stored = name and not (Path(name) / "run.json").exists() and any(Path(name).glob("*/run.json"))
        found += [each for each in Store(name).folders() if each.finished] if stored else [run_folder(name, store)]
    require(len(found) > 0, f"no finished run in {', '.join(names)}")
    return found
