"""What a search for attention comes to, and what it says where it comes to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from lengthlab.errors import LabError, require
from lengthlab.switch.sites import Site
from lengthlab.switch.trace import Trace

UNTRAINABLE = (
    "with its attention off the model cannot be trained, though it can with it on: its backward asks attention for a graph, as "
    "that of reversible layers does; name other parts with modules="
)
NOTHING_LEARNS = (
    "nothing would learn while attention is off: every parameter that is not frozen is attention's own, or read by it alone; "
    "unfreeze something else, or put adapters on other parts as well"
)


@dataclass(frozen=True)
class Found:
    """What is off, what stays on, and what else stands still."""

    sites: tuple[Site, ...]
    left: tuple[str, ...] = ()
    """Modules whose attention stays on: because it was asked for, or because it is needed."""
    needed: tuple[str, ...] = ()
    """Those of them without which some output would be the same for any input."""
    starved: tuple[str, ...] = ()
    """Parameters elsewhere that only attention feeds: their gradient is zero while it is off."""
    idle: tuple[str, ...] = ()
    """Parameters of attention that lie outside the sites: they have no gradient while it is off."""
    known: bool = True
    """Whether the model could be trained on the example, so that its gradients were seen."""
    unread: tuple[str, ...] = ()
    """Modules, an encoder, that are read by attention alone: nothing in them learns while it is off."""
    odd: tuple[str, ...] = ()
    """Modules that weigh values by a softmax of something else than scores, and stay on."""
    blind: bool = False
    """Whether some rows of an output, a class token's, are the same for any input while attention is off."""


def require_attention(model: nn.Module, seen: Trace, kernels: bool) -> None:
    """Or say who takes a softmax at all."""
    if seen.attention or kernels:
        return
    modules = dict(model.named_modules())
    takers = dict.fromkeys(call.modules[-1] for call in seen.softmax)
    named = [f"'{name}' ({type(modules[name]).__name__})" for name in takers]
    taken = f"a softmax of something else is taken in {', '.join(named[:6])}" if named else "nothing in it takes a softmax"
    raise LabError(f"no softmax attention found in {type(model).__name__}: {taken}; name with modules= what should be off")


def require_seen(model: nn.Module, seen: Trace, training: Trace | None) -> None:
    """Or say where attention is that was not seen well enough to be off."""
    modules = dict(model.named_modules())
    by_hand = list(dict.fromkeys(call.modules[-1] for call in seen.by_hand if call.modules))
    named = ", ".join(f"'{name}' ({type(modules[name]).__name__})" for name in by_hand[:3])
    require(
        not by_hand,
        f"in {named} an exponential of scores is taken, a softmax written by hand, which is not known well enough: write it "
        f"with softmax, or name with modules= all that should be off",
    )
    known = {name for call in seen.attention for name in call.modules[-1:]}
    more = [call.modules[-1] for call in (training.attention if training else ()) if call.modules[-1:][0] not in known]
    named = ", ".join(f"'{name}'" for name in dict.fromkeys(more))
    require(
        not more,
        f"attention in {named} runs in training alone, where it cannot be tried: name with modules= all that should be off",
    )


def all_needed(callers: Sequence[str]) -> str:
    """The error where no attention can be off."""
    names = ", ".join(f"'{name}'" for name in callers[:3] if name)
    which = f" ({names})" if names else ""
    return (
        f"without its attention{which} the output of the model is the same for any input: nothing else brings the input "
        f"there, so nothing can be delayed; name with modules= what should be off in spite of that"
    )


def nothing_to_skip(model: nn.Module, callers: Sequence[str]) -> str:
    """The error where attention is no module, and has none around it that could be skipped."""
    root = f"the forward of {type(model).__name__}"
    where = ", ".join(f"'{name}'" if name else root for name in callers[:3])
    return (
        f"attention is computed in {where}, and no module in it can be left out: put what is added to the residual "
        f"path into a module of its own, or name with modules= what should be off and with instead= what it gives"
    )
