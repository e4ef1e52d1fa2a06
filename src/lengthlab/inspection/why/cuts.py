"""One of the two pathways cut at a position, in a network that is only looked at.

Attention is cut by a mask: what comes from the boundary on sees nothing before it but a first token that all sequences share,
on which many heads rest. A recurrence is cut by what it reads: its outputs from the boundary on are those of a sequence that
begins there, or that has another's tokens before it. So any causal module can be cut, whatever its state looks like.

Shapes: B samples, T tokens, D width, H heads, Q tokens with a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.inspection.why.parts import Parts
from lengthlab.models.attention.positions import reads_pieces
from lengthlab.models.attention.scores import CustomWeights
from lengthlab.models.layout import PLAIN, Layout, pick
from lengthlab.switch.band import Band


class Watched(nn.Module):
    """Scores of attention around the usual ones: weights as these have them, cut at a boundary, or seen where one is asked."""

    def __init__(self, usual: nn.Module) -> None:
        super().__init__()
        self.usual = usual
        self.boundary: int | None = None
        self.shared_first = False
        self.asked_B: Tensor | None = None
        self.seen_BHT: Tensor | None = None
        """The weights of the query at `asked_B`, where that is set."""

    @property
    def in_pieces(self) -> bool:
        return reads_pieces(self.usual)

    def forward(self, q_BHQC: Tensor, x_BQD: Tensor, layout: Layout = PLAIN) -> Tensor:
        out_BHQC: Tensor = self.usual(q_BHQC, x_BQD, layout)
        return out_BHQC

    def weigh(self, scores_BHQT: Tensor, seen_BHQT: Tensor) -> Tensor:
        index_BHQ = seen_BHQT.sum(dim=-1) - 1  # how many tokens a query sees tells which it is
        if self.boundary is not None:
            seen_BHQT = seen_BHQT & ~hidden(index_BHQ, seen_BHQT.shape[-1], self.boundary, self.shared_first)
        if isinstance(self.usual, CustomWeights):
            weights_BHQT = self.usual.weigh(scores_BHQT, seen_BHQT)
        else:
            weights_BHQT = scores_BHQT.masked_fill(~seen_BHQT, -torch.inf).softmax(dim=-1)
        if self.asked_B is not None:
            here_BHQ = index_BHQ == self.asked_B[:, None, None]
            found_BHT = (weights_BHQT * here_BHQ[..., None]).sum(dim=2)
            self.seen_BHT = found_BHT if self.seen_BHT is None else self.seen_BHT + found_BHT
        return weights_BHQT


def hidden(index: Tensor, tokens: int, boundary: int, shared_first: bool) -> Tensor:
    """Which keys each query does not see any more.

    >>> hidden(torch.tensor([1, 2]), tokens=3, boundary=2, shared_first=True).tolist()
    [[False, False, False], [False, True, False]]
    """
    place_T = torch.arange(tokens, device=index.device)
    before_T = (place_T < boundary) & ((place_T > 0) | (not shared_first))
    return (index[..., None] >= boundary) & before_T


class Boundary(Band):
    """The same cut on attention that others wrote, found while it runs."""

    def __init__(self, boundary: int, shared_first: bool, tokens: int) -> None:
        super().__init__(width=0)
        self.boundary, self.shared_first, self.tokens = boundary, shared_first, tokens

    def _weighs(self, input: Any, dim: Any = None, *rest: Any, **named: Any) -> bool:
        """Of every token by every token: a router that chooses experts for tokens weighs something else."""
        whole = input.dim() >= 2 and tuple(input.shape[-2:]) == (self.tokens, self.tokens)
        return whole and super()._weighs(input, dim, *rest, **named)

    def _band(self, seen: Tensor, queries: int, keys: int) -> Tensor:
        place_T = torch.arange(keys, device=seen.device)
        index = place_T if queries == keys else torch.where(seen, place_T, -1).amax(-1)
        return ~hidden(index, keys, self.boundary, self.shared_first)


def watch_attention(parts: Parts) -> list[Watched]:
    """Put a watch around every attention whose weights can be seen; once, and for good: the network is a copy."""
    found = []
    for attention in parts.weighed.values():
        usual = attention.scores
        attention.scores = usual if isinstance(usual, Watched) else Watched(usual).eval()
        found.append(attention.scores)
    return found


@contextmanager
def attention_cut(parts: Parts, boundary: int, shared_first: bool, tokens: int) -> Iterator[None]:
    """Nothing from the boundary on sees what is before it; `tokens` of a sequence are read."""
    watches = watch_attention(parts)
    with ExitStack() as stack:
        for module in parts.blocks.values():
            stack.enter_context(_forward(module, lambda real: _silent(real, boundary)))
        stack.enter_context(Boundary(boundary, shared_first, tokens) if parts.foreign else nullcontext())
        for watch in watches:
            watch.boundary, watch.shared_first = boundary, shared_first
        try:
            yield
        finally:
            for watch in watches:
                watch.boundary = None


@contextmanager
def state_cut(parts: Parts, boundary: int, another: bool) -> Iterator[None]:
    """Recurrences have, from the boundary on, the state of a sequence that begins there, or of another one of the batch."""
    with ExitStack() as stack:
        for module in parts.recurrences.values():
            time = 0 if isinstance(module, nn.RNNBase) and not module.batch_first else 1
            stack.enter_context(_forward(module, lambda real, time=time: _from(real, boundary, another, time)))  # type: ignore[misc]
        yield


@contextmanager
def _forward(module: nn.Module, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Another forward in the module object, for a while."""
    before = vars(module).get("forward")
    module.forward = change(module.forward)
    try:
        yield
    finally:
        if before is None:
            del module.forward
        else:
            module.forward = before


