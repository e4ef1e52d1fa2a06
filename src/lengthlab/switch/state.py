"""The state of a delay in a checkpoint: does it fit, and what has changed since."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from lengthlab.errors import require
from lengthlab.switch.names import missing


class DelayWarning(UserWarning):
    """Something about a delay that is allowed, and probably not meant."""


def require_fitting(state: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    """Refuse the state of another model, and one that is past the step at which this delay opens."""
    require(mine.keys() <= state.keys(), "this is not the state of a delay" + " but of stages" * ("stages" in state))
    same = (state.get("rule") is None) == (mine.get("rule") is None)
    require(same, "the checkpoint is of attention that opens by chance or by a window: make the delay with the same call")
    strange, lacking = missing(state["sites"], mine["sites"]), missing(mine["sites"], state["sites"])
    require(
        not strange and not lacking,
        f"the checkpoint is of a model in which other parts are delayed: {', '.join(strange or lacking)} "
        f"{'is not among those of this one' if strange else 'is not among its'}",
    )
    until = mine["until"]
    if state["until"] != until:
        text = f"this run was begun with until={state['until']} and goes on with until={until}"
        warnings.warn(text, DelayWarning, stacklevel=3)
        late = not state["is_open"] and isinstance(until, int) and until <= state["steps"]
        require(not late, f"until={until} is in the past: the checkpoint is closed after {state['steps']} steps")
