"""A window on attention, whoever wrote it: while a module runs, what it asks torch to weigh is cut to the last positions.

A query sees the keys of its own position and of the w - 1 before it (in attention that looks both ways, as many after it).
Where there are as many queries as keys, the place of a query is its number; else it is that of the last key that the mask
lets it see, so caches and queries at named positions are served as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lengthlab.errors import LabError, require

SOFTMAX: tuple[Callable[..., Any], ...] = (torch.softmax, F.softmax, Tensor.softmax, torch.special.softmax)
MASKED = -9_999.0
"""What is added to a score is no bias from here on, but a mask; some models write one of -10,000."""
_RUNNING: list[Band] = []


def is_windowed() -> bool:
    """Whether somebody's window is on attention just now. A kernel that has no mask must not be taken then."""
    return len(_RUNNING) > 0


class Band(TorchFunctionMode):
    """While it is entered, a query sees `width` positions. `seen` counts the calls that it has cut, or need not have."""

    def __init__(self, width: int, site: str = "attention") -> None:
        super().__init__()
        self.width, self.site, self.seen = width, site, 0

    def __enter__(self) -> Band:
        _RUNNING.append(self)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *raised: Any) -> None:
        _RUNNING.pop()
        super().__exit__(*raised)  # type: ignore[no-untyped-call]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            return self._attend(*args, **kwargs)
        if func is F.multi_head_attention_forward:
            return self._attend_in_torch(*args, **kwargs)
        if func in SOFTMAX and self._weighs(*args, **kwargs):
            scores, *rest = args if args else (kwargs.pop("input"),)
            return func(self._cut(scores), *rest, **kwargs)
        return func(*args, **kwargs)

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *rest: Any, **named: Any
    ) -> Tensor:
        """`scaled_dot_product_attention`, whose own causal mask is that of a sequence without a cache."""
        self.seen += 1
        arguments = dict(zip(("dropout_p", "is_causal", "scale", "enable_gqa"), rest, strict=False)) | named
        queries, keys = query.shape[-2], key.shape[-2]
        if self.width < keys:
            if arguments.pop("is_causal", False):
                require(attn_mask is None, f"'{self.site}' is given a mask and asked to be causal, too")
                attn_mask = torch.ones(queries, keys, dtype=torch.bool, device=query.device).tril()
            attn_mask = self._narrowed(attn_mask, queries, keys, query)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask, **arguments)

    def _narrowed(self, mask: Tensor | None, queries: int, keys: int, like: Tensor) -> Tensor:
        if mask is None:
            # One query and no mask is the newest token; several, fewer than the keys, are of another sequence.
            self._require_one_sequence(queries in (1, keys))
            seen = torch.ones(queries, keys, dtype=torch.bool, device=like.device)
        else:
            self._require_one_sequence(queries == keys or mask.shape[-2] == queries)
            seen = mask if mask.dtype == torch.bool else mask > MASKED
        band = self._band(seen, queries, keys)
        if mask is None or mask.dtype == torch.bool:
            return seen & band
        return torch.where(band, mask, mask.clamp(max=_low(mask)))

    def _attend_in_torch(self, *args: Any, **kwargs: Any) -> Any:
        """What `nn.MultiheadAttention` calls: tokens come first, and a mask names what is not to be seen."""
        self.seen += 1
        bound = inspect.signature(F.multi_head_attention_forward).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        query, queries, keys = given["query"], given["query"].shape[0], given["key"].shape[0]
        self._require_one_sequence(queries == keys)
        if self.width < keys:
            mask = given["attn_mask"]
            if mask is None or mask.dtype == torch.bool:
                hidden = torch.zeros(queries, keys, dtype=torch.bool, device=query.device) if mask is None else mask
                mask = query.new_zeros(hidden.shape).masked_fill(hidden, -torch.inf)
            band = self._band(mask > MASKED, queries, keys)
            given["attn_mask"], given["is_causal"] = torch.where(band, mask, mask.clamp(max=_low(mask))), False
        return F.multi_head_attention_forward(*bound.args, **bound.kwargs)

    def _weighs(self, input: Any, dim: Any = None, *rest: Any, **named: Any) -> bool:
        """Whether a softmax is one of scores, queries by keys."""
        return input.dim() >= 2 and dim in (-1, input.dim() - 1)

    def _cut(self, scores: Tensor) -> Tensor:
        queries, keys = scores.shape[-2:]
        # In training all tokens have queries; fewer of them is decoding with a cache, or something else altogether.
        fits = queries == keys or (not torch.is_grad_enabled() and queries < keys)
        self._require_one_sequence(fits)
        self.seen += 1
        if self.width >= keys:
            return scores
        return scores.masked_fill(~self._band(scores > MASKED, queries, keys), _low(scores))

    def _band(self, seen: Tensor, queries: int, keys: int) -> Tensor:
        place_T = torch.arange(keys, device=seen.device)
        if queries == keys:
            return (place_T[:, None] - place_T).abs() < self.width
        last = torch.where(seen, place_T, -1).amax(-1, keepdim=True)
        return place_T > last - self.width

    def _require_one_sequence(self, is_one: bool) -> None:
        if not is_one:
            raise LabError(
                f"'{self.site}' weighs other positions than those of its own sequence, on which there is no window: "
                "name the self-attention alone with modules="
            )


def _low(scores: Tensor) -> float:
    """So low that it weighs nothing, and finite: a padded row may have nothing left to see, and must not become NaN."""
    return float(torch.finfo(scores.dtype).min) / 2
