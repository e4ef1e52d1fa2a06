"""The files that a study leaves behind, and whether those that are committed are what its published rows come to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

import lengthlab
from lengthlab.errors import LabError, require
from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, Section, Study
from lengthlab.report import provenance, traces
from lengthlab.report.evidence import PUBLISHED, Evidence, Wanted, read_evidence
from lengthlab.report.figure import pictures
from lengthlab.report.markdown import markdown
from lengthlab.report.page import Page
from lengthlab.report.results import Results, arm_of, gather
from lengthlab.report.study_page import study_page
from lengthlab.store import replace_file
from lengthlab.store.ids import SHORT
from lengthlab.store.rows import FILE, Row, as_jsonl


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Each file whole or not at all."""
    for name, data in files.items():
        replace_file(folder / name, data)
    return [folder / name for name in files]


def row_files(evidence: Evidence) -> dict[str, bytes]:
    """`results.jsonl`, `provenance.json` and, where it is known how training went, `traces.jsonl`: what `--from` reads."""
    files = {FILE: as_jsonl(evidence.rows), provenance.FILE: provenance.as_text(evidence.origins)}
    files |= {traces.FILE: traces.as_jsonl(evidence.traces)} if evidence.traces else {}
    return {name: text.encode() for name, text in files.items()}


def page_files(page: Page, path: Path, drawn: Mapping[str, bytes]) -> dict[str, bytes]:
    """The page by the name of `path`, and its figures in the folder of that name beside it."""
    figures = {f"{path.stem}/{name}": data for name, data in drawn.items() if name.endswith(".svg")}
    return {path.name: markdown(page, f"{path.stem}/", drawn).encode(), **figures}


def read_results(
    study: Study,
    sources: tuple[str, ...],
    size: str | None = None,
    sections: tuple[Section, ...] = (),
    seeds: int | None = None,
    command: str = "",
) -> Results:
    """What these folders have of a study: of the size asked for, or of the first that there are rows of. Without sections
    named, the usual ones and those that there is something of.
    """
    for chosen in [study.size(size)] if size is not None else study.sizes:
        results = results_at(study, sources, chosen, sections, seeds, command)
        if results:
            return results
    of_size = f", size '{size}'" if size else ""
    raise LabError(f"no rows of experiment '{study.name}'{of_size}, in {', '.join(sources)}")


def results_at(
    study: Study,
    sources: tuple[str, ...],
    size: Size,
    sections: tuple[Section, ...] = (),
    seeds: int | None = None,
    command: str = "",
) -> Results | None:
    """What these folders have of one size, if anything."""
    found = read_evidence(sources, Wanted(study, size, sections, command), seeds)
    if not found.rows:
        return None
    arms = {arm_of(row) for row in found.rows}
    usual = [each for each in study.sections_at(size) if each.usual or arms & set(each.arms)]
    return gather(study, size, sections or usual, found)


def differences(study: Study) -> Iterator[str]:
    """What the committed pages of a study and their figures say otherwise than its published rows, and how to mend it; and
    which of these rows are of other runs than the study asks for now. Every size that has rows has a page, and no other has.
    """
    root = Path(lengthlab.__file__).parents[2]
    where = f"{PUBLISHED}/{study.name}"
    require(
        (root / where).is_dir(), f"{where} is not here: rows and pages are in a checkout of lengthlab, not in an installation"
    )
    found = 0
    for size in study.sizes:
        page = study.page_at(size)
        results = results_at(study, (str(root / PUBLISHED),), size)
        if results:
            found += 1
            command = f"lengthlab reproduce {study.name} --from {PUBLISHED} --size {size.name} --page {page}"
            yield from (f"{told}; run: {command}" for told in _page_differences(results, root / page, root))
            yield from _outdated(study, size, results.evidence.rows)
        elif (root / page).is_file() or (root / page).with_suffix("").is_dir():
            yield f"{page} has no published rows; delete it and its figures"
    if not found:
        yield f"{where} has no rows of any size of the study"


def _outdated(study: Study, size: Size, rows: Iterable[Row]) -> Iterator[str]:
    """A recipe that was edited after its rows were published: a table would tell the numbers of another one."""
    trained: dict[Arm, set[tuple[int, str]]] = {}
    for row in rows:
        trained.setdefault(arm_of(row), set()).add((row.seed, row.run[:SHORT]))
    seeds = {seed for runs in trained.values() for seed, _ in runs}
    asked: dict[Arm, set[tuple[int, str]]] = {}
    for arm, run in study.runs(size.name, seeds):
        asked.setdefault(arm, set()).add((run.seed, run.id[:SHORT]))
    for arm, runs in asked.items():
        others = sorted({seed for seed, _ in trained.get(arm, set()) - runs})
        if others:
            told = ", ".join(map(str, others))
            part = next(section.name for section in study.sections_at(size) if arm in section.arms)
            words = f"lengthlab reproduce {study.name} --part {part} --size {size.name} --seeds {others[-1] + 1}"
            what = f"rows of seeds {told} are of another recipe than it has now"
            yield f"{PUBLISHED}/{study.name}: {arm}: {what}; train: {words} --have {PUBLISHED}"


def _page_differences(results: Results, path: Path, root: Path) -> Iterator[str]:
    page = study_page(results)
    files = page_files(page, path, pictures(page, ["svg"]))
    for name, data in files.items():
        there = path.parent / name
        if not there.is_file():
            yield f"{there.relative_to(root)} is missing"
        elif not _same(there.read_bytes(), data, name):
            yield f"{there.relative_to(root)} differs"
    figures = path.parent / path.stem
    for old in sorted(figures.glob("*.svg")) if figures.is_dir() else ():
        if f"{path.stem}/{old.name}" not in files:
            yield f"{old.relative_to(root)} is on no page"


def _same(there: bytes, here: bytes, name: str) -> bool:
    """Figures by what they say: how they are drawn may change with matplotlib."""
    return texts(there) == texts(here) if name.endswith(".svg") else there == here


def texts(svg: bytes) -> list[str]:
    """What a figure says."""
    try:
        drawing = ElementTree.fromstring(svg.decode())
    except (ElementTree.ParseError, UnicodeDecodeError):
        return []
    return [node.text or "" for node in drawing.iter("{http://www.w3.org/2000/svg}text")]
