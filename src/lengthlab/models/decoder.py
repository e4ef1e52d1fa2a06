"""Decoder-only transformers as papers on length generalization train them from scratch.

`gpt2` and `llama` are those of Huang et al. 2024 (arXiv 2410.02140) and Jobanputra et al. 2025 (arXiv 2505.21785), `t5_decoder`
is that of Cho et al. 2024 (arXiv 2405.20671). All are pre-norm, with a last norm before the head. As in the paper's
architectures, `attention` is the name of the whole body and `attend`, inside each block, that of the attention function.

The weights of `gpt2` and `llama` begin as N(0, 0.02), as those of their namesakes do. Learned vectors of positions are added to
the token's. Where the task has ids of its own, the vectors of these are taken; else a sequence begins at a random one in
training, and at the first when it is measured. Whoever asks for 0 of them has a model without positions.
"""

from __future__ import annotations

from lengthlab.errors import require_whole
from lengthlab.models.activations import Gelu, Silu
from lengthlab.models.attention.positions import NoPositions, Positions
from lengthlab.models.attention.rope import Rope
from lengthlab.models.attention.scores import Scores
from lengthlab.models.attention.softmax import Attention
from lengthlab.models.compose import Named, Part, chain, named, repeat, residual
from lengthlab.models.mlp import GatedMlp, Mlp
from lengthlab.models.model import Model
from lengthlab.models.norms import LayerNorm, Norm, RmsNorm
from lengthlab.models.position_table import PositionIds

STD = 0.02


def gpt2(width: int = 256, blocks: int = 4, heads: int = 4, mlp: int = 4, position_ids: int = 512) -> Model:
    """GPT-2's block: LayerNorm, GELU, learned absolute positions, and a head that shares its weights with the embedding.

    >>> gpt2(width=64, blocks=2, position_ids=300).position_ids.number
    300
    """
    body = _body(blocks, Attention(heads, NoPositions()), Mlp(mlp, Gelu()), LayerNorm())
    return Model("gpt2", width, body, _ids(position_ids, std=STD), STD, tied=True)


def llama(
    width: int = 256,
    blocks: int = 4,
    heads: int = 4,
    mlp: int = 4,
    base: float = 500.0,
    factor: float = 32.0,
    position_ids: int = 0,
) -> Model:
    """Llama's block: RMSNorm, an MLP with SiLU gates, no biases, rotary positions divided by `factor`."""
    positions: Positions = Rope(base, factor=factor)
    body = _body(blocks, Attention(heads, positions, bias=False), GatedMlp(mlp, Silu(), bias=False), RmsNorm())
    return Model("llama", width, body, _ids(position_ids, std=STD), STD)


def t5_decoder(
    width: int = 512,
    blocks: int = 1,
    heads: int = 4,
    mlp: int = 4,
    position_ids: int = 203,
    tables: int = 1,
    scores: Scores | str = "none",
    orthogonal: bool = False,
) -> Model:
    """T5's block as position coupling has it: RMSNorm before and after each sublayer, an MLP with GELU gates, no biases.

    A token that has several ids has the sum of their vectors: of one table, or each of its own with as many `tables`. These
    begin at random, or `orthogonal` to each other.
    """
    attend, feed = Attention(heads, NoPositions(), scores, bias=False), GatedMlp(mlp, Gelu(), bias=False)
    ids = _ids(position_ids, tables, orthogonal=orthogonal)
    return Model("t5-decoder", width, _body(blocks, attend, feed, RmsNorm(), after=True), ids)


def _body(blocks: int, attend: Part, feed: Part, norm: Norm, after: bool = False) -> Named:
    """x + f(norm(x)) for each sublayer, with `after` x + norm(f(norm(x))); a norm at the end."""
    sublayers = (named("attend", attend), named("feed", feed))
    inner = [chain(sublayer, norm) if after else sublayer for sublayer in sublayers]
    block = chain(*(residual(part, norm, pre=True) for part in inner))
    return named("attention", chain(repeat(blocks, block), norm))


def _ids(number: int, tables: int = 1, std: float = 1.0, orthogonal: bool = False) -> int | PositionIds:
    require_whole(number, "model.position_ids", 0)
    return PositionIds(number, random_start=True, tables=tables, std=std, orthogonal=orthogonal) if number else 0
