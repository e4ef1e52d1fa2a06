"""A diagnosis in plain words: sentences that follow from its numbers by thresholds that are written here, and what to try."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lengthlab.inspection.why.attention_aim import sharpest
from lengthlab.inspection.why.breaking_length import BESIDE, DRIFT, GOOD, IN_RANGE, SLIPS
from lengthlab.store.diagnosis import Aim, Breaking, Pathways, Remainder, StateAt

ALONE = 0.8
"""From this share on, a pathway carries an answer alone."""
LEFT = 0.9
"""A quotient of which so much is right is what is left of an answer."""
MOSTLY = 0.5
"""What is true of more samples than this is true of a head."""


def paragraph(
    trained: tuple[int, int],
    questions: Sequence[str],
    pathways: Sequence[Pathways],
    aims: Sequence[Aim],
    states: Sequence[StateAt],
    breakings: Sequence[Breaking],
    remainders: Sequence[Remainder],
    state_questions: Sequence[str],
) -> str:
    """What carries each question, where it breaks and why, and what to try."""
    said: list[str] = []
    tries: list[str] = []
    for question in questions:
        rows = [row for row in pathways if row.question == question]
        if not rows:
            continue
        found = _question(question, rows, trained, aims, states, breakings, remainders, question in state_questions)
        sentence, advice = found
        said.append(sentence)
        tries += [each for each in advice if each not in tries]
    ending = f"What to try: {'; '.join(tries)}." if tries else "Nothing is broken as far as it was looked at: try longer lengths."
    return " ".join([*said, ending])


def _question(
    question: str,
    rows: Sequence[Pathways],
    trained: tuple[int, int],
    aims: Sequence[Aim],
    states: Sequence[StateAt],
    breakings: Sequence[Breaking],
    remainders: Sequence[Remainder],
    is_state: bool,
) -> tuple[str, list[str]]:
    longest = trained[1]
    inside = [row for row in rows if row.length <= longest]
    at = (inside or list(rows))[-1]
    broken = next((row for row in rows if row.whole < GOOD and all(e.whole < GOOD for e in _after(rows, row)[:2])), None)
    if broken is not None and broken.length <= longest:
        return _not_learned(question, broken, is_state)
    carrier = _carrier(at)
    clause = f"{question.capitalize()} is carried by {carrier}" if carrier else f"{question.capitalize()} is answered"
    if broken is None:
        return f"{clause} and is right to n = {rows[-1].length}.", []
    clause += f" and is right in {broken.whole:.2f} at n = {broken.length}"
    why, tries = _why(question, carrier, at, broken, aims, states, breakings, is_state)
    left = list(_left(question, broken, remainders))
    return f"{clause}: {why}{''.join(left)}.", tries


def _after(rows: Sequence[Pathways], row: Pathways) -> list[Pathways]:
    return [each for each in rows if each.length >= row.length]


def _not_learned(question: str, broken: Pathways, is_state: bool) -> tuple[str, list[str]]:
    told = f"{question.capitalize()} is right in {broken.whole:.2f} at n = {broken.length}, within the training range: it is not learned."
    tries = ["train longer or at another rate"]
    return told, [*tries, "ask for the state first, attention off (delayed)"] if is_state and "attention" in broken.cut else tries


def _carrier(row: Pathways) -> str:
    share = row.attention_share
    if share is None:
        return ""
    if share >= ALONE:
        return f"attention ({share:.2f} of what a cut loses)"
    if share <= 1 - ALONE:
        return f"the recurrence ({1 - share:.2f} of what a cut loses)"
    return f"both ({share:.2f} attention, {1 - share:.2f} recurrence)"


def _why(
    question: str,
    carrier: str,
    at: Pathways,
    broken: Pathways,
    aims: Sequence[Aim],
    states: Sequence[StateAt],
    breakings: Sequence[Breaking],
    is_state: bool,
) -> tuple[str, list[str]]:
    share = at.attention_share
    aim = sharpest(aims, question, broken.length)
    if aim is not None and (share is None or share > 1 - ALONE):
        return _aimed(aim)
    if is_state and share is not None and share > 1 - ALONE:
        fresh = "a shortcut of attention's that ends with the training range"
        return fresh, ["delay attention until the state is mastered (schedule delayed)"]
    here = [state for state in states if (state.question, state.length) == (question, broken.length)]
    if here and here[0].right >= GOOD:
        told = f"the state is still right (a probe reads it in {here[0].right:.2f}), and what reads it is not"
        return told, ["hold or slow what comes after the recurrence", "fewer joint steps after attention opens"]
    foretold = next((each for each in breakings if each.question == question), None)
    if foretold is not None and foretold.rule not in (BESIDE, IN_RANGE):
        return _lost(foretold)
    return "the state is lost", ["train the state longer", "hold the recurrence once attention opens (rates by part)"]


def _aimed(aim: Aim) -> tuple[str, list[str]]:
    head = f"the best head gives the right position {aim.weight:.2f} of its weight, at rank {aim.rank:.0f}"
    if aim.wrong > MOSTLY or aim.wrong > aim.spread:
        tries = ["other positions (none, or randomized)", "longer or more varied training lengths"]
        return f"{head}, and looks at a wrong place in {aim.wrong:.2f}", tries
    if aim.right <= MOSTLY or aim.weight < MOSTLY:
        return f"{head}, and is spread out (entropy {aim.entropy:.1f})", ["scores log-n", "an adaptive temperature", "entmax"]
    return f"{head}, so it looks right, and what it finds is read wrongly", ["train longer", "hold what comes before attention"]


def _lost(foretold: Breaking) -> tuple[str, list[str]]:
    tries = ["train the state longer", "hold the recurrence once attention opens (rates by part)"]
    if foretold.rule == DRIFT:
        return f"the state drifts (q grows like n to the {foretold.growth:.1f})", tries
    if foretold.rule == SLIPS:
        return "the state slips now and then, at a rate that short sequences show", tries
    return "the state is lost, which short sequences did not show", tries


def _left(question: str, broken: Pathways, remainders: Sequence[Remainder]) -> Iterator[str]:
    """The finest quotient that survives."""
    whole = [each for each in remainders if (each.question, each.length) == (question, broken.length)]
    kept = [each for each in whole if each.right >= LEFT and not each.what.startswith("answer ")]
    if kept:
        best = min(kept, key=lambda each: each.chance)
        yield f"; what is left of it is its {best.what}, right in {best.right:.2f}"
