"""The survey: every type of model that transformers has, its attention delayed, and a judge's word on it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from inspect import signature
from typing import Literal

from torch import nn

from lengthlab.errors import LabError, cut
from lengthlab.integrations.batches import Batch, batches_for
from lengthlab.integrations.configs import quiet
from lengthlab.integrations.judge import CannotJudge, Judge, Wrong
from lengthlab.integrations.small_models import Kind, SmallModel
from lengthlab.switch import Delay, delay_attention

Verdict = Literal["right", "refused", "wrong", "cannot be built"]
NO_ATTENTION = "has no softmax attention, and is told so"


@dataclass(frozen=True)
class Row:
    """What was found of one type."""

    name: str
    kind: Kind
    verdict: Verdict
    why: str = ""


def survey_one(small: SmallModel) -> Row:
    """Build one type, delay its attention, and let the judge decide.

    >>> survey_one(SmallModel("llama", "causal"))
    Row(name='llama', kind='causal', verdict='right', why='')
    """
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict, why = _verdict(small)
    return Row(small.name, small.kind, verdict, cut(why, 240))


def _verdict(small: SmallModel) -> tuple[Verdict, str]:
    try:
        batches = batches_for(small.build())
        judge = Judge(small.build, batches)
        calls = judge.calls()
    except (Exception, CannotJudge) as error:
        return "cannot be built", _say(error)
    model = judge.model()
    try:
        delay, how = _delay(model, batches[0])
    except LabError as error:
        return ("refused", str(error)) if calls else ("right", NO_ATTENTION)
    except Exception as error:
        return "wrong", f"delay_attention ends in {_say(error)}"
    if not calls:
        return "wrong", "it has no softmax attention, and a delay is made of it"
    try:
        judge.examine(model, delay)
    except Wrong as error:
        return "wrong", str(error)
    except LabError as error:
        return "refused", f"when run: {error}"
    except Exception as error:
        return "wrong", f"when run, it ends in {_say(error)}"
    return "right", how


def _delay(model: nn.Module, batch: Batch) -> tuple[Delay, str]:
    """With no argument; where that is refused, with a batch, if that can be given."""
    try:
        return delay_attention(model), ""
    except LabError:
        if "batch" not in signature(delay_attention).parameters:
            raise
        return delay_attention(model, **{"batch": batch}), "with `batch=`"  # type: ignore[arg-type]


def _say(error: BaseException) -> str:
    return str(error) if isinstance(error, CannotJudge) else f"{type(error).__name__}: {error}"
