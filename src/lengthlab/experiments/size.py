"""How large a study is made: lengths of training, lengths where arms are measured, and how these are shown. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lengthlab.errors import require


@dataclass(frozen=True)
class Size:
    """`trained`: the shortest and the longest training length. `lengths`: where arms are measured. `gpu`: it takes one.
    `chance`: how often a guess is right, by question, for figures; not drawn if empty. `bins`: where the lengths of a bin are
    shown as one, the longest length of each bin, the training range among them; lengths in the middle of equal parts of a bin
    stand for all that are in it, where the last ones of each part would tell of its worse end.

    >>> size = Size("gpu", trained=(5, 50), lengths=(25, 50, 75, 100), bins=(50, 100))
    >>> size.shown, size.in_bin(100)
    ((50, 100), (75, 100))
    """

    name: str
    trained: tuple[int, int]
    lengths: tuple[int, ...]
    gpu: bool = False
    chance: Mapping[str, float] = field(default_factory=dict, hash=False)
    bins: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.bins:
            return
        where = f"size '{self.name}': its bins end at {', '.join(map(str, self.bins))}"
        require(list(self.bins) == sorted(set(self.bins)), f"{where}: name each once, the shortest first")
        require(self.trained[1] in self.bins, f"{where}, and no bin ends with the training range, at {self.trained[1]}")
        require(max(self.lengths, default=0) <= self.bins[-1], f"{where}, and longer sequences are measured")
        for end in self.bins:
            require(len(self.in_bin(end)) > 0, f"{where}, and nothing is measured in the one that ends at {end}")

    @property
    def shown(self) -> tuple[int, ...]:
        """The lengths of tables, claims and figures."""
        return self.bins or self.lengths

    @property
    def longest(self) -> int:
        """What a model must be able to read: no sequence is longer."""
        return max((*self.lengths, *self.bins))

    def in_bin(self, shown: int) -> tuple[int, ...]:
        """The measured lengths that a shown one stands for."""
        start = self.starts(shown)
        return tuple(length for length in self.lengths if start <= length <= shown)

    def starts(self, shown: int) -> int:
        """The shortest length that a shown one may stand for."""
        return 1 + max((end for end in self.bins if end < shown), default=0) if self.bins else shown
