"""What is put around a model, and whether it bears with parts that are off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from lengthlab.errors import require
from lengthlab.switch.sites import Site

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


def require_not_flat(parameters: Iterable[nn.Parameter], optimizer: Optimizer | None = None) -> None:
    """Refuse parameters that FSDP1 has put together, in a model or in an optimizer."""
    # Private: how FSDP1 marks the parameters that it took. If it goes, one that wraps a closed model is noticed by the guard.
    require(not any(hasattr(parameter, "_fsdp_flattened") for parameter in parameters), FSDP_1)
    if optimizer is not None:
        held = {type(parameter).__name__ for group in optimizer.param_groups for parameter in group["params"]}
        flat = any(
            hasattr(each, "_is_flat_param") for group in optimizer.param_groups for each in group["params"]
        )  # private, as above
        require("FlatParameter" not in held and not flat, FSDP_1)


def require_own_parameters(sites: Sequence[Site], numbers: Sequence[int]) -> None:
    """Refuse modules that had so many parameters each when they were closed, and now have them no more."""
    for site, number in zip(sites, numbers, strict=True):
        require(len(list(site.parameters())) >= number, FSDP_1)
        require_not_flat(site.parameters())


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
