"""Memories of keys and values by the kernels of flash-linear-attention, for whoever has installed it (`fla-core`).

Theirs have tokens before heads, and factors of 16 bits. Decays, β and the memory that is handed on are in fp32; inside, a chunk
reads the memory before it in 16 bits.
Shapes: B samples, H heads, T tokens, U = T·J steps, J steps of a token, K channels of keys, V of values.
"""

from __future__ import annotations

import torch
from torch import Tensor


def scan_delta(
    dtype: torch.dtype,
    q_BHTK: Tensor,
    k_BHUK: Tensor,
    v_BHUV: Tensor,
    beta_BHU: Tensor,
    log_BHU: Tensor | None,
    s_BHKV: Tensor,
) -> tuple[Tensor, Tensor]:
    """out_BHTV in `dtype`, and S_BHKV after the last step. Of a token's log decays the first alone may be other than 0."""
    from fla.ops.gated_delta_product import chunk_gated_delta_product
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    steps = k_BHUK.shape[2] // q_BHTK.shape[2]
    factors = [_by_token(x, dtype) for x in (q_BHTK, k_BHUK, v_BHUV)]
    log_BTH = None if log_BHU is None else _by_token(log_BHU[..., ::steps])
    told = {"scale": 1.0, "initial_state": s_BHKV, "output_final_state": True}
    if steps == 1 and log_BTH is not None:
        out_BTHV, s_BHKV = chunk_gated_delta_rule(*factors, log_BTH, _by_token(beta_BHU), **told)
    else:
        out_BTHV, s_BHKV = chunk_gated_delta_product(*factors, log_BTH, _by_token(beta_BHU), steps, **told)
    return out_BTHV.transpose(1, 2), s_BHKV


def scan_decay(
    dtype: torch.dtype, q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, log_BHT: Tensor, s_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    """out_BHTV in `dtype`, and S_BHKV after the last token; queries and keys may have one head for all."""
    from fla.ops.simple_gla import chunk_simple_gla

    heads = v_BHTV.shape[1]
    factors = [_by_token(x.expand(-1, heads, -1, -1), dtype) for x in (q_BHTK, k_BHTK, v_BHTV)]
    out_BTHV, s_BHKV = chunk_simple_gla(*factors, _by_token(log_BHT), scale=1.0, initial_state=s_BHKV, output_final_state=True)
    return out_BTHV.transpose(1, 2), s_BHKV


def _by_token(x_BHT: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """x_BTH…, as it lies in memory."""
    return x_BHT.transpose(1, 2).to(dtype or x_BHT.dtype).contiguous()
