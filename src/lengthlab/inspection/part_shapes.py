"""Which part of a composed network gives a shape that the next one cannot take, or fails: found while it reads.

Shapes: B sequences, T tokens, D width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from lengthlab.errors import LabError, explain, require
from lengthlab.models.mixer import LaidOut
from lengthlab.models.model import Network
from lengthlab.models.wiring import Links, PostNorm, PreNorm, Sum
from lengthlab.registry import is_ours

COMPOSED = (Links, PostNorm, PreNorm, Sum)


@contextmanager
def parts_watched(network: nn.Module) -> Iterator[None]:
    """While this lasts, a part of a user's that gives back another shape than it was given is an error that names it; so is
    one that fails. What stands in a composition, and positions and scores of attention, give what they are given in shape.

    >>> from lengthlab.models.wiring import Links
    >>> import torch
    >>> body = Links(nn.LSTM(4, 4, batch_first=True))
    >>> with parts_watched(body):
    ...     body(torch.zeros(2, 3, 4))
    Traceback (most recent call last):
    lengthlab.errors.LabError: expected shape (2, 3, 4) from part '0' (LSTM), got a tuple of 2
    """
    inside: list[str] = []
    with ExitStack() as hooks:
        for name, part in _parts(network):
            watch = _Watch(f"part '{name}' ({type(part).__name__})", inside)
            hooks.callback(part.register_forward_pre_hook(watch.enter).remove)
            hooks.callback(part.register_forward_hook(watch.leave).remove)
        try:
            yield
        except LabError:
            raise
        except Exception as error:
            if not inside:
                raise
            raise LabError(f"{inside[-1]} fails: {explain(error)}") from error


@dataclass(frozen=True)
class _Watch:
    """Of one part; `inside` are those that have been entered and not left, in words."""

    name: str
    inside: list[str]

    def enter(self, _: nn.Module, given: tuple[Any, ...]) -> None:
        self.inside.append(f"{self.name} on shape {_shapes(tuple(each for each in given if isinstance(each, Tensor)))}")

    def leave(self, _: nn.Module, given: tuple[Any, ...], out: Any) -> None:
        self.inside.pop()
        several = out if isinstance(out, tuple) else (out,)
        expected = _shapes(given[: len(several)])
        got = _shapes(several) if len(several) <= len(expected.split(" and ")) else f"a tuple of {len(several)}"
        require(got == expected, f"expected shape {expected} from {self.name}, got {got}")


def _shapes(given: tuple[Any, ...]) -> str:
    return " and ".join(str(tuple(each.shape)) if isinstance(each, Tensor) else f"a {type(each).__name__}" for each in given)


def _parts(network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Modules that are not ours, right inside a mixer or a composition that is; of PyTorch's own, only what is composed."""
    for prefix, parent in network.named_modules():
        if not isinstance(parent, (Network, LaidOut)) or not is_ours(type(parent)):
            continue
        for name, part in parent.named_children():
            standing = isinstance(parent, COMPOSED) or name == "body"
            foreign = not type(part).__module__.startswith("torch.")
            if not is_ours(type(part)) and (standing or foreign):
                yield f"{prefix}.{name}".lstrip("."), part
