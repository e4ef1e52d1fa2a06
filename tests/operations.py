"""What PyTorch is asked to do meanwhile: how many operations, and how large a tensor they make."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class Operations(TorchDispatchMode):
    """`with Operations() as made: ...`"""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.largest = 0
        """Numbers of the largest tensor."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.number += 1
        for each in out if isinstance(out, (tuple, list)) else [out]:
            self.largest = max(self.largest, each.numel() if isinstance(each, Tensor) else 0)
        return out
