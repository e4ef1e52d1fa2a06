"""What is off must not move: a look at each step of a watched optimizer that finds out if it did, and costs next to nothing.

Only what happens between the beginning and the end of a step counts: values that are loaded in between are somebody's wish.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

SAMPLE = 64
"""Values of a parameter that are compared in its turn."""
EVERY = 16
"""On a GPU, in how many steps once, since a comparison waits for all that it has to do."""


class Guard:
    """Parameters before and after a step.

    A counter of torch's tells which were written to; those are compared as a whole in the next step, since some optimizers
    write what was there before. What is written past that counter, by way of `.data`, is found by samples: of all parameters in
    the first step, then of one after the other.

    >>> weight = nn.Parameter(torch.ones(3))
    >>> guard = Guard([weight])
    >>> guard.begin()
    >>> weight.data *= 0.999
    >>> guard.moved() is weight
    True
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = parameters
        self._steps = 0
        self._suspects: set[int] = set()
        self._versions: list[int] = []
        self._before: dict[int, Tensor] = {}

    def begin(self) -> None:
        """Before a step. One that is compiled is made of what has a gradient, and cannot be looked into."""
        if torch.compiler.is_compiling():
            self._versions, self._before = [], {}
            return
        # Private: torch's count of writes to a tensor, for which there is no public name. If it goes, samples remain.
        self._versions = [parameter._version for parameter in self.parameters]
        self._before = {place: self._some_of(place) for place in self._turn()}
        self._steps += 1

    def moved(self) -> nn.Parameter | None:
        """After it: a parameter that is not what it was."""
        for place, before in self._before.items():
            if not _equal(before, self._some_of(place)):
                return self.parameters[place]
        self._before = {}
        for place, version in enumerate(self._versions):
            if self.parameters[place]._version != version:  # private, as above
                self._suspects.add(place)
        return None

    def with_gradient(self) -> nn.Parameter | None:
        """A parameter that has a gradient, which the next step would follow."""
        for parameter in self.parameters:
            if parameter.grad is not None:
                return parameter
        return None

    def _turn(self) -> Iterator[int]:
        if self._steps == 0:
            yield from range(len(self.parameters))
            return
        yield from self._suspects
        place = self._steps % max(1, len(self.parameters))
        if self.parameters and (self.parameters[place].device.type == "cpu" or self._steps % EVERY == 0):
            yield place

    def _some_of(self, place: int) -> Tensor:
        """A copy of some values of a parameter, of all of them if it was written to before."""
        parameter = self.parameters[place].detach()
        local: Tensor = parameter.to_local() if hasattr(parameter, "to_local") else parameter  # of a sharded one, the shard
        flat = local.reshape(-1)
        return flat.clone() if place in self._suspects else flat[:: max(1, len(flat) // SAMPLE)].clone()


def _equal(one: Tensor, other: Tensor) -> bool:
    """Bit by bit, but that nothing is unequal for not being a number; where all was not compared before, it was a sample."""
    if one.shape != other.shape:
        return True
    return torch.equal(one, other) or bool(((one == other) | (one.isnan() & other.isnan())).all())
