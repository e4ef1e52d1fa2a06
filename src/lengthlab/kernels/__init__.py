"""Kernels for one GPU. Everything here has a plain equal in `models`: take the room away and all still works, slower.

Shapes: N tokens of all documents, M of them with a query, B documents, D width, E = 2D, T tokens of the longest, F pairs.
"""

from __future__ import annotations

from importlib.util import find_spec

from torch import Tensor, nn

LONGEST = 128
"""Tokens of a document whose scores fit into one tile."""


def serve_tokens(x: Tensor) -> bool:
    """Whether what treats tokens one by one has kernels for this: on a GPU, and of a width that Triton's blocks have."""
    return _on_gpu(x) and _is_power(x.shape[-1])


def serve_attention(q_MD: Tensor, heads: int, longest: int) -> bool:
    """Whether attention has a kernel for this: on a GPU, heads of 32, 64 or 128 channels, short documents."""
    return _on_gpu(q_MD) and q_MD.shape[-1] // heads in (32, 64, 128) and longest <= LONGEST


def linear(x: Tensor, weight_ED: Tensor, bias_E: Tensor) -> Tensor:
    """As `F.linear`."""
    from lengthlab.kernels.products import Linear

    out: Tensor = Linear.apply(x.flatten(0, -2), weight_ED, bias_E)
    return out.view(*x.shape[:-1], -1)


def embed(tokens: Tensor, weight_VD: Tensor) -> Tensor:
    """As `F.embedding`."""
    from lengthlab.kernels.products import Embedding

    out: Tensor = Embedding.apply(tokens.flatten(), weight_VD)
    return out.view(*tokens.shape, -1)


def add_norm(x: Tensor, f: Tensor, norm: nn.LayerNorm) -> Tensor:
    """norm(x + f)."""
    from lengthlab.kernels.norm import AddNorm

    weights = (norm.weight, norm.bias, norm.eps)
    out: Tensor = AddNorm.apply(x.flatten(0, -2), f.flatten(0, -2), *weights)
    return out.view(x.shape)


def recur(cell: nn.LSTM, x_ND: Tensor, start_B: Tensor, length_B: Tensor) -> Tensor:
    """h_ND of a one-layer LSTM over documents that lie one after the other."""
    from lengthlab.kernels.recurrence import Recurrence

    bias_4D = cell.get_parameter("bias_ih_l0") + cell.get_parameter("bias_hh_l0")
    told_N4D = linear(x_ND, cell.get_parameter("weight_ih_l0"), bias_4D)
    h_ND: Tensor = Recurrence.apply(told_N4D, cell.get_parameter("weight_hh_l0"), start_B, length_B)
    return h_ND


def attend(
    q_MD: Tensor,
    kv_NE: Tensor,
    angles: tuple[Tensor, Tensor],
    at_M: Tensor | None,
    start_B: Tensor,
    length_B: Tensor,
    heads: int,
) -> Tensor:
    """out_MD of causal attention inside each document; `angles` are cosines and sines by position and pair of channels."""
    from lengthlab.kernels.attention import DocumentAttention

    parts = (angles, at_M, start_B, length_B, heads)
    out_MD: Tensor = DocumentAttention.apply(q_MD, kv_NE, *parts)
    return out_MD


def _on_gpu(x: Tensor) -> bool:
    return x.is_cuda and find_spec("triton") is not None


def _is_power(number: int) -> bool:
    return number >= 16 and number & (number - 1) == 0
