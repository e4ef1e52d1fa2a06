"""What softmax attention goes on from: the keys and values of all tokens so far, in pages, and how queries read them.

Nothing is computed twice, and no more scores than SCORES are there at a time, so memory grows with T and not with T². What is
kept costs 2D numbers a token and layer, at width 256 in fp32 2 KiB: 2 GiB for a million tokens. Where that is more than
DEVICE_BYTES on a device, the oldest pages are on the host and come back one at a time, once for every piece that reads them.

Shapes: B samples, H heads, N tokens of a page, T of all pages, Q queries, C channels of a head, D = H · C width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lengthlab.models.attention.pages import extended, placed
from lengthlab.models.exact import exact

PAGE = 2**12
"""Tokens of a full page."""
DEVICE_BYTES = 2**31
"""Of keys and values of a layer on the device at the most, once they are more than a page."""
SCORES = {"cpu": 2**22, "cuda": 2**24}
"""Of queries and keys, at a time; those of one query and all that it may see at the least, where they are needed together."""

Bias = Callable[[Tensor, Tensor], Tensor]
"""bias_BHQN, to be added to scores, of the positions of queries and of keys."""
Weigh = Callable[[Tensor, Tensor], Tensor]
"""weights_BHQT of all scores of a query and of what it sees."""


@dataclass(frozen=True)
class Page:
    """Tokens that follow one another. Positions are ids, where the task has its own; B of them may be 1 for all."""

    k_BHNC: Tensor
    v_BHNC: Tensor
    position_BN: Tensor

    @property
    def number(self) -> int:
        """Of tokens."""
        return self.k_BHNC.shape[2]

    @property
    def nbytes(self) -> int:
        return self.k_BHNC.nbytes + self.v_BHNC.nbytes

    def on_host(self) -> Page:
        return self if self.k_BHNC.device.type == "cpu" else self.to(torch.device("cpu"))

    def then(self, other: Page) -> Page:
        """This one and what follows it, where its own keys and values are."""
        other, k = other.to(self.k_BHNC.device), torch.cat((self.k_BHNC, other.k_BHNC), dim=2)
        position_BN = torch.cat((self.position_BN, other.position_BN), dim=1)
        return Page(k, torch.cat((self.v_BHNC, other.v_BHNC), dim=2), position_BN)

    def part(self, start: int, end: int) -> Page:
        """Some of its tokens, without the memory of the others."""
        k, v = (x_BHNC[:, :, start:end].contiguous().clone() for x_BHNC in (self.k_BHNC, self.v_BHNC))
        return Page(k, v, self.position_BN[:, start:end].clone())

    def to(self, device: torch.device) -> Page:
        return Page(self.k_BHNC.to(device), self.v_BHNC.to(device), self.position_BN.to(device))


@dataclass(frozen=True)
class Queries:
    """`index_BQ`: where they stand in their sequence; B may be 1 for all. `position_BQ`: by which a `bias` goes."""

    q_BHQC: Tensor
    index_BQ: Tensor
    position_BQ: Tensor
    bias: Bias | None = None

    def split(self, some: int) -> Iterator[Queries]:
        """So many at a time."""
        dims = zip((self.q_BHQC, self.index_BQ, self.position_BQ), (2, 1, 1), strict=True)
        for q_BHQC, index_BQ, position_BQ in zip(*(torch.split(x, some, dim) for x, dim in dims), strict=True):
            yield replace(self, q_BHQC=q_BHQC, index_BQ=index_BQ, position_BQ=position_BQ)

    def scores(self, page: Page) -> Tensor:
        """scores_BHQN, in fp32 at least."""
        scores: Tensor = (self.q_BHQC / self.q_BHQC.shape[3] ** 0.5) @ page.k_BHNC.transpose(2, 3)
        if self.bias is not None:
            scores = scores + self.bias(self.position_BQ, page.position_BN).to(scores.dtype)
        return exact(scores)

    def sees(self, start: int, tokens: int) -> Tensor:
        """seen_B1QN of the tokens from one on: its own, and what is before it."""
        return (torch.arange(start, start + tokens, device=self.index_BQ.device) <= self.index_BQ[:, :, None])[:, None]


@dataclass(frozen=True)
class KeyValues:
    """Of all tokens so far. Nothing in it changes: what a stream adds is in a new one.

    >>> page = Page(torch.zeros(1, 1, 3, 2), torch.arange(6.0).view(1, 1, 3, 2), torch.arange(3)[None])
    >>> asked = Queries(torch.ones(1, 1, 1, 2), torch.tensor([[1]]), torch.tensor([[1]]))
    >>> KeyValues().extended(page).softmax(asked)  # of two tokens, all scores being the same
    tensor([[[[1., 2.]]]])
    """

    pages: tuple[Page, ...] = ()

    @property
    def tokens(self) -> int:
        return sum(page.number for page in self.pages)

    def extended(self, page: Page) -> KeyValues:
        """And these after them."""
        return KeyValues(extended(self.pages, page, PAGE, DEVICE_BYTES))

    def softmax(self, queries: Queries) -> Tensor:
        """mixed_BHQC, a page at a time: what was summed so far is scaled down whenever a higher score is met (Milakov &
        Gimelshein 2018, arXiv 1805.02867; Rabe & Staats 2021, arXiv 2112.05682).
        """
        blocks = [_RunningSoftmax(block) for block in queries.split(_some(queries, PAGE))]
        for start, page in self._placed(queries.q_BHQC.device):
            for block in blocks:
                block.add(start, page)
        return torch.cat([block.mixed() for block in blocks], dim=2)

    def weighed(self, queries: Queries, weigh: Weigh) -> Tensor:
        """mixed_BHQC, where weights need all scores of a query together."""
        return torch.cat([self._weighed(block, weigh) for block in queries.split(_some(queries, self.tokens))], dim=2)

    def _weighed(self, queries: Queries, weigh: Weigh) -> Tensor:
        device = queries.q_BHQC.device
        scores_BHQT = torch.cat([queries.scores(page) for _, page in self._placed(device)], dim=3)
        weights_BHQT = weigh(scores_BHQT, queries.sees(0, self.tokens).expand_as(scores_BHQT))
        mixed_BHQC = torch.zeros_like(queries.q_BHQC)
        for start, page in self._placed(device):
            mixed_BHQC = mixed_BHQC + weights_BHQT[..., start : start + page.number].to(page.v_BHNC.dtype) @ page.v_BHNC
        return mixed_BHQC

    def _placed(self, device: torch.device) -> Iterator[tuple[int, Page]]:
        return ((start, page.to(device)) for start, page in placed(self.pages))


class _RunningSoftmax:
    """Of some queries, over the pages that they have met."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.first, self.last = int(queries.index_BQ.min()), int(queries.index_BQ.max())
        self.sum_BHQC = torch.zeros_like(exact(queries.q_BHQC))
        self.total_BHQ1 = self.sum_BHQC[..., :1].clone()
        self.highest_BHQ1 = torch.full_like(self.total_BHQ1, -torch.inf)

    def add(self, start: int, page: Page) -> None:
        """Every query sees something of the first page, so there always is a highest score."""
        if start > self.last:
            return
        scores_BHQN = self.queries.scores(page)
        if start + page.number - 1 > self.first:
            scores_BHQN = scores_BHQN.masked_fill(~self.queries.sees(start, page.number), -torch.inf)
        highest_BHQ1 = torch.maximum(self.highest_BHQ1, scores_BHQN.amax(dim=-1, keepdim=True))
        weights_BHQN = (scores_BHQN - highest_BHQ1).exp_()
        less_BHQ1 = (self.highest_BHQ1 - highest_BHQ1).exp()
        self.total_BHQ1 = self.total_BHQ1 * less_BHQ1 + weights_BHQN.sum(dim=-1, keepdim=True)
        self.sum_BHQC = self.sum_BHQC * less_BHQ1 + weights_BHQN.to(page.v_BHNC.dtype) @ page.v_BHNC
        self.highest_BHQ1 = highest_BHQ1

    def mixed(self) -> Tensor:
        """mixed_BHQC, so far."""
        return (self.sum_BHQC / self.total_BHQ1).to(self.queries.q_BHQC.dtype)


def _some(queries: Queries, keys: int) -> int:
    """How many queries meet so many keys at a time."""
    q_BHQC = queries.q_BHQC
    return max(1, SCORES.get(q_BHQC.device.type, SCORES["cpu"]) // (q_BHQC.shape[:2].numel() * keys))
