"""What hierarchical attention remembers: for every complete chunk a landmark to find it by, and its keys and values.

Chunks lie in pages. A sequence that is read at once has one page. A stream adds to its last page until that is full; landmarks
stay on the device, and where keys and values take more than DEVICE_BYTES there, those of the oldest pages are on the host, from
which only chosen chunks come back.

Shapes: B samples, G groups of heads that share keys and values, N chunks of a page, S tokens of a chunk, R channels of a
landmark, C channels of a head, E = 2C for keys and values, Q queries, K chunks that each of them reads, I landmarks of a batch,
side by side.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lengthlab.errors import require
from lengthlab.models.attention.pages import extended, placed
from lengthlab.models.exact import exact, unrounded

PAGE = 1024
"""Chunks of a full page."""
DEVICE_BYTES = 2**24
"""Of keys and values on the device at the most, once they are more than a page: little, so that a stream of millions of tokens
takes hardly more of it than a short one.
"""


@dataclass(frozen=True)
class Page:
    """Chunks that follow one another."""

    landmark_BGNR: Tensor
    kv_BGNSE: Tensor

    @property
    def number(self) -> int:
        return self.landmark_BGNR.shape[2]

    @property
    def nbytes(self) -> int:
        """Of keys and values; landmarks stay where they are."""
        return self.kv_BGNSE.nbytes

    def then(self, other: Page) -> Page:
        """This one and what follows it, where its own keys and values are."""
        kv = torch.cat((self.kv_BGNSE, other.kv_BGNSE.to(self.kv_BGNSE.device)), dim=2)
        return Page(torch.cat((self.landmark_BGNR, other.landmark_BGNR), dim=2), kv)

    def part(self, start: int, end: int) -> Page:
        """Some of its chunks, without the memory of the others."""
        return Page(self.landmark_BGNR[:, :, start:end].clone(), self.kv_BGNSE[:, :, start:end].clone())

    def on_host(self) -> Page:
        return self if self.kv_BGNSE.device.type == "cpu" else replace(self, kv_BGNSE=self.kv_BGNSE.cpu())

    def rows(self, row_M: Tensor, device: torch.device) -> Tensor:
        """Chosen chunks, counted through samples and groups, as (M, S, E)."""
        rows_ISE = self.kv_BGNSE.flatten(0, 2)
        return rows_ISE.index_select(0, row_M.to(rows_ISE.device)).to(device)


@dataclass(frozen=True)
class Chunks:
    """All complete chunks so far. Nothing in it changes: what a stream adds is in a new one.

    >>> page = Page(torch.eye(3).view(1, 1, 3, 3), torch.arange(12.0).view(1, 1, 3, 2, 2))
    >>> chunks = Chunks(size=2, pages=(page,))
    >>> score, chunk, seen = chunks.best(torch.tensor([[[[0.0, 3.0, 9.0]]]]), torch.tensor([[5]]), most=2)
    >>> chunk.tolist(), seen.tolist()  # most recent first, and not the one that token 5 is in itself
    ([[[[1, 0]]]], [[[[True, True]]]])
    """

    size: int
    """Tokens of a chunk."""
    pages: tuple[Page, ...] = ()
    first: int = 0
    """The index in its sequence of the first token that is read with these chunks."""
    overlap: int = 0
    """Tokens that a chunk has in common with the one before it."""
    others: int = 0
    """Before a sample's own chunks are those of so many samples before it in the batch, which all its tokens see."""

    @property
    def number(self) -> int:
        """That a sample can see."""
        return (self.others + 1) * sum(page.number for page in self.pages)

    @property
    def foreign(self) -> int:
        """Of those, the ones of other samples."""
        return self.number // (self.others + 1) * self.others

    @property
    def groups(self) -> int:
        return self.pages[0].landmark_BGNR.shape[1]

    @property
    def largest(self) -> int:
        """Chunks that are looked at together."""
        return (self.others + 1) * max((page.number for page in self.pages), default=0)

    @property
    def stride(self) -> int:
        """Tokens from the first of a chunk to the first of the next."""
        return self.size - self.overlap

    def complete(self, tokens: int) -> int:
        """The chunks of so many tokens.

        >>> [Chunks(size=4, overlap=1).complete(tokens) for tokens in (3, 4, 6, 7, 10)]
        [0, 1, 1, 2, 3]
        """
        return max(0, (tokens - self.size) // self.stride + 1)

    def best(self, r_BGQR: Tensor, index_BQ: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
        """score_BGQK, chunk_BGQK, seen_BGQK: the chunks with the highest scores, at most so many, most recent first.

        Scores are r · landmark / sqrt(R), in fp32 at least, and not in TF32. Seen are chunks that ended before the query's
        token; a query that has seen fewer than K chunks is given others, which are not `seen`.
        """
        ended_BQ = (index_BQ + self.first - self.size).div(self.stride, rounding_mode="floor") + 1
        complete_BQ = self.foreign + ended_BQ.clamp(min=0)
        score = exact(r_BGQR).new_empty(*r_BGQR.shape[:3], 0)
        chunk = torch.empty(score.shape, dtype=torch.int64, device=score.device)
        for start, page in placed(self.pages):
            score_BGQN = _scores(r_BGQR, self._landmarks(page))
            chunk_N = torch.arange(start, start + score_BGQN.shape[-1], device=score.device)
            score_BGQN = score_BGQN.masked_fill(chunk_N >= complete_BQ[:, None, :, None], -torch.inf)
            both = torch.cat((score.flip(-1), score_BGQN), dim=-1)
            score, chunk = choose(both, torch.cat((chunk.flip(-1), chunk_N.expand_as(score_BGQN)), dim=-1), most)
        return score, chunk, chunk < complete_BQ[:, None, :, None]

    def fetch(self, chunk_BGQK: Tensor) -> Tensor:
        """kv_BGQKSE: the keys and values of chosen chunks, on the device of the choice."""
        if len(self.pages) == 1:  # no search for what lies where, for which the host would wait for the device
            out_ISE = self.pages[0].rows(self.rows_of(chunk_BGQK).flatten(), chunk_BGQK.device)
            return out_ISE.view(*chunk_BGQK.shape, *out_ISE.shape[1:])
        row_BG = torch.arange(chunk_BGQK.shape[:2].numel(), device=chunk_BGQK.device).view(*chunk_BGQK.shape[:2], 1, 1)
        like = self.pages[0].kv_BGNSE
        out_ISE = torch.zeros(chunk_BGQK.numel(), *like.shape[3:], dtype=like.dtype, device=chunk_BGQK.device)
        for start, page in placed(self.pages):
            here_BGQK = (chunk_BGQK >= start) & (chunk_BGQK < start + page.number)
            at_M = here_BGQK.flatten().nonzero()[:, 0]
            if len(at_M):
                row_M = (row_BG * page.number + chunk_BGQK - start).flatten()[at_M]
                out_ISE.index_copy_(0, at_M, page.rows(row_M, out_ISE.device))
        return out_ISE.view(*chunk_BGQK.shape, *out_ISE.shape[1:])

    def rows_of(self, chunk_BGQK: Tensor) -> Tensor:
        """row_BGQK: where chosen chunks lie in the only page, counted through samples and groups."""
        (page,) = self.pages
        samples, groups = chunk_BGQK.shape[:2]
        sample_B = torch.arange(samples, device=chunk_BGQK.device).view(-1, 1, 1, 1)
        group_G = torch.arange(groups, device=chunk_BGQK.device).view(-1, 1, 1)
        before = self.others - chunk_BGQK // page.number
        return ((sample_B - before) % samples * groups + group_G) * page.number + chunk_BGQK % page.number

    def after_others(self, others: int) -> Chunks:
        """A sample's chunks after those of so many other samples of its batch, as if it had been read after them.

        >>> page = Page(torch.arange(2.0).view(2, 1, 1, 1), torch.zeros(2, 1, 1, 4, 2))
        >>> after = Chunks(size=4, pages=(page,)).after_others(1)
        >>> after.number, after.rows_of(torch.arange(2).expand(2, 1, 1, 2)).flatten(1).tolist()
        (2, [[1, 0], [0, 1]])
        """
        if not others:
            return self
        (page,) = self.pages
        samples = len(page.kv_BGNSE)
        require(others < samples, f"a batch of {samples} samples has not {others} distractors for each of them")
        return replace(self, others=others)

    def _landmarks(self, page: Page) -> Tensor:
        """landmark_BGRN of all chunks that a sample sees in a page. Of other samples' it has no copies, but a window on all
        landmarks of the batch, side by side, with the last samples once more before the first; their gradients, and with
        several groups the product that scores them, take as much room as copies.
        """
        if not self.others:
            return exact(page.landmark_BGNR).transpose(2, 3)
        ring_BGNR = torch.cat((page.landmark_BGNR[-self.others :], page.landmark_BGNR))
        ring_GRI = exact(ring_BGNR).permute(1, 3, 0, 2).flatten(2)
        return ring_GRI.unfold(2, (self.others + 1) * page.number, page.number).permute(2, 0, 1, 3)

    def extended(self, page: Page) -> Chunks:
        """And these after them."""
        return replace(self, pages=extended(self.pages, page, PAGE, DEVICE_BYTES))


def choose(score_N: Tensor, chunk_N: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The highest scores of the last dimension and their chunks, last first; of equal scores the last are taken.

    >>> choose(torch.tensor([1.0, 5.0, 1.0, 1.0]), torch.arange(4), most=3)
    (tensor([1., 1., 5.]), tensor([3, 2, 1]))
    """
    number = score_N.shape[-1]
    if number <= most:
        return score_N.flip(-1), chunk_N.flip(-1)
    with torch.no_grad():
        least = score_N.topk(most, dim=-1).values[..., -1:]
        place_N = torch.arange(number, device=score_N.device)
        rank_N = torch.where(score_N > least, place_N + number, place_N.where(score_N == least, -1))  # no two alike
        at_K = rank_N.topk(most, dim=-1).indices.sort(dim=-1, descending=True).values
    return score_N.gather(-1, at_K), chunk_N.gather(-1, at_K)


def _scores(r_BGQR: Tensor, landmark_BGRN: Tensor) -> Tensor:
    kind = r_BGQR.device.type
    known = torch.amp.is_autocast_available(kind)  # not of tensors without memory
    with torch.autocast(kind, enabled=False) if known else nullcontext(), unrounded():
        scores: Tensor = exact(r_BGQR) @ landmark_BGRN / r_BGQR.shape[3] ** 0.5
    return scores
