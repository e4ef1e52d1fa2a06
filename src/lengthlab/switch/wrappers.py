"""What is put around a model, and whether it bears with parts that are off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from weakref import ref

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from lengthlab.errors import require

FSDP_1 = (
    "FullyShardedDataParallel keeps the parameters of a unit in one, which is moved and decayed as a whole, so what is off"
    " would not stand still: shard with fully_shard (FSDP2), which keeps each its own"
)


def require_bearable(model: object) -> None:
    """Refuse a wrapper that waits for gradients that do not come, or moves what has none."""
    require_unused_are_found(model)
    # By name, since importing torch's FSDP takes longer than the rest of this room.
    modules = model.modules() if isinstance(model, nn.Module) else ()
    names = {kind.__name__ for module in modules for kind in type(module).__mro__}
    require("FullyShardedDataParallel" not in names, FSDP_1)


def require_unused_are_found(model: object) -> None:
    if isinstance(model, DistributedDataParallel):
        require(
            model.find_unused_parameters and not model.static_graph,
            "DistributedDataParallel needs find_unused_parameters=True, and no static_graph=True, while parts are off",
        )


def require_not_flat(parameters: Iterable[nn.Parameter]) -> None:
    """Refuse parameters that FSDP1 has put together, and those that they are in."""
    # Private: how FSDP1 marks the parameters that it took. If it goes, one that wraps a closed model is noticed by the guard.
    require(not any(hasattr(parameter, "_fsdp_flattened") for parameter in parameters), FSDP_1)


def require_own_parameters(now: Sequence[nn.Parameter], first: Sequence[ref[nn.Parameter]]) -> None:
    """Refuse modules whose parameters, as they were when they were closed, were taken from them."""
    require(len(now) >= len(first), FSDP_1)
    require_not_flat(parameter for each in first if (parameter := each()) is not None)


def require_learners(model: nn.Module | None, closed: Iterable[nn.Parameter]) -> None:
    """Refuse a training in which all that is not frozen is off: adapters on attention alone, say."""
    if model is None:
        return
    learn = [parameter for parameter in model.parameters() if parameter.requires_grad]
    frozen = any(not parameter.requires_grad for parameter in model.parameters())
    off = set(map(id, closed))
    require(
        not (frozen and learn and all(id(parameter) in off for parameter in learn)),
        "all parameters that are not frozen are in parts that are off, so nothing learns: put adapters on other parts, too"
        " (target_modules of the MLPs, say), thaw something else, or open",
    )
