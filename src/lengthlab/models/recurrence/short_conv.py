"""A short causal convolution, channel by channel: what lets a linear recurrence see the token before.

Shapes: B samples, T tokens, X = T + W − 1 of them with those before, D channels, W tokens of the window.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab import kernels


class ShortConv(nn.Module):
    """SiLU of a weighted sum of the last `window` tokens. What it needs to go on are the last `window − 1` of them.

    >>> conv = ShortConv(channels=1, window=2)
    >>> out_BTD, before = conv(torch.ones(1, 3, 1), None)
    >>> out_BTD.shape, before.shape
    (torch.Size([1, 3, 1]), torch.Size([1, 1, 1]))
    """

    def __init__(self, channels: int, window: int) -> None:
        super().__init__()
        self.weight_WD = nn.Parameter(torch.empty(window, channels).uniform_(-1, 1) / window**0.5)
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x_BTD: Tensor, before_BWD: Tensor | None) -> tuple[Tensor, Tensor]:
        samples, tokens, channels = x_BTD.shape
        kept = len(self.weight_WD) - 1
        if before_BWD is None:
            before_BWD = x_BTD.new_zeros(samples, kept, channels)
        x_BXD = torch.cat((before_BWD, x_BTD), dim=1)
        if tokens and kernels.serve_short_conv(x_BXD, len(self.weight_WD)):
            return kernels.convolve(x_BXD, self.weight_WD, self.bias), x_BXD[:, tokens:]
        # A sum of shifted products: a convolution of PyTorch's for each channel by itself is slower on a CPU.
        shifted = (x_BXD[:, at : at + tokens] * weight_D for at, weight_D in enumerate(self.weight_WD.unbind()))
        return F.silu(sum(shifted, self.bias)), x_BXD[:, tokens:]
