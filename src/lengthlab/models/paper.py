"""The seven architectures of the paper, as compositions (its Appendix A; f ∘ g reads g first).

All are of one width, with single-layer LSTMs, post-LayerNorm blocks (MHA + MLP) and rotary positions. `attention` is the part
that delayed training switches off: the whole of it, so that the recurrence speaks to the head directly. `attend`, inside each
block and in a look back before them, is the attention function alone. What the paper leaves open: 8 heads and an MLP of 4
times the width are ours; so are `position_ids`, learned vectors that are added to the embedding, for tasks that couple
positions. In the place of the LSTM any `recurrence` may stand, a part or the name of one.
"""

from __future__ import annotations

from typing import TypedDict, Unpack

from lengthlab.errors import require_whole
from lengthlab.models import compose
from lengthlab.models.activations import Activation
from lengthlab.models.attention.local import LocalAttention
from lengthlab.models.attention.positions import Positions
from lengthlab.models.attention.scores import Scores
from lengthlab.models.attention.softmax import Attention
from lengthlab.models.compose import Named, Part, chain, named, parallel, repeat, residual
from lengthlab.models.mlp import GatedMlp, Mlp
from lengthlab.models.model import Model
from lengthlab.models.norms import Norm
from lengthlab.models.recurrence.lstm import Lstm
from lengthlab.registry import chosen, kebab, name_of


class AttentionChoices(TypedDict, total=False):
    """What every architecture with attention lets its user choose; `attention` has the defaults."""

    blocks: int
    heads: int
    mlp: int
    positions: Positions | str
    scores: Scores | str
    silent: bool
    norm: Norm | str
    pre_norm: bool
    activation: Activation | str
    gated: bool
    local: int


def attention(
    blocks: int = 4,
    heads: int = 8,
    mlp: int = 4,
    positions: Positions | str = "rope",
    scores: Scores | str = "none",
    silent: bool = False,
    norm: Norm | str = "layer-norm",
    pre_norm: bool = False,
    activation: Activation | str = "relu",
    gated: bool = False,
    local: int = 0,
) -> Named:
    """The transformer part: `blocks` times self-attention and MLP, each LN(x + f(x)), or x + f(LN(x)) with `pre_norm` and then
    a last norm. `silent`: f is 0 at first. `gated`: the MLP has gates. `local`: before them attention over the last so many
    tokens, none if 0; with 2, attention sees by itself which token stood before another, and need not be told by a recurrence.

    >>> attention(blocks=1, local=2).part.parts[0]
    Residual(part=Named(name='attend', part=LocalAttention(heads=8, window=2)), norm=LayerNorm(), pre=False)
    """
    between, around = chosen(Activation, activation), chosen(Norm, norm)
    sublayers: tuple[Part, Part] = (Attention(heads, positions, scores), (GatedMlp if gated else Mlp)(mlp, between))
    attend, feed = map(compose.silent, sublayers) if silent else sublayers
    block = chain(residual(named("attend", attend), around, pre_norm), residual(feed, around, pre_norm))
    layers = chain(repeat(blocks, block), around) if pre_norm else repeat(blocks, block)
    return named("attention", looking_back(local, layers, heads, silent, around, pre_norm))


def looking_back(tokens: int, layers: Part, heads: int, silent: bool, norm: Norm, pre_norm: bool) -> Part:
    """Attention over the last so many tokens, in the residual stream, and then `layers`; these alone if it is none."""
    require_whole(tokens, "model.local", 0)
    if not tokens:
        return layers
    seen: Part = LocalAttention(heads, tokens)
    return chain(residual(named("attend", compose.silent(seen) if silent else seen), norm, pre_norm), layers)


def transformer(width: int = 256, position_ids: int = 0, **choices: Unpack[AttentionChoices]) -> Model:
    """Attn: recalls, and takes shortcuts where state must be tracked."""
    return Model("transformer", width, chain(attention(**choices)), position_ids)


def lstm(width: int = 256, position_ids: int = 0, recurrence: Part | str = Lstm()) -> Model:
    """LSTM: tracks state, and forgets what it was told long ago. With another recurrence it is called after that one.

    >>> lstm(width=16, recurrence="gru").name
    'gru'
    """
    part = chosen(Part, recurrence)
    return Model(kebab(name_of(Part, part)), width, chain(part), position_ids)


def attention_on_lstm(
    width: int = 256, recurrence: Part | str = Lstm(), position_ids: int = 0, **choices: Unpack[AttentionChoices]
) -> Model:
    """Attn ∘ LSTM: attention reads the LSTM's states."""
    return Model("attention-on-lstm", width, chain(chosen(Part, recurrence), attention(**choices)), position_ids)


def lstm_on_attention(
    width: int = 256, recurrence: Part | str = Lstm(), position_ids: int = 0, **choices: Unpack[AttentionChoices]
) -> Model:
    """LSTM ∘ Attn: the LSTM reads what attention has gathered."""
    return Model("lstm-on-attention", width, chain(attention(**choices), chosen(Part, recurrence)), position_ids)


def parallel_branches(
    width: int = 256, recurrence: Part | str = Lstm(), position_ids: int = 0, **choices: Unpack[AttentionChoices]
) -> Model:
    """LSTM + Attn: both read the embedding, and their outputs are added."""
    return Model("parallel", width, parallel(chosen(Part, recurrence), attention(**choices)), position_ids)


def hybrid_block(
    width: int = 256, recurrence: Part | str = Lstm(), position_ids: int = 0, **choices: Unpack[AttentionChoices]
) -> Model:
    """An LSTM in the residual stream, LN(x + LSTM(x)), then the attention layers of the paper's Figure 1."""
    around, pre = chosen(Norm, choices.get("norm", "layer-norm")), choices.get("pre_norm", False)
    first = residual(chosen(Part, recurrence), around, pre)
    return Model("hybrid-block", width, chain(first, attention(**choices)), position_ids)


def sandwich(
    width: int = 256, recurrence: Part | str = Lstm(), position_ids: int = 0, **choices: Unpack[AttentionChoices]
) -> Model:
    """LSTM ∘ Attn ∘ LSTM: attention between two LSTMs."""
    part = chosen(Part, recurrence)
    return Model("sandwich", width, chain(part, attention(**choices), part), position_ids)
