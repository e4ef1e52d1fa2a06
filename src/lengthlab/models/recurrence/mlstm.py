"""The LSTM with exponential gates and a matrix memory.

Shapes: B samples, T tokens, D width, H heads, C = D / H channels of a head, E = C + 1 for values and the normalizer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.errors import require, require_whole
from lengthlab.models.exact import exact
from lengthlab.models.linear import Linear
from lengthlab.models.recurrence.exponential import ExponentialScan, scan_exponential, walk_exponential
from lengthlab.models.recurrence.recurrence import Recurrence, State
from lengthlab.models.recurrence.short_conv import ShortConv


@dataclass(frozen=True)
class MLstm:
    """The mLSTM of xLSTM (Beck et al. 2024, arXiv 2405.04517): a matrix of keys and values, exponential gates.

    S = f·S + i·k·vᵀ, n = f·n + i·k, h = o ⊙ Sᵀq / max(|n·q|, 1), where i = exp(w_i·x), f = σ(w_f·x) and o = σ(W_o·x), and q
    and k (divided by √C) come of x through a causal convolution over `conv` tokens, as in the paper's block; v of x itself.
    Then every head is normalised, and a linear map follows. The block's widening inside is left out. Forget biases begin from
    3 to 6, as in its code.

    >>> [name for name, _ in MLstm(heads=2).build(width=4).named_children()]
    ['conv', 'qk', 'v', 'gates', 'open', 'norm', 'out']
    """

    heads: int = 4
    conv: int = 4

    def __post_init__(self) -> None:
        require_whole(self.heads, "mlstm.heads", 1)
        require_whole(self.conv, "mlstm.conv", 1)

    def build(self, width: int) -> nn.Module:
        require(width % self.heads == 0, f"mlstm.heads = {self.heads} does not divide model.width = {width}")
        return _MLstm(width, self.heads, self.conv)


class _MLstm(Recurrence):
    """A state: what the convolution has to remember, S and n in one (S_BHCE, the last column is n), and m_BH."""

    def __init__(self, width: int, heads: int, conv: int) -> None:
        super().__init__()
        self.heads = heads
        self.conv = ShortConv(width, conv)
        self.qk = Linear(width, 2 * width)
        self.v = Linear(width, width)
        self.gates = Linear(width, 2 * heads)
        self.open = Linear(width, width)
        self.norm = nn.LayerNorm(width // heads)
        self.out = Linear(width, width)
        with torch.no_grad():
            self.gates.bias.copy_(torch.cat((torch.zeros(heads), torch.linspace(3.0, 6.0, heads))))

    def walk(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        return self._through(x_BTD, state, walk_exponential)

    def read(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        return self._through(x_BTD, state, scan_exponential)

    def _through(self, x_BTD: Tensor, state: State | None, scan: ExponentialScan) -> tuple[Tensor, State]:
        seen_BTD, window = self.conv(x_BTD, None if state is None else state[0])
        q_BHTC, k_BHTC = map(self._heads, self.qk(seen_BTD).chunk(2, dim=-1))
        v_BHTE = F.pad(self._heads(self.v(x_BTD)), (0, 1), value=1.0)
        input_BHT, forget_BHT = exact(self.gates(x_BTD)).transpose(1, 2).chunk(2, dim=1)
        channels = q_BHTC.shape[-1]
        memory = (v_BHTE.new_zeros(*v_BHTE.shape[:2], channels, channels + 1), v_BHTE.new_full(v_BHTE.shape[:2], -torch.inf))
        gates = input_BHT, F.logsigmoid(forget_BHT)
        out_BHTE, m_BHT, s, m = scan(q_BHTC, k_BHTC / channels**0.5, v_BHTE, *gates, *(memory if state is None else state[1:]))
        weight_BHT1 = torch.maximum(out_BHTE[..., -1:].abs(), (-m_BHT).exp()[..., None])
        h_BTHC = self.norm((out_BHTE[..., :-1] / weight_BHT1).transpose(1, 2).to(x_BTD.dtype))
        return self.out(self.open(x_BTD).sigmoid() * h_BTHC.flatten(2)), (window, s, m)

    def _heads(self, x_BTD: Tensor) -> Tensor:
        return torch.unflatten(exact(x_BTD), -1, (self.heads, -1)).transpose(1, 2)
