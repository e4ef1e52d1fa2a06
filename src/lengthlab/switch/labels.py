"""What is known of the tensors of a forward, by their memory: which inputs they depend on, what are scores, what are weights.

A product of two tensors that are no plain parameters, at least one of which depends on the input, makes scores of one against
the other. A softmax of scores over what depends on the input makes weights of attention. A router takes its softmax over the
side that does not: experts are parameters, whatever is done to these before. A product with weights makes values of them, and
one with scores is linear attention: neither is scores again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from lengthlab.switch.module_call import leaves

# Private by their names: operations below autograd, which every spelling comes down to. If one goes, attention that comes down
# to it is not found.
PRODUCTS = ("bmm", "mm", "baddbmm", "addmm", "addbmm", "dot", "mv", "linear", "matmul", "_grouped_mm")
MAPS = (*PRODUCTS, "convolution")
# Private, too: if they go, so does what they find.
SOFTMAX = ("_softmax", "_safe_softmax", "softmax")
# Private, too: if it goes, a router under autocast is taken for attention.
COPIES = ("_to_copy", "clone")
# Private, too: if it goes, such a softmax is told of less well.
BY_HAND = ("exp", "exp2", "_log_softmax", "log_softmax")
Inputs = frozenset[int]
"""Which of the inputs of a model something depends on."""
NO_INPUT: Inputs = frozenset()


@dataclass(frozen=True)
class Scores:
    """Of one side against the other: the inputs that each depends on, and how many there are on each."""

    left: Inputs
    right: Inputs
    sizes: tuple[int, int]

    @property
    def crosses(self) -> bool:
        """Whether another sequence is looked at than the one that looks."""
        return bool(self.left) and bool(self.right) and self.left != self.right

    def weigh(self, size: int) -> bool:
        """Whether a softmax over so many is one over what depends on the input."""
        if self.left and self.right:
            return True
        learned = self.sizes[1] if self.left else self.sizes[0]
        return size != learned or (bool(self.right) and self.sizes[0] == self.sizes[1])


class Labels:
    """By the storage of a tensor, which views of it share."""

    def __init__(self, model: nn.Module, inputs: Any) -> None:
        self._depends: dict[int, Inputs] = {}
        self._given: set[int] = set()
        """Parameters and buffers as they are: a product with one makes no scores, one with latents made of them does."""
        self._scores: dict[int, Scores] = {}
        self._mixed: dict[int, Scores] = {}
        """Scores that went through a product with a parameter, as talking heads mix theirs."""
        self._sums: set[int] = set()
        """Of scores: what Reformer subtracts from them before it takes the exponential, a softmax by hand."""
        self._weights: set[int] = set()
        self._odd: set[int] = set()
        """A softmax of something else than scores."""
        self._kept: list[Tensor] = []
        """A storage that is labelled is not given back before the end: its number would be another's."""
        for number, tensor in enumerate(leaves(inputs)):
            self._depends[self._keep(tensor)] = frozenset((number,))
        for tensor in (*model.parameters(), *model.buffers()):
            self._given.add(self._keep(tensor))

    def see(self, inputs: Sequence[Tensor]) -> None:
        """Parameters that were not there before: shards are put together in the forward."""
        for each in inputs:
            if isinstance(each, nn.Parameter):
                self._given.add(self._keep(each))

    def scores_in(self, name: str, inputs: Sequence[Tensor], over: int) -> Scores | None:
        """The scores of which an operation takes a softmax over so many, if it does."""
        by_hand = name == "exp" and any(storage_of(each) in self._sums for each in inputs)
        if name not in SOFTMAX and not by_hand:
            return None
        for each in inputs:
            found = self._scores.get(storage_of(each)) or (self._mixed.get(storage_of(each)) if _has_heads(each) else None)
            if found is not None and (by_hand or found.weigh(over)):
                return found
        return Scores(NO_INPUT, NO_INPUT, (0, 0)) if by_hand else None

    def is_by_hand(self, name: str, inputs: Sequence[Tensor]) -> bool:
        """Whether an operation begins a softmax of scores that is written out."""
        found = [self._scores.get(storage_of(each)) for each in inputs]
        return name in BY_HAND and any(each is not None and each.left and each.right for each in found)

    def weighs_oddly(self, name: str, inputs: Sequence[Tensor]) -> bool:
        """Whether values that depend on the input are weighed by a softmax of something else than scores."""
        odd = [each for each in inputs if storage_of(each) in self._odd and each.is_floating_point()]  # no index of an expert
        others = [each for each in inputs if storage_of(each) not in self._odd and self.depends(each)]
        return name in PRODUCTS and bool(odd) and bool(others)

    def depends(self, tensor: Tensor) -> Inputs:
        return self._depends.get(storage_of(tensor), NO_INPUT)

    def pass_on(self, name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], weights: bool) -> None:
        """What an operation makes of labels; `weights`: it is a softmax of scores."""
        depends = NO_INPUT.union(*map(self.depends, inputs))
        cast = name in COPIES and all(storage_of(each) in self._given for each in inputs)
        plain = name not in MAPS and name not in SOFTMAX
        made = self._made(name, inputs)
        scores = made or (self._first(self._scores, inputs) if plain else None)
        summed = name == "logsumexp" and scores is not None
        ready = name == "sub" and len(inputs) > 1 and storage_of(inputs[1]) in self._sums
        mixed = self._mixed_by(name, inputs, outputs, made) or (self._first(self._mixed, inputs) if plain else None)
        weighed = weights or (plain and self._all_are(self._weights, inputs))
        odd = (name in SOFTMAX and not weights) or (plain and self._all_are(self._odd, inputs))
        for each in [*outputs, *inputs[:1]] if name.endswith("_") else outputs:  # in place
            storage = self._keep(each)
            _put(self._depends, storage, depends or None)
            if cast or not any(storage == storage_of(other) for other in inputs):  # a view is what it is a view of
                _mark(self._given, storage, cast)
            _put(self._scores, storage, None if summed or weighed else scores)
            _put(self._mixed, storage, None if scores or weighed else mixed)
            _mark(self._sums, storage, summed or ready)
            _mark(self._weights, storage, weighed)
            _mark(self._odd, storage, odd)

    def _made(self, name: str, inputs: Sequence[Tensor]) -> Scores | None:
        """The scores that a product makes."""
        factors = [each for each in (inputs[1:] if "add" in name else inputs) if storage_of(each) not in self._given]
        if name not in PRODUCTS or len(factors) < 2:
            return None
        left, right = factors[0], factors[1]
        sides = self.depends(left), self.depends(right)
        if not any(sides) or any(self._is_weighing(each) for each in (left, right)):
            return None
        sizes = left.shape[-2] if left.dim() > 1 else 1, right.shape[0 if name == "linear" else -1] if right.dim() > 1 else 1
        return Scores(*sides, sizes)

    def _all_are(self, known: set[int], inputs: Sequence[Tensor]) -> bool:
        """Whether all that depends on the input is of a kind: weights times values, element by element, are values."""
        fluid = [storage_of(each) for each in inputs if self.depends(each)]
        return bool(fluid) and known.issuperset(fluid)

    def _is_weighing(self, tensor: Tensor) -> bool:
        """Weights, or scores of one part of the input against another; a map by weights that are computed makes neither."""
        scores = self._scores.get(storage_of(tensor))
        return storage_of(tensor) in self._weights or (scores is not None and bool(scores.left) and bool(scores.right))

    def _mixed_by(self, name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], made: Scores | None) -> Scores | None:
        """Scores after a product with a parameter that leaves as many; a router, or what mixes streams, leaves others."""
        scored = [each for each in inputs if storage_of(each) in self._scores]
        alike = any(each.numel() == other.numel() for each in outputs for other in scored)
        return self._scores[storage_of(scored[0])] if name in MAPS and made is None and alike else None

    def _first(self, known: dict[int, Scores], inputs: Sequence[Tensor]) -> Scores | None:
        """Of several the one of two sides that both depend on the input: others are of tables of positions."""
        found = [known[storage_of(each)] for each in inputs if storage_of(each) in known]
        return next((each for each in found if each.left and each.right), found[0] if found else None)

    def _keep(self, tensor: Tensor) -> int:
        self._kept.append(tensor.detach() if not tensor.requires_grad else tensor.data)
        return storage_of(tensor)


def storage_of(tensor: Tensor) -> int:
    """A number of its memory, which views share."""
    try:
        return int(tensor.untyped_storage()._cdata)  # private: the address alone is not enough for tensors of no memory
    except (NotImplementedError, RuntimeError):  # a tensor that is made of others
        return id(tensor)


def _has_heads(tensor: Tensor) -> bool:
    """Or is square: else it might be what a router makes of values that were weighted and not mapped."""
    return tensor.dim() >= 4 or (tensor.dim() == 3 and tensor.shape[-1] == tensor.shape[-2])


def _put(known: dict[int, Any], storage: int, value: Any) -> None:
    if value is None:
        known.pop(storage, None)
    else:
        known[storage] = value


def _mark(known: set[int], storage: int, has: bool) -> None:
    (known.add if has else known.discard)(storage)
