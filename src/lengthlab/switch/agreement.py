"""Processes that train one model decide alike: what rank 0 finds, all do."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel


def agreed(decision: bool, modules: list[nn.Module]) -> bool:
    """Rank 0's decision where these modules are trained by several processes, else this one's. All of them must ask."""
    if not _several() or not (_is_sharded(modules) or _is_replicated(modules)):
        return decision
    decisions: list[bool] = [decision]
    distributed.broadcast_object_list(decisions, src=0)
    return decisions[0]


def _several() -> bool:
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


def _is_sharded(modules: list[nn.Module]) -> bool:
    """No parameter is sharded where nobody has imported what shards them, which takes a second."""
    shards = sys.modules.get("torch.distributed.tensor")
    return shards is not None and any(isinstance(each, shards.DTensor) for module in modules for each in module.parameters())


def _is_replicated(modules: list[nn.Module]) -> bool:
    """Whether a DDP has them. No module knows what wraps it; asked once an evaluation, we can look at all there are."""
    is_ddp: Callable[[object], bool] = lambda each: issubclass(type(each), DistributedDataParallel)  # noqa: E731
    wrappers: list[DistributedDataParallel] = [each for each in gc.get_objects() if is_ddp(each)]
    return any(set(modules) <= set(wrapper.modules()) for wrapper in wrappers)