def _silent(real: Callable[..., Any], boundary: int) -> Callable[..., Any]:
    """Attention over chunks or a window has no weights that a mask could change: from the boundary on it gives nothing."""

    def forward(x_BTD: Tensor, layout: Layout = PLAIN) -> Tensor:
        index_BQ = layout.index(x_BTD.shape[1], x_BTD.device)
        out: Tensor = real(x_BTD, layout)
        return out.masked_fill((index_BQ >= boundary)[..., None], 0.0)

    return forward


def _from(real: Callable[..., Any], boundary: int, another: bool, time: int) -> Callable[..., Any]:
    def forward(*given: Any, **named: Any) -> Any:
        name = None if given else next(key for key, each in named.items() if isinstance(each, Tensor) and each.dim() == 3)
        x, rest = (given[0], given[1:]) if name is None else (named.pop(name), ())
        layout = rest[0] if rest and isinstance(rest[0], Layout) else None
        rest = rest if layout is None else (layout.everywhere, *rest[1:])

        def run(x: Tensor, begin: int) -> Any:
            """The real forward on tokens from here on."""
            others = {key: _after(each, begin, tokens) for key, each in named.items()}
            placed = (x, *(_after(each, begin, tokens) for each in rest))
            return real(*placed, **others) if name is None else real(**{name: x}, **others)

        tokens = x.shape[time]
        whole = run(x, 0)
        if boundary < tokens:
            before, after = x.split_with_sizes([boundary, tokens - boundary], dim=time)
            other = torch.cat([before.roll(1, dims=1 - time), after], dim=time)
            cut = (
                _outputs(run(other, 0)).narrow(time, boundary, tokens - boundary) if another else _outputs(run(after, boundary))
            )
            out = torch.cat([_outputs(whole).narrow(time, 0, boundary), cut], dim=time)
            whole = (out, *whole[1:]) if isinstance(whole, tuple) else out
        return whole if layout is None else pick(whole, layout.query_BQ)

    return forward


def _outputs(given: Any) -> Tensor:
    """Of a module that may give its state beside them."""
    out: Tensor = given[0] if isinstance(given, tuple) else given
    return out


def _after(given: Any, boundary: int, tokens: int) -> Any:
    """Position ids and masks are those of the tokens that are left."""
    if boundary and isinstance(given, Layout) and given.position_BT is not None:
        return replace(given, position_BT=given.position_BT[:, boundary:])
    by_token = isinstance(given, Tensor) and given.dim() == 2 and given.shape[1] == tokens
    return given[:, boundary:] if by_token else given
