"""A study as a table: in the terminal, and as a Markdown page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from lengthlab.paper.cells import GREEN
from lengthlab.report.comparison import Entry, Line
from lengthlab.report.courses import AWAKE
from lengthlab.report.markdown import accuracy_mark, table_row
from lengthlab.report.page import made_lines
from lengthlab.report.provenance import makers_of
from lengthlab.report.scoreboard import two_digits
from lengthlab.report.study import QUESTIONS, Findings

NAMES = ("arm", "model", "training")
COURSE = ("steps", "opened", "slept", "ms a step")

BESIDE = (
    "Thin: hybrids of the paper's Figure 1, with rotary positions, as `lengthlab reproduce dat` has them and tells where they "
    "come from. The paper's own curves are a picture without numbers; its text has every delayed hybrid above 0.90 at n = 75, "
    "and lower at 100."
)


def study_table(study: Findings) -> Table:
    """For the terminal: a line for each arm and question, the mean over seeds; then each seed's `both`."""
    plain = {"box": box.SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "padding": (0, 1, 0, 0)}
    table = Table(title=f"{study.title}. {study.question}", title_justify="left", header_style="bold", **plain)  # type: ignore[arg-type]
    for name in (*NAMES, *COURSE, "right"):
        table.add_column(name, no_wrap=True)
    for length in study.lengths:
        style = "bold" if length <= study.longest else "bold cyan"
        table.add_column(f"n={length}\n{study.times(length)}", justify="right", header_style=style, no_wrap=True)
    by_question = [study.lines(question) for question in QUESTIONS]
    for arm in zip(*by_question, strict=True):
        _add(table, arm, _course(study, arm[0]))
    return table


def _add(table: Table, arm: tuple[Line, ...], course: Sequence[str]) -> None:
    cell, both = arm[0].cell, arm[0]
    for question, line in zip(QUESTIONS, arm, strict=True):
        names = (cell.part, cell.model, cell.training, *course) if line is both else [""] * len((*NAMES, *COURSE))
        shades = ["green" if (entry.ours or 0) > GREEN else "" for entry in line.entries]
        cells = [Text(two_digits(entry.ours), style) for entry, style in zip(line.entries, shades, strict=True)]
        table.add_row(*names, question, *cells)
    for seed in both.seeds if len(both.seeds) > 1 else ():
        cells = [Text(two_digits(entry.by_seed.get(seed)), "dim") for entry in both.entries]
        table.add_row(*[""] * len((*NAMES, *COURSE)), Text(f"both, seed {seed}", "dim"), *cells)
    table.add_section()


def study_page(study: Findings, pictures: str = "") -> str:
    """The whole page; `pictures` is the way from the page to the folder of the figures, with a slash at its end."""
    lines = [
        *_opening(study, pictures),
        *_overview(study),
        *_details(study),
        *made_lines(study.made, {row.run for row in study.rows}),
    ]
    return "\n".join(lines) + "\n"


def _opening(study: Findings, pictures: str) -> Iterator[str]:
    yield from (f"# {study.title}", "")
    command = f"lengthlab reproduce {study.name}"
    yield from (f"Written by `{command}`; what is changed here by hand is lost with the next time.", "", study.question, "")
    samples = " or ".join(f"{total:,}" for total in study.samples) or "no"
    seeds = ", ".join(map(str, study.seeds)) or "none"
    yield (
        f"Trained on n = 1…{study.longest}. Seeds: {seeds}; {samples} samples a length and seed. Numbers are means over seeds "
        "of the share of samples that are right; intervals are Wilson's at 95 %, over the samples of all seeds together: every "
        "seed answers the same samples, and how much seeds differ is not in them, so each seed is shown. *Missing*: not "
        "measured."
    )
    if study.rows:
        yield from ("", f"![{study.title}: accuracy by length]({pictures}{study.name}.svg)")
    if study.note:
        yield from ("", study.note)
    if study.rows and study.beside:
        yield from ("", BESIDE)


def _overview(study: Findings) -> Iterator[str]:
    yield from ("", "## Both questions right", "")
    cost = f"; in brackets, how many times that of “{study.reference}”" if study.reference else ""
    yield (
        f"Bold: above {GREEN:.2f}. *Steps*: of training, in all. *Opened*: the step at which everything was on. *Slept*: joint "
        f"steps until the training loss had come below {AWAKE}. *ms a step*: with everything on, timed alone{cost}. Means over "
        "seeds."
    )
    yield ""
    yield table_row(*NAMES, *COURSE, *(f"n={n} ({study.times(n)})" for n in study.lengths))
    yield table_row(*["---"] * (len(NAMES) + len(COURSE) + len(study.lengths)))
    for line in study.lines():
        names = (line.cell.part, line.cell.model, line.cell.training)
        yield table_row(*names, *_course(study, line), *(_brief(entry) for entry in line.entries))


def _course(study: Findings, line: Line) -> list[str]:
    """Steps, when it was opened and how long it slept; a seed that never woke is said to have slept on."""
    courses = list(study.went(line).values())
    if not courses:
        return ["–"] * len(COURSE)
    slept = [course.slept for course in courses if course.slept is not None]
    still = len(courses) - len(slept)
    never = f"{still} of {len(courses)} to the end" if still else ""
    known = "; ".join(filter(None, (_mean(slept), never)))
    steps, opened = (_mean([getattr(course, name) for course in courses]) for name in ("steps", "opened"))
    return [steps, opened, known, _cost(study, line)]


def _cost(study: Findings, line: Line) -> str:
    own, reference = study.step_seconds(line), study.reference_seconds
    if own is None:
        return "–"
    return f"{1000 * own:.2f}" + (f" (×{own / reference:.2f})" if reference else "")


def _mean(numbers: Sequence[int]) -> str:
    return f"{sum(numbers) / len(numbers):,.0f}" if numbers else ""


def _brief(entry: Entry) -> str:
    return "missing" if entry.ours is None else accuracy_mark(entry.ours, 3)


def _details(study: Findings) -> Iterator[str]:
    yield from ("", "<details><summary>Every number, with seeds, interval and origin</summary>", "")
    yield table_row(*NAMES, "n", "right", "mean", "each seed", "interval", "made by")
    yield table_row(*["---"] * 9)
    for question in QUESTIONS:
        for line in study.lines(question):
            for entry in line.entries:
                if entry.rows:
                    names = (line.cell.part, line.cell.model, line.cell.training, str(entry.length), question)
                    yield table_row(*names, *_numbers(study, entry))
    yield from ("", "</details>")


def _numbers(study: Findings, entry: Entry) -> list[str]:
    seeds = ", ".join(f"{seed}: {accuracy:.3f}" for seed, accuracy in entry.by_seed.items())
    low, high = entry.interval
    return [f"{entry.ours:.3f}", seeds, f"{low:.3f}–{high:.3f}", makers_of(study.made, (row.run for row in entry.rows))]
