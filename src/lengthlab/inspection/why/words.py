"""A diagnosis in plain words: sentences that follow from its numbers by thresholds that are written here, and what to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lengthlab.inspection.why.attention_aim import sharpest
from lengthlab.inspection.why.breaking_length import BESIDE, DRIFT, GOOD, IN_RANGE, SLIPS
from lengthlab.store.diagnosis import ATTENTION, Aim, Breaking, Diagnosis, Pathways

ALONE = 0.8
"""From this share on, a pathway carries an answer alone."""
LEFT = 0.9
"""A quotient of which so much is right is what is left of an answer."""
MOSTLY = 0.5
"""What is true of more samples than this is true of a head."""
DELAY = "delay attention until the state is mastered (schedule delayed)"
LONGER = ("train the state longer", "hold the recurrence once attention opens (rates by part)")


@dataclass(frozen=True)
class Finding:
    """Why something is broken, and what may mend it."""

    text: str
    tries: Sequence[str] = ()


def paragraph(found: Diagnosis, state: Sequence[str]) -> str:
    """What carries each question, where it breaks and why; at the end, what to try. `state`: questions that need a state."""
    findings = [_question(found, question, question in state) for question in dict.fromkeys(r.question for r in found.pathways)]
    tries = dict.fromkeys(each for finding in findings for each in finding.tries)
    nothing = "Nothing is broken as far as it was looked at: try longer lengths."
    return " ".join([*(finding.text for finding in findings), f"What to try: {'; '.join(tries)}." if tries else nothing])


def _question(found: Diagnosis, question: str, is_state: bool) -> Finding:
    rows = [row for row in found.pathways if row.question == question]
    longest = found.trained[1]
    at = [row for row in rows if row.length <= longest or row is rows[0]][-1]
    name, carrier, broken = question.capitalize(), _carrier(at), _broken(rows)
    clause = f"{name} is carried by {carrier}" if carrier else f"{name} is answered"
    if broken is None:
        return Finding(f"{clause} and is right to n = {rows[-1].length}.")
    where = f"right in {broken.whole:.2f} at n = {broken.length}"
    if broken.length <= longest:
        first = [DELAY] if is_state and ATTENTION in broken.cut else []
        told = f"{name} is {where}, within the training range: it is not learned."
        return Finding(told, ["train longer or at another rate", *first])
    why = _why(found, at, broken, is_state)
    return Finding(f"{clause} and is {where}: {why.text}{_left(found, broken)}.", why.tries)


def _broken(rows: Sequence[Pathways]) -> Pathways | None:
    """The first length at which it is below 0.90, and at the next as well."""
    for place, row in enumerate(rows):
        if all(each.whole < GOOD for each in rows[place : place + 2]):
            return row
    return None


def _carrier(row: Pathways) -> str:
    share = row.attention_share
    if share is None:
        return ""
    if share >= ALONE:
        return f"attention ({share:.2f} of what a cut loses)"
    if share <= 1 - ALONE:
        return f"the recurrence ({1 - share:.2f} of what a cut loses)"
    return f"both ({share:.2f} attention, {1 - share:.2f} recurrence)"


def _why(found: Diagnosis, at: Pathways, broken: Pathways, is_state: bool) -> Finding:
    question, share = broken.question, at.attention_share
    by_attention = share is not None and share > 1 - ALONE
    aim = sharpest(found.aims, question, broken.length)
    if aim is not None and (by_attention or share is None):
        return _aimed(aim)
    if is_state and by_attention:
        return Finding("a shortcut of attention's that ends with the training range", [DELAY])
    right = [state.right for state in found.states if (state.question, state.length) == (question, broken.length)]
    if right and right[0] >= GOOD:
        tries = ["hold or slow what comes after the recurrence", "fewer joint steps after attention opens"]
        return Finding(f"the state is still right (a probe reads it in {right[0]:.2f}), and what reads it is not", tries)
    foretold = [line for line in found.breakings if line.question == question and line.rule not in (BESIDE, IN_RANGE)]
    return _lost(foretold[0]) if foretold else Finding("the state is lost", LONGER)


def _aimed(aim: Aim) -> Finding:
    head = f"the best head gives the right position {aim.weight:.2f} of its weight, at rank {aim.rank:.0f}"
    if aim.wrong > MOSTLY or aim.wrong > aim.spread:
        tries = ["other positions (none, or randomized)", "longer or more varied training lengths"]
        return Finding(f"{head}, and looks at a wrong place in {aim.wrong:.2f}", tries)
    if aim.right <= MOSTLY or aim.weight < MOSTLY:
        tries = ["scores log-n", "an adaptive temperature", "entmax"]
        return Finding(f"{head}, and is spread out (entropy {aim.entropy:.1f})", tries)
    tries = ["train longer", "hold what comes before attention"]
    return Finding(f"{head}, so it looks right, and what it finds is read wrongly", tries)


def _lost(foretold: Breaking) -> Finding:
    if foretold.rule == DRIFT:
        return Finding(f"the state drifts (q grows like n to the {foretold.growth:.1f})", LONGER)
    if foretold.rule == SLIPS:
        return Finding("the state slips now and then, at a rate that short sequences show", LONGER)
    return Finding("the state is lost, which short sequences did not show", LONGER)


def _left(found: Diagnosis, broken: Pathways) -> str:
    """The finest quotient that survives."""
    here = [each for each in found.remainders if (each.question, each.length) == (broken.question, broken.length)]
    kept = [each for each in here if each.right >= LEFT and not each.what.startswith("answer ")]
    best = min(kept, key=lambda each: each.chance, default=None)
    return f"; what is left of it is its {best.what}, right in {best.right:.2f}" if best else ""
