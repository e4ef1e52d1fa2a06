"""A diagnosis as blocks of a page: for the terminal, and for the section of report.html."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lengthlab.report.page import Block, Details, Heading, Page, Span, Table, Text, Words
from lengthlab.report.ranks import rank_correlation
from lengthlab.store.diagnosis import ANOTHER, ATTENTION, RESET, ZEROS, Aim, Breaking, Diagnosis, Picture, Remainder

LEVELS = "·▁▂▃▄▅▆▇██"
"""For the digits from 0 to 9."""
RULES = {
    "drift": "its state drifts",
    "slips": "its state slips now and then",
    "in range": "its state is not right within the range",
    "not in the state": "its state does not carry the answer",
    "none": "its state stays where it is",
}
KINDS = {"attention": "Weights of attention where '{}' is answered", "state": "The way of the state, '{}'"}


def why_page(found: Diagnosis) -> Page:
    """All of it."""
    shortest, longest = found.trained
    title = f"Why: {found.model} on {found.task}, trained on n = {shortest}…{longest} (run {found.run[:8]})"
    return Page(title, tuple(why_blocks(found)))


def why_blocks(found: Diagnosis) -> Iterator[Block]:
    """The paragraph, then a heading and a table for everything that was measured."""
    yield Text(Span(found.words, "strong"))
    for part in (_pathways, _aims, _states, _remainders, _pictures):
        yield from part(found)
    if found.notes:
        yield Text(f"Not measured: {'; '.join(found.notes)}.")


def _pathways(found: Diagnosis) -> Iterator[Block]:
    if not found.pathways:
        return
    names = {ATTENTION: "attention cut", ANOTHER: "another's", ZEROS: "anew", RESET: "reset"}
    there = [name for name in names if any(name in row.cut for row in found.pathways)]
    header = ("question", "n", "whole", *(names[name] for name in there), "share")
    rows = [
        (
            row.question,
            str(row.length),
            _two(row.whole),
            *(_two(row.cut.get(name)) for name in there),
            _two(row.attention_share),
        )
        for row in sorted(found.pathways, key=lambda row: (row.question, row.length))
    ]
    yield Heading("Who carries the answer")
    yield Table(header, tuple(rows))
    fewest, most = (end(row.samples for row in found.pathways) for end in (min, max))
    samples = f"{fewest} samples a line" if fewest == most else f"{fewest} to {most} samples a line"
    cut = {
        ATTENTION: "attention cut: nothing from the questions on sees what is before them",
        ANOTHER: "another's: the recurrence comes to the questions with the state of another sequence",
        ZEROS: "anew: it begins there",
        RESET: "reset: it begins anew where the training range ends",
    }
    told = "; ".join(cut[name] for name in there)
    yield Text(f"Right answers, {samples}. {told}. Share: attention's part of what a cut loses.")


def _aims(found: Diagnosis) -> Iterator[Block]:
    if not found.aims:
        return
    best: dict[tuple[str, int], Aim] = {}
    for aim in found.aims:
        key = (aim.question, aim.length)
        if key not in best or aim.weight > best[key].weight:
            best[key] = aim
    header = ("question", "n", "head", "weight", "rank", "entropy", "right", "wrong", "spread")
    yield Heading("Is attention sharp")
    yield Table(header, tuple(map(_aim, best.values())))
    yield Text(
        "The head that gives the position that decides the answer most weight: that weight, its rank, the entropy in nats; how "
        "often its heaviest position is the right one or beside it, how often a wrong one has more than half, and how often "
        "weight is spread out."
    )
    if len(found.aims) > len(best):
        yield Details(f"Every head ({len(found.aims):,} lines)", (Table(header, tuple(map(_aim, found.aims))),))


def _aim(aim: Aim) -> tuple[Words, ...]:
    numbers = (_two(aim.weight), f"{aim.rank:.1f}", _two(aim.entropy), *map(_two, (aim.right, aim.wrong, aim.spread)))
    return (aim.question, str(aim.length), f"{_layer(aim.layer)}:{aim.head}", *numbers)


def _layer(path: str) -> str:
    """The number of its block, where it has one, else its name."""
    numbers = [piece for piece in path.split(".") if piece.isdigit()]
    return numbers[0] if numbers else path.rsplit(".", 1)[-1]


def _states(found: Diagnosis) -> Iterator[Block]:
    if not found.states:
        return
    longest = found.trained[1]
    rows = [
        (state.question, str(state.length), "yes" if state.length <= longest else "", _two(state.right), _two(state.q))
        for state in found.states
    ]
    yield Heading("Is the state right")
    yield Table(("question", "n", "in range", "probe", "q"), tuple(rows))
    yield Text(
        "Probe: right answers of a linear probe of the recurrence's state, fitted within the training range. q: how far a "
        "tenth of the states have gone on the way to another answer's; above 1 they are there."
    )
    for each in found.breakings:
        yield Text(Span(_foretold(each), "emphasis"))


def _foretold(each: Breaking) -> str:
    rule = RULES.get(each.rule, each.rule)
    return (
        f"{each.question}: foretold from the training range to fall below 0.90 {_at(each.predicted)} ({rule}; q {each.q:.2f}, "
        f"growing like n to the {each.growth:.2f}); it did {_at(each.measured, each.measured_to)}."
    )


def _at(length: float | None, measured_to: int | None = None) -> str:
    if length is not None:
        return f"at n = {length:.0f}"
    return "nowhere in sight" if measured_to is None else f"not up to n = {measured_to}"


def _remainders(found: Diagnosis) -> Iterator[Block]:
    quotients = [each for each in found.remainders if not each.what.startswith("answer ")]
    answers = [each for each in found.remainders if each.what.startswith("answer ")]
    header = ("question", "n", "what", "right", "by chance")
    if quotients:
        yield Heading("What is left of it")
        yield Table(header, tuple(map(_remainder, quotients)))
    elif answers:
        yield Heading("What is left of it")
    if answers:
        ends = sorted({each.length for each in answers})
        shown = [each for each in answers if each.length in (ends[0], ends[-1])]
        lines = Table(("question", "n", "what", "right", "how often said"), tuple(map(_remainder, shown)))
        yield lines if not quotients else Details("Answer by answer", (lines,))


def _remainder(each: Remainder) -> tuple[Words, ...]:
    return (each.question, str(each.length), each.what, _two(each.right), _two(each.chance))


def _pictures(found: Diagnosis) -> Iterator[Block]:
    if found.pictures:
        yield Heading("What it looks like")
    for picture in found.pictures:
        kind = KINDS.get(picture.kind, "{}").format(picture.question)
        yield Text(f"{kind}, n = {picture.length}, answered {'rightly' if picture.right else 'wrongly'}:")
        yield Table(("", f"{picture.tokens} tokens, the first on the left"), tuple(_picture(picture)))


def _picture(picture: Picture) -> Iterator[tuple[Words, ...]]:
    for label, row in picture.rows:
        yield label, Span("".join(LEVELS[int(level)] for level in row), "code")
    if picture.mark >= 0 and picture.rows:
        yield "right place", Span("·" * picture.mark + "▲", "code")


def why_summary(found: Sequence[Diagnosis]) -> Page:
    """Several runs: where each was foretold to break, where it did, and how well the one ranks the other."""
    blocks = list(foretold_table([(f"{each.run[:8]} {each.model}", each) for each in found]))
    for each in found if len(found) <= SAID else ():
        blocks += [Heading(f"{each.run[:8]}: {each.model} on {each.task}"), Text(each.words)]
    return Page("Why: where a question falls below 0.90, foretold from the training range and measured", tuple(blocks))


def foretold_table(found: Sequence[tuple[str, Diagnosis]]) -> list[Block]:
    """Of runs by name."""
    pairs = [(name, line) for name, each in found for line in each.breakings]
    pairs.sort(key=lambda pair: ranked(pair[1])[1])
    rows = [
        (name, line.question, _length(line.predicted), line.rule, _length(line.measured, line.measured_to))
        for name, line in pairs
    ]
    header = ("run", "question", "foretold", "by", "measured")
    return [Table(header, tuple(rows)), Text(_ranked([line for _, line in pairs]))]


FEWEST = 5
SAID = 6
"""Runs up to which their paragraphs are shown as well."""


def _ranked(lines: Sequence[Breaking]) -> str:
    pairs = [ranked(line) for line in lines]
    if len(pairs) < FEWEST:
        return f"Rank correlations are told of {FEWEST} answers and more."
    found = rank_correlation(pairs)
    value = "none, because one of the two is all alike" if found is None else f"{found:.2f}"
    return f"Rank correlation of foretold and measured over {len(pairs)} answers, equal ones sharing their ranks: {value}."


def ranked(line: Breaking) -> tuple[float, float]:
    """Both lengths as they are ranked: what was measured ends somewhere, so both are taken to end there."""
    end = line.measured_to + 0.5
    foretold, measured = (end if each is None else min(each, end) for each in (line.predicted, line.measured))
    return foretold, measured


def _length(length: float | None, measured_to: int | None = None) -> str:
    if length is not None:
        return f"{length:.0f}"
    return "not in sight" if measured_to is None else f"> {measured_to}"


def _two(number: float | None) -> str:
    return "–" if number is None else f"{number:.2f}"
