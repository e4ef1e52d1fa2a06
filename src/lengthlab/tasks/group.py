"""Finite groups as states: cyclic Z_n, symmetric S_n, alternating A_n, their elements as words, products of long rows of them.

A permutation is written as where it sends 1, 2, 3, …: `231` sends 1 to 2, 2 to 3 and 3 to 1. A product is read from left to
right: first the first element, then the next. Z_n is addition modulo n.

Shapes: B samples, N elements of a row, G elements of a group, D points that a permutation moves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations

import torch
import torch.nn.functional as F
from torch import Tensor

from lengthlab.errors import cut, require

DEGREES = {"Z": range(2, 1001), "S": range(2, 7), "A": range(3, 7)}
"""So that no group has more than 1,000 elements, and its table no more than a million products."""


@dataclass(frozen=True, eq=False)
class Group:
    """`words` are its elements, the identity first. `table_GG[g, h]`, on the CPU, is the number of g, then h.

    >>> group = group_of("S3")
    >>> group.words, group.then("213", "132")
    (('123', '132', '213', '231', '312', '321'), '312')
    """

    name: str
    words: tuple[str, ...]
    table_GG: Tensor

    def then(self, one: str, other: str) -> str:
        """The product of two elements, as one would find it by hand."""
        if self.name.startswith("Z"):
            return str((int(one) + int(other)) % len(self.words))
        return "".join(other[int(point) - 1] for point in one)


@lru_cache(maxsize=8)
def group_of(name: str) -> Group:
    """The group of a name.

    >>> [len(group_of(name).words) for name in ("Z60", "S4", "A5")]
    [60, 24, 60]
    """
    found = re.fullmatch(r"([ZSA])([0-9]{1,4})", name) if isinstance(name, str) else None
    there = ", ".join(f"{kind}{degrees[0]} to {kind}{degrees[-1]}" for kind, degrees in DEGREES.items())
    fits = found is not None and int(found[2]) in DEGREES[found[1]]
    require(fits, f"task.group must be one of {there}, like 'S3', not {cut(repr(name))}")
    assert found is not None
    kind, degree = found[1], int(found[2])
    if kind == "Z":
        number_G = torch.arange(degree, device="cpu")
        return Group(name, tuple(map(str, range(degree))), (number_G[:, None] + number_G) % degree)
    members = [each for each in permutations(range(degree)) if kind == "S" or sign(each) == 1]
    words = tuple("".join(str(point + 1) for point in each) for each in members)
    return Group(name, words, _table(torch.tensor(members, device="cpu")))


def _table(sends_GD: Tensor) -> Tensor:
    """table_GG of permutations in ascending order: the number of each product is its place among them."""
    degree = sends_GD.shape[1]
    weight_D = degree ** torch.arange(degree - 1, -1, -1, device="cpu")
    product_GGD = sends_GD[:, sends_GD].transpose(0, 1).contiguous()  # where `then` sends what `first` has sent there
    return torch.searchsorted((sends_GD * weight_D).sum(dim=1), (product_GGD * weight_D).sum(dim=2))


def sign(points: tuple[int, ...]) -> int:
    """1 of an even permutation, -1 of an odd one.

    >>> sign((1, 2, 3)), sign((2, 1, 3))
    (1, -1)
    """
    odd = sum(one > other for one, other in combinations(points, 2)) % 2
    return -1 if odd else 1


def product(element_BN: Tensor, table_GG: Tensor) -> Tensor:
    """product_B of each row, neighbours first: a tree of as many levels as the logarithm of its length.

    >>> product(torch.tensor([[1, 2, 3]]), group_of("Z5").table_GG)
    tensor([1])
    """
    while element_BN.shape[1] > 1:
        element_BN = F.pad(element_BN, (0, element_BN.shape[1] % 2))  # the identity is element 0
        element_BN = table_GG[element_BN[:, ::2], element_BN[:, 1::2]]
    return element_BN[:, 0]


def products(element_BN: Tensor, table_GG: Tensor) -> Tensor:
    """product_BN of each row up to each of its elements, in as many rounds as the logarithm of its length.

    >>> products(torch.tensor([[1, 2, 3]]), group_of("Z5").table_GG)
    tensor([[1, 3, 1]])
    """
    reach = 1
    while reach < element_BN.shape[1]:
        before_BN = F.pad(element_BN, (reach, 0))[:, :-reach]  # the identity is element 0
        element_BN, reach = table_GG[before_BN, element_BN], 2 * reach
    return element_BN
