"""`lengthlab reproduce`"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lengthlab.cli import options
from lengthlab.cli.call import typed
from lengthlab.cli.options import Asked
from lengthlab.cli.pages import say
from lengthlab.errors import require

if TYPE_CHECKING:
    import torch

    from lengthlab.experiments import Section, Study
    from lengthlab.report.evidence import Wanted
    from lengthlab.report.results import Results


@click.command()
@click.argument("name", required=False, metavar="NAME")
@click.option("--size", help="One of the study's; if not given, the first that suits this machine, or that --from has.")
@click.option("--part", "parts", multiple=True, metavar="PART", help="A section of the study; may be repeated.")
@click.option(
    "--seeds", type=click.IntRange(1, 10_000), help="So many, from 0 on; if not given, the study's own, or all of --from."
)
@click.option("--check", is_flag=True, help="Say which committed pages differ from published rows; exit code 1 if any does.")
@click.option("--queue", "queued", is_flag=True, help="Train nothing: put what is missing into the store, for workers.")
@options.store
@options.device
@options.progress
@options.precision
@options.track
@options.launched
@click.option(
    "--have",
    multiple=True,
    type=options.Place(),
    metavar="FOLDER",
    help="Rows that are there: only what they lack is trained; may be repeated.",
)
@click.option(
    "--from",
    "sources",
    multiple=True,
    type=options.Place(),
    metavar="FOLDER",
    help="Train nothing, read rows or runs; may be repeated.",
)
@click.option(
    "--out",
    type=options.Place(path_type=Path),
    help="Folder for page, figures, rows and provenance; one in the store if not given.",
)
@click.option("--page", type=options.Place(path_type=Path), help="Write the page as this file, its figures beside it.")
def reproduce(
    name: str | None, size: str | None, parts: tuple[str, ...], seeds: int | None, check: bool, queued: bool, **given: Any
) -> None:
    """A study: trained where something is missing, judged, shown, and written as page, figures and rows.

    NAME is one of ours (`lengthlab experiments` lists them and tells what they claim) or your own, my_study.py:STUDY. It says
    first how long it will take on this machine. Stop it when you like: the same command goes on where it was. Without a GPU,
    look at what was published.

    \b
    lengthlab reproduce dat --from published
    lengthlab reproduce dat --part table2 --size paper
    lengthlab reproduce dat --from here/runs --from there/runs --out published/dat
    lengthlab reproduce far --seeds 3 --have published
    lengthlab reproduce far --queue && lengthlab worker runs && lengthlab reproduce far
    lengthlab reproduce examples/my_study.py:STUDY
    lengthlab reproduce --check

    Page, figures and rows are written to --out, or to STORE/NAME-SIZE; what --from reads, to STORE/NAME-SIZE-read.
    """
    from lengthlab.experiments import find_study, studies

    asked = Asked(**given)
    if check:
        trains = (asked.device != "auto", asked.precision, asked.have, asked.track, asked.launch != "local")
        others = (size, parts, seeds, queued, *trains, asked.sources, asked.out, asked.page)
        require(not any(others), "--check compares committed pages with published rows: it takes no other option")
        kept = [study for study in studies().values() if study.page]
        check_pages([find_study(name)] if name else [study for study in kept if is_begun(study)] or kept)
        return
    require(name is not None, f"name a study: {', '.join(studies())}, or one of your own, my_study.py:STUDY")
    require(name != "demo", "the demo is a command of its own: lengthlab demo")
    study = find_study(str(name))
    for part in parts:
        study.section(part)
    sections = tuple(section for section in study.sections if section.name in parts)
    if queued:
        _queue(study, size, sections, seeds, asked)
        return
    results = _read(study, size, sections, seeds, asked) if asked.sources else _train(study, size, sections, seeds, asked)
    show(results, asked, [section.name for section in sections], str(name))


def is_begun(study: Study) -> bool:
    """Whether the checkout has rows of it, or a page; of a study that nobody has trained yet, neither."""
    import lengthlab
    from lengthlab.report.evidence import PUBLISHED

    root = Path(lengthlab.__file__).parents[2]
    return any((root / path).exists() for path in (f"{PUBLISHED}/{study.name}", *map(study.page_at, study.sizes)))


def check_pages(studies: list[Study]) -> None:
    """Compare every committed page with what published rows come to."""
    from lengthlab.report.publication import differences

    found = 0
    for study in studies:
        require(bool(study.page), f"study '{study.name}' has no page in the checkout")
        for difference in differences(study):
            found += 1
            say(difference)
    if found:
        click.get_current_context().exit(1)
    say(f"{', '.join(study.name for study in studies)}: pages are as the published rows have them")


def _read(study: Study, size: str | None, sections: tuple[Section, ...], seeds: int | None, asked: Asked) -> Results:
    from lengthlab.report.publication import read_results

    return read_results(study, asked.sources, size, sections, seeds, typed())


def _train(study: Study, size: str | None, sections: tuple[Section, ...], seeds: int | None, asked: Asked) -> Results:
    from lengthlab.cli.reproduction import device_of, train
    from lengthlab.launch.cluster import cluster_named
    from lengthlab.report.results import gather

    cluster = cluster_named(asked.launch)
    device = device_of(cluster, asked.device)
    if device.type == "cuda":
        asked = replace(asked, precision=asked.precision or study.precision or None)
    wanted = _wanted(study, size, sections, device)
    out = asked.folder(study.name, wanted.size.name, *(section.name for section in sections))
    found = train(wanted, seeds or study.seeds, device, asked, out, cluster)
    return gather(study, wanted.size, wanted.sections, found)


def _wanted(study: Study, size: str | None, sections: tuple[Section, ...], device: torch.device) -> Wanted:
    """Of the size that is named, or the first that suits the device; without sections named, the usual ones."""
    from lengthlab.report.evidence import Wanted

    suited = [each for each in study.sizes if not each.gpu or device.type == "cuda"]
    chosen = study.size(size) if size is not None else (suited or list(study.sizes))[0]
    return Wanted(study, chosen, sections or tuple(each for each in study.sections_at(chosen) if each.usual), typed())


def _queue(study: Study, size: str | None, sections: tuple[Section, ...], seeds: int | None, asked: Asked) -> None:
    from lengthlab.cli.pages import say_queued
    from lengthlab.cli.reproduction import lacking
    from lengthlab.device import device_named
    from lengthlab.launch.queue import queue

    asked_more = {"--precision": asked.precision, "--track": asked.track, "--out": asked.out, "--page": asked.page}
    given = [option for option, value in (asked_more | {"--from": asked.sources}).items() if value]
    given += ["--launch"] if asked.launch != "local" else []
    require(not given, f"--queue trains nothing: it takes no {' or '.join(given)}")
    wanted = _wanted(study, size, sections, device_named(asked.device))
    _, runs = lacking(wanted, seeds or study.seeds, asked.have)
    precision = study.precision if wanted.size.gpu else ""
    say_queued(len(queue(runs, asked.store, asked.device)), asked.store, f" --precision {precision}" if precision else "")


def show(results: Results, asked: Asked, parts: list[str], name: str) -> None:
    """Write the page of a study with its figures and rows, and print it."""
    from lengthlab.cli.pages import drawn, show_page
    from lengthlab.report.markdown import markdown
    from lengthlab.report.publication import page_files, row_files, write_files
    from lengthlab.report.study_page import study_page, verdict_line

    page = study_page(results, name)
    pictures = drawn(page)
    folder = asked.folder(results.study.name, results.size.name, *parts)
    text = markdown(page, figures=pictures).encode()
    written = write_files(folder, row_files(results.evidence) | {f"{results.study.name}.md": text, **pictures})
    if asked.page:
        written += write_files(asked.page.parent, page_files(page, asked.page, pictures))
    show_page(page)
    if results.claims:
        say(f"Claims: {verdict_line(results)}.")
    for path in written:
        say(f"wrote {path}")
