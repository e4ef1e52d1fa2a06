"""Recurrence with hierarchical sparse attention: long memory on top of a state.

After RAMba (Hu et al. 2025, arXiv 2504.16795), with any recurrence in the place of Mamba: the lower half carries a state and
knows order, the upper half finds what was read long ago. As in the paper's architectures, `attention` is the name of all that
delayed training switches off, chunk memory included, and `attend`, inside each block, that of the attention functions alone.
"""

from __future__ import annotations

from lengthlab.errors import require_whole
from lengthlab.models import compose
from lengthlab.models.attention.chunk_memory import ChunkMemory
from lengthlab.models.attention.chunk_weights import ChunkWeights
from lengthlab.models.attention.hierarchical import HierarchicalAttention
from lengthlab.models.attention.local import LocalAttention
from lengthlab.models.compose import Part, chain, named, parallel, repeat, residual
from lengthlab.models.mlp import Mlp
from lengthlab.models.model import Model
from lengthlab.models.norms import Norm
from lengthlab.models.paper import looking_back
from lengthlab.models.recurrence.lstm import Lstm
from lengthlab.registry import chosen


def lstm_hsa(
    width: int = 256,
    recurrence: Part | str = Lstm(),
    blocks: int = 1,
    heads: int = 8,
    kv_heads: int = 1,
    mlp: int = 4,
    chunk: int = 64,
    chunks: int = 8,
    window: int | None = None,
    weights: ChunkWeights | str = "stick-breaking",
    encoder: int = 1,
    silent: bool = False,
    norm: Norm | str = "layer-norm",
    pre_norm: bool = False,
    local: int = 0,
    overlap: int = 0,
) -> Model:
    """An LSTM in the residual stream, then hierarchical sparse attention beside local attention: finds what was read long ago.

    A query reads so many `chunks` of `chunk` tokens each, and the last `window` tokens (two chunks, if not said). All `blocks`
    share one chunk memory. `local`: before that memory attention over the last so many tokens, none if 0; with 2, what chunks
    hold tells by itself which token stood before another. `overlap`: tokens that a chunk has in common with the one before it.

    >>> network = lstm_hsa(width=16, heads=2, chunk=4, chunks=2).build(vocabulary=10)
    >>> network.has_state
    True
    """
    require_whole(chunk, "model.chunk", 1)
    around = chosen(Norm, norm)
    near = LocalAttention(heads, 2 * chunk if window is None else window)
    read: tuple[Part, ...] = (HierarchicalAttention(heads, chunks, weights), near)
    attend = parallel(*map(compose.silent, read)) if silent else parallel(*read)
    feed: Part = compose.silent(Mlp(mlp)) if silent else Mlp(mlp)
    block = chain(residual(named("attend", attend), around, pre_norm), residual(feed, around, pre_norm))
    layers = chain(repeat(blocks, block), around) if pre_norm else repeat(blocks, block)
    memory = ChunkMemory(layers, chunk, heads, kv_heads, encoder, overlap)
    upper = looking_back(local, memory, heads, silent, around, pre_norm)
    return Model("lstm-hsa", width, chain(residual(chosen(Part, recurrence), around, pre_norm), named("attention", upper)))
