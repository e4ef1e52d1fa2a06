"""Whether a model is fit to be trained on short sequences and measured on long ones: every check, and what was seen."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import nn

from lengthlab.errors import LabError, explain
from lengthlab.inspection.reading import draw, in_full, logits, require_readable
from lengthlab.inspection.state import in_steps, numbers_in
from lengthlab.inspection.subject import Subject, count_parameters
from lengthlab.inspection.trials import ALIKE, SAME, STEPS, TRIALS, Trial
from lengthlab.inspection.verdict import Check, judged
from lengthlab.inspection.weights import compare_weights

LENGTHS = (1, 2, 7, 64, 300)
FARTHEST = 512
"""Tokens, as far as a model is tried where nobody says how far it will be measured."""
USUAL = (24, 7, 64, 2, 300)
"""Lengths for the other checks; the first at which the model works is taken."""
LONGER = 64
"""They are tried at this length, too, where the model works at it."""


@dataclass(frozen=True)
class State:
    """How many numbers a model keeps of one sequence: after half of these tokens, and after all."""

    tokens: int
    half: int
    whole: int


@dataclass(frozen=True)
class Report:
    """All checks of a model."""

    model: str
    parameters: int
    trainable: int
    state: State | None
    """None where it carries none."""
    checks: tuple[Check, ...]
    tolerance: dict[str, float] = field(default_factory=lambda: {"same shapes": SAME, "other shapes": ALIKE})
    """What outputs may differ by, in parts of the largest logit."""

    @property
    def holds(self) -> bool:
        """Whether nothing that was checked fails."""
        return all(check.verdict != "does not hold" for check in self.checks)


def check(subject: Subject, longest: int | None = None) -> Report:
    """Try everything, in eval mode, in float32 where the model is shorter; `longest` is the most tokens it will be measured on.

    >>> from lengthlab.inspection import find_subject
    >>> [each.verdict for each in check(find_subject("lstm")).checks]
    ['holds', 'holds', 'holds', 'holds', 'holds', 'holds', 'holds']
    """
    network, far = in_full(subject.network()), longest or FARTHEST
    require_readable(network, far, subject.name)
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    tried = (*(length for length in LENGTHS if length < far), far)
    failures = _failures(network, tried)
    usual = next((length for length in USUAL if length <= far and length not in failures), 0)
    lengths = [length for length in dict.fromkeys((usual, LONGER)) if 0 < length <= far and length not in failures]
    checks = [_any_length(failures, tried), *(_tried(what, trial, network, lengths) for what, trial in TRIALS.items())]
    try:
        same, seen = compare_weights(subject, network, before)
    except LabError as error:
        same, seen = False, f"a run cannot build it: {error}"
    checks.append(judged("keeps its own initialisation", (same, seen)))
    trainable = sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
    return Report(subject.name, count_parameters(network), trainable, _state(network, usual), tuple(checks))


def _failures(network: nn.Module, lengths: tuple[int, ...]) -> dict[int, str]:
    """The lengths at which it gives no logits, and why; the usual ones among them. The longest is read alone."""
    failures = {}
    for length in sorted({*lengths, *(usual for usual in USUAL if usual < lengths[-1])}):
        try:
            if not logits(network, draw(network, 2 if length < lengths[-1] else 1, length)).isfinite().all():
                failures[length] = "logits that are not finite"
        except Exception as error:  # a user's own forward
            failures[length] = explain(error)
    return failures


def _any_length(failures: dict[int, str], tried: tuple[int, ...]) -> Check:
    what, words = "works at any length", ", ".join(map(str, tried))
    failed = [length for length in tried if length in failures]
    if not failed:
        return Check(what, "holds", f"{words} tokens")
    evidence = f"fails at {', '.join(map(str, failed))} of {words} tokens; at {failed[0]}: {failures[failed[0]]}"
    return Check(what, "does not hold", evidence)


def _tried(what: str, trial: Trial, network: nn.Module, lengths: list[int]) -> Check:
    if not lengths:
        return Check(what, "not checked", "the model gives logits at no length that this takes")
    try:
        found = trial(network, lengths)
    except Exception as error:  # a user's own forward
        return Check(what, "does not hold", f"it fails: {explain(error)}")
    if found is None:
        return Check(what, "not checked", "it gives back no state to carry")
    return judged(what, found)


def _state(network: nn.Module, usual: int) -> State | None:
    tokens = min(STEPS, usual)
    try:
        found = [in_steps(network, draw(network, 1, length)) for length in (tokens // 2, tokens) if length]
    except Exception:  # what is wrong is said where it is fed step by step
        return None
    sizes = [numbers_in(each[1]) for each in found if each]
    return State(tokens, *sizes) if len(sizes) == 2 else None
