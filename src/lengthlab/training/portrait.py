"""What a run is about, written down with its result: a sample of its task, its model's parts, what theory promises. A report
shows it later without torch, and without the code of whoever wrote the task.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch

from lengthlab.errors import LabError
from lengthlab.models import Model
from lengthlab.models.outline import outline
from lengthlab.spec.run import Run
from lengthlab.switch import find
from lengthlab.tasks.card import Sample, sample_of
from lengthlab.theory.verdict import verdict

WORDS = 120
"""A longer sample tells a reader nothing more."""


def portrait(run: Run) -> dict[str, Any]:
    """Plain data; what cannot be told of a task or a model is left out, and never ends a run.

    >>> import lengthlab as ll
    >>> run = ll.Run(ll.tasks.ModuloRecall(keys=32), ll.models.lstm(width=8), ll.end_to_end(5), lengths=(1, 10), batch=8)
    >>> told = portrait(run)
    >>> told["scored"], [line["text"] for line in told["parts"]], told["theory"]["says"]
    ({'modulo': [12], 'recall': [15]}, ['embedding', 'lstm', 'head'], 'unknown')
    """
    told: dict[str, Any] = {}
    for part in (_sample, _parts, _theory):
        try:
            told |= part(run)
        except Exception:  # a user's own code may do anything here, and the numbers are there already
            continue
    return told


def _sample(run: Run) -> dict[str, Any]:
    sample: Sample = sample_of(run.task, min(5, run.trained[1]))
    if len(sample.words) > WORDS:
        return {}
    return {"sample": list(sample.words), "scored": {name: list(places) for name, places in sample.scored.items()}}


def _parts(run: Run) -> dict[str, Any]:
    if not isinstance(run.model, Model):
        return {}
    names = tuple(dict.fromkeys(name for phase in run.schedule.phases for name in phase.off))
    try:
        off = [site.name for site in find(run.blueprint, *names)] if names else []
    except LabError:
        off = []
    with torch.device("meta"):  # sizes alone: a large model is not made a second time
        return {"parts": [asdict(line) for line in outline(run.model, run.task.vocabulary, off)]}


def _theory(run: Run) -> dict[str, Any]:
    known = verdict(run.task)
    return {"theory": {"says": str(known), "citation": known.citation, "reason": known.reason}}
