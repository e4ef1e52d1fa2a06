"""Attention through a window that grows: at first to the last few positions, at last to all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from lengthlab.errors import LabError, require_number
from lengthlab.gradual import course, draw, value_at, whole_seed
from lengthlab.switch.band import Band
from lengthlab.switch.closing import whole_step
from lengthlab.switch.delay import Delay, Until
from lengthlab.switch.forwards import Switched
from lengthlab.switch.gradual_delay import Finding, GradualDelay, Partly, found, hold
from lengthlab.switch.sites import Site

Windows = int | Sequence[tuple[int, int]]
"""One number of positions, or from which step on which."""
OTHERS = ("key_value_states", "encoder_hidden_states", "memory", "context")
"""What another sequence is called where it is handed over to be looked at."""


class Windowed(Partly):
    """Off where the width is 0, through a window of that width, or all of it where the width is None."""

    width: int | None = 0
    always = True
    """In evaluation, too: it is what the model is now."""

    @property
    def is_off(self) -> bool:
        return self.width == 0

    def __init__(self, site: Site, ours: Switched) -> None:
        super().__init__(site, ours)
        # What is compiled would not see the window. Not as a decorator: that would load torch's compiler for everybody.
        self._through = torch.compiler.disable(Windowed._uncompiled)  # type: ignore[no-untyped-call]

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return self._through(self, *inputs, **named)

    def _uncompiled(self, *inputs: Any, **named: Any) -> Any:
        if self.width == 0:
            return self.stand_in(*inputs, **named)
        if self.width is None or not (self.always or self.module.training):
            return self.original(*inputs, **named)
        self._refuse_others(inputs, named)
        with Band(self.width, self.site) as band:
            out = self.original(*inputs, **named)
        if not band.seen:
            raise LabError(
                f"'{self.site}' calls no attention that a window can be put on (flash and flex attention have their own "
                "masks): load the model with attn_implementation='sdpa' or 'eager', or use by_chance or by_layer"
            )
        return out

    def _refuse_others(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        other = any(isinstance(named.get(name), Tensor) for name in OTHERS)
        if isinstance(self.module, nn.MultiheadAttention):
            query, key = (*inputs, *(named[name] for name in ("query", "key") if name in named))[:2]
            other = key is not query
        if other:
            raise LabError(f"'{self.site}' looks at another sequence, on which there is no window: leave it out with modules=")


class WindowDelay(GradualDelay):
    """`by_window` makes one."""

    def __init__(
        self,
        sites: tuple[Site, ...],
        windows: Windows,
        until: Until | None = None,
        p: float = 1.0,
        seed: int = 0,
        beside: Delay | None = None,
    ) -> None:
        self.windows, self.seed = course(windows, "windows", most=0, whole=True), whole_seed(seed)
        require_number(p, "p, the share of steps with a window,", above=0, most=1)
        self.p = float(p)
        super().__init__(sites, until, beside)

    @property
    def window(self) -> int | None:
        """Positions that a query sees in the coming step: none if 0, all if None."""
        if self.is_settled:
            return None
        width = 0 if self.waits else int(value_at(self.windows, self.steps))
        return None if width and draw(self.seed, self.steps) >= self.p else width

    @property
    def rule(self) -> dict[str, Any]:
        return {"windows": [list(pair) for pair in self.windows], "p": self.p, "seed": self.seed}

    def forward_of(self, site: Site, ours: Switched) -> Windowed:
        return Windowed(site, ours)

    def apply(self, steps: int) -> bool:
        for forward in self.partly:
            forward.width, forward.always = self.window, self.p == 1.0
        return self.window != 0

    def status(self) -> str:
        if self.is_settled:
            return super().status()
        then = f", and to all from step {self.until} on" if isinstance(self.until, int) else ""
        share = "" if self.p == 1.0 else f" in {self.p:.0%} of steps"
        return f"open to the last {int(value_at(self.windows, self.steps))} positions{share}{then}"


def by_window(
    model: nn.Module,
    windows: Windows,
    until: Until | None = None,
    p: float = 1.0,
    seed: int = 0,
    **options: Unpack[Finding],
) -> WindowDelay:
    """Attention to the last positions only, as many as `windows` says; from `until` on, to all.

    `windows` is a number or pairs of a step and a number; before the first of them attention is off. With `p` below 1 a step of
    training has the window with that probability, and full attention otherwise (as SWAX does it, with p = 0.5); evaluation then
    has full attention. Serves whatever calls `scaled_dot_product_attention`, `nn.MultiheadAttention` or a softmax of scores;
    what calls neither is an error that says so.

    >>> import torch
    >>> attention = nn.MultiheadAttention(8, 2, batch_first=True)
    >>> model = nn.ModuleDict({"attention": attention})
    >>> narrow = by_window(model, windows=[(0, 2), (100, 4)], until=200, modules="attention")
    >>> x = torch.randn(1, 5, 8)
    >>> (attention(x, x, x)[1][0] > 0).int()
    tensor([[1, 1, 0, 0, 0],
            [1, 1, 1, 0, 0],
            [0, 1, 1, 1, 0],
            [0, 0, 1, 1, 1],
            [0, 0, 0, 1, 1]], dtype=torch.int32)
    >>> narrow.go_to(100)
    >>> narrow.window
    4
    """
    plain = found(model, options)
    made = WindowDelay(plain.sites, windows, whole_step(until), p, seed, plain)
    hold(made)
    return made
