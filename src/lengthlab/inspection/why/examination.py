"""Everything together: a trained network and its task, looked into at short and long lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from time import monotonic

import torch
from torch import Tensor, nn

from lengthlab.errors import require
from lengthlab.inspection.why.attention_aim import aims_at, is_recall
from lengthlab.inspection.why.breaking_length import GOOD, breaking, foretell
from lengthlab.inspection.why.parts import Parts, parts_of
from lengthlab.inspection.why.pathways import attention_share, pathways_at, said
from lengthlab.inspection.why.pictures import pictures_at
from lengthlab.inspection.why.remainder import remainders
from lengthlab.inspection.why.samples import questions_at, too_long
from lengthlab.inspection.why.state_probe import SHORT_TESTED, SHORT_TOKENS, Probe, fit_probe, spread_lengths, state_at
from lengthlab.inspection.why.words import ALONE, paragraph
from lengthlab.store.diagnosis import Breaking, Diagnosis, Picture, Remainder, StateAt
from lengthlab.store.rows import Count
from lengthlab.switch.hooks import copied_to_look_at
from lengthlab.tasks import IGNORE, Task

SHORT = 7
"""Lengths of the training range at which the state is looked at."""
LONG = 8
"""Lengths in all at which everything is, besides."""
Told = Callable[[str], None]


def examine(
    network: nn.Module,
    task: Task,
    trained: tuple[int, int],
    lengths: Iterable[int],
    counts: Sequence[Count] = (),
    run: str = "",
    model: str = "",
    told: Told = lambda text: None,
) -> Diagnosis:
    """Why a network goes as far as it does. `counts`: its accuracy by length, for where it really breaks; `told` is called with
    a few words before each part. The network is copied: its weights, its mode and what is off in it stay as they are.

    >>> from lengthlab.models import lstm
    >>> from lengthlab.tasks import modulo
    >>> task = modulo(modulus=2, keys=16)
    >>> found = examine(lstm(width=8).build(task.vocabulary), task, trained=(1, 4), lengths=[4, 8])
    >>> [row.attention_share for row in found.pathways], found.states[0].question
    ([0.0, 0.0], 'modulo')
    """
    began = monotonic()
    copy = copied_to_look_at(network).eval()
    look = _Look(copy, parts_of(copy), task, trained, lengths, told)
    with torch.no_grad():
        return look.diagnosis(counts, run, model, began)


class _Look:
    """One network, looked into part by part."""

    def __init__(
        self, network: nn.Module, parts: Parts, task: Task, trained: tuple[int, int], lengths: Iterable[int], told: Told
    ) -> None:
        self.network, self.parts, self.task, self.trained, self.told = network, parts, task, trained, told
        every = sorted(set(lengths))
        fitting = [length for length in every if not too_long(task, length)]
        require(len(fitting) > 0, "no length is short enough to be looked into: name some with --lengths")
        self.lengths = _thinned(fitting, trained[1])
        self.notes = [*_notes(parts, task), *_left_out(every, fitting)]
        self.of_state = list(task.state or task.questions)
        self.end = max((length for length in self.lengths if length <= trained[1]), default=self.lengths[0])

    def diagnosis(self, counts: Sequence[Count], run: str, model: str, began: float) -> Diagnosis:
        self.told("who carries the answer")
        early = self.trained[1]
        pathways = [row for n in self.lengths for row in pathways_at(self.network, self.parts, self.task, n, early)]
        self.pathways = pathways
        self.told("is the state right")
        probes = {question: self._probe(question) for question in self.of_state}
        states, breakings = self._states(probes, counts)
        self.told("is attention sharp")
        recalled = [q for q in self.task.questions if self.parts.weighed and is_recall(self.task, q, max(4, self.end))]
        aims = [a for q in recalled for n in self.lengths for a in aims_at(self.network, self.parts, self.task, q, n)]
        self.told("what is left of it")
        left = [each for n in self.lengths for each in self._left(n)]
        pictures = self._pictures(probes, recalled)
        found = Diagnosis(
            run,
            self.task.name,
            model,
            self.trained,
            monotonic() - began,
            "",
            tuple(pathways),
            tuple(aims),
            tuple(states),
            tuple(breakings),
            tuple(left),
            tuple(pictures),
            tuple(self.notes),
        )
        return replace(found, words=paragraph(found, self.task.state))

    def _probe(self, question: str) -> Probe | None:
        return fit_probe(self.network, self.parts, self.task, question, self.trained)

    def _states(self, probes: dict[str, Probe | None], counts: Sequence[Count]) -> tuple[list[StateAt], list[Breaking]]:
        """At lengths of the range, at the others, and what the former foretell of the latter."""
        states: list[StateAt] = []
        breakings = []
        low, high = max(self.trained[0], self.task.shortest), self.trained[1]
        inside = spread_lengths(min(high, max(low, high // 4, 2)), high, SHORT)
        for question, probe in probes.items():
            if probe is None:
                continue
            look = (self.network, self.parts, self.task, question, probe)
            short = [state_at(*look, n, SHORT_TESTED, SHORT_TOKENS) for n in inside]
            states += [*short, *(state_at(*look, n) for n in self.lengths if n > high)]
            if question in self.task.state or len(self.task.questions) == 1:
                breakings.append(breaking(foretell(short, self._in_state(question, short)), counts, question))
        return states, breakings

    def _in_state(self, question: str, short: Sequence[StateAt]) -> bool:
        """Whether what the network says at the range's end comes from its state: a probe finds it there, or it is wrong itself;
        and attention is no more than a helper.
        """
        share = attention_share(self.pathways, question, self.end)
        whole = [row.whole for row in self.pathways if (row.question, row.length) == (question, self.end)]
        right = bool(whole) and whole[0] >= GOOD
        return not (right and (short[-1].right < GOOD or (share is not None and share > 1 - ALONE)))

    def _left(self, length: int) -> list[Remainder]:
        found = []
        for question in self.of_state:
            said_N, wanted_N = self._answers(length, question)
            if len(wanted_N):
                found += remainders(self.task, question, length, said_N, wanted_N)
        return found

    def _answers(self, length: int, question: str) -> tuple[Tensor, Tensor]:
        """What was said and wanted, where every answer is one token; nothing else."""
        every: list[tuple[Tensor, Tensor]] = []
        for group in questions_at(self.task, length):
            said_BQ, wanted = said(self.network, group, self.task)
            asked_BQ = wanted[question] != IGNORE
            if bool((asked_BQ.sum(dim=1) > 1).any()):
                break
            every.append((said_BQ[asked_BQ], wanted[question][asked_BQ]))
        nothing = torch.empty(0, dtype=torch.long)
        return (torch.cat([s for s, _ in every]), torch.cat([w for _, w in every])) if every else (nothing, nothing)

    def _pictures(self, probes: dict[str, Probe | None], recalled: Sequence[str]) -> list[Picture]:
        ends = dict.fromkeys((self.end, self.lengths[-1]))
        asked = [question for question in self.task.questions if question in recalled or probes.get(question) is not None]
        return [
            picture
            for question in asked
            for n in ends
            for picture in pictures_at(
                self.network, self.parts, self.task, question, n, probes.get(question), question in recalled
            )
        ]


def _thinned(lengths: Sequence[int], longest: int) -> list[int]:
    """Few enough to wait for: the ends, the training range's, and those evenly between."""
    if len(lengths) <= LONG:
        return list(lengths)
    inside = [length for length in lengths if length <= longest][-2:]
    outside = [length for length in lengths if length > longest]
    places = spread_lengths(0, len(outside) - 1, LONG - len(inside)) if outside else []
    return [*inside, *(outside[place] for place in places)]


def _notes(parts: Parts, task: Task) -> list[str]:
    found = []
    if parts.others:
        found.append(f"neither attention nor a recurrence that goes on from a state, so not cut: {', '.join(parts.others)}")
    if not parts.recurrences:
        found.append("no recurrence was found, so there is no state to look into")
    if not (parts.weighed or parts.blocks or parts.foreign):
        found.append("no attention is at work")
    if parts.blocks:
        found.append("attention over chunks or a window is cut by giving nothing, and its weights are not seen")
    if parts.foreign:
        found.append("the model is not of this package: its attention is cut while it runs, and its weights are not seen")
    if task.free_running:
        found.append("the task is scored on what a model says when it reads its own answers; here it reads the right ones")
    return found


def _left_out(every: Sequence[int], fitting: Sequence[int]) -> list[str]:
    long = [length for length in every if length not in fitting]
    return [f"too long to be looked into: n = {', '.join(map(str, long))}"] if long else []
