"""Linear map and embedding whose sums over all tokens are matrix products too: on a GPU a product with ones (or with a one-hot
matrix) takes a third of the time of the general reduction (or of the sort that a general embedding starts with).

Shapes: N tokens, D and E widths, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx


class Linear(torch.autograd.Function):
    """x_ND W_ED^T + b_E."""

    @staticmethod
    def forward(ctx: FunctionCtx, x_ND: Tensor, weight_ED: Tensor, bias_E: Tensor) -> Tensor:
        ctx.save_for_backward(x_ND, weight_ED)
        return torch.addmm(bias_E, x_ND, weight_ED.T)

    @staticmethod
    def backward(ctx: FunctionCtx, grad_NE: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x_ND, weight_ED = ctx.saved_tensors  # type: ignore[attr-defined]
        ones_1N = grad_NE.new_ones(1, len(grad_NE))
        return grad_NE @ weight_ED, grad_NE.T @ x_ND, (ones_1N @ grad_NE)[0]


class Embedding(torch.autograd.Function):
    """Rows of weight_VD."""

    @staticmethod
    def forward(ctx: FunctionCtx, tokens_N: Tensor, weight_VD: Tensor) -> Tensor:
        ctx.save_for_backward(tokens_N, weight_VD)
        return weight_VD.index_select(0, tokens_N)

    @staticmethod
    def backward(ctx: FunctionCtx, grad_ND: Tensor) -> tuple[None, Tensor]:
        tokens_N, weight_VD = ctx.saved_tensors  # type: ignore[attr-defined]
        word_V = torch.arange(len(weight_VD), device=tokens_N.device)
        chosen_NV = (tokens_N[:, None] == word_V).to(grad_ND.dtype)
        return None, chosen_NV.T @ grad_ND
