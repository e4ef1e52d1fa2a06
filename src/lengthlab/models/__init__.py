"""WHO learns it. One part a file; compose.py puts them together, paper.py has the paper's seven, module.py takes anyone's."""

from collections.abc import Callable

from lengthlab.models.activations import Activation as Activation
from lengthlab.models.activations import Dropout as Dropout
from lengthlab.models.activations import Gelu as Gelu
from lengthlab.models.activations import Relu as Relu
from lengthlab.models.activations import Silu as Silu
from lengthlab.models.attention.alibi import Alibi as Alibi
from lengthlab.models.attention.entmax import AdaptiveEntmax as AdaptiveEntmax
from lengthlab.models.attention.entmax import Entmax as Entmax
from lengthlab.models.attention.learned import Learned as Learned
from lengthlab.models.attention.positions import NoPositions as NoPositions
from lengthlab.models.attention.positions import Positions as Positions
from lengthlab.models.attention.randomized import Randomized as Randomized
from lengthlab.models.attention.rope import Rope as Rope
from lengthlab.models.attention.rope import SlowRope as SlowRope
from lengthlab.models.attention.scores import LogN as LogN
from lengthlab.models.attention.scores import PlainScores as PlainScores
from lengthlab.models.attention.scores import Scores as Scores
from lengthlab.models.attention.sharpening import sharpened as sharpened
from lengthlab.models.attention.softmax import Attention as Attention
from lengthlab.models.attention.stick_breaking import StickBreaking as StickBreaking
from lengthlab.models.attention.temperature import AdaptiveTemperature as AdaptiveTemperature
from lengthlab.models.causal_lm import CausalLm as CausalLm
from lengthlab.models.compose import Chain, Named, Parallel, Repeat, Residual, Silent
from lengthlab.models.compose import Part as Part
from lengthlab.models.compose import chain as chain
from lengthlab.models.compose import named as named
from lengthlab.models.compose import parallel as parallel
from lengthlab.models.compose import repeat as repeat
from lengthlab.models.compose import residual as residual
from lengthlab.models.compose import silent as silent
from lengthlab.models.layout import Documents as Documents
from lengthlab.models.layout import Layout as Layout
from lengthlab.models.mixer import Mixer as Mixer
from lengthlab.models.mlp import GatedMlp as GatedMlp
from lengthlab.models.mlp import Mlp as Mlp
from lengthlab.models.model import AnyModel as AnyModel
from lengthlab.models.model import Model as Model
from lengthlab.models.model import Network as Network
from lengthlab.models.module import Module as Module
from lengthlab.models.module import module as module
from lengthlab.models.norms import LayerNorm as LayerNorm
from lengthlab.models.norms import Norm as Norm
from lengthlab.models.norms import RmsNorm as RmsNorm
from lengthlab.models.paper import attention as attention
from lengthlab.models.paper import attention_on_lstm as attention_on_lstm
from lengthlab.models.paper import hybrid_block as hybrid_block
from lengthlab.models.paper import lstm as lstm
from lengthlab.models.paper import lstm_on_attention as lstm_on_attention
from lengthlab.models.paper import parallel_branches as parallel_branches
from lengthlab.models.paper import sandwich as sandwich
from lengthlab.models.paper import transformer as transformer
from lengthlab.models.recurrence.lstm import Lstm as Lstm
from lengthlab.registry import kebab, register

MODELS: dict[str, Callable[..., Model]] = {
    "transformer": transformer,
    "lstm": lstm,
    "attention-on-lstm": attention_on_lstm,
    "lstm-on-attention": lstm_on_attention,
    "parallel": parallel_branches,
    "hybrid-block": hybrid_block,
    "sandwich": sandwich,
}
"""The paper's seven."""

for _name, _model in (MODELS | {"model": Model, "module": Module, "causal-lm": CausalLm}).items():
    register(AnyModel, _name, _model)
for _part in (Chain, Parallel, Residual, Repeat, Named, Silent, Lstm, Attention, Mlp, GatedMlp, Dropout):
    register(Part, kebab(_part.__name__), _part)
for _activation in (Relu, Gelu, Silu):
    register(Activation, kebab(_activation.__name__), _activation)
    register(Part, kebab(_activation.__name__), _activation)
for _norm in (LayerNorm, RmsNorm):
    register(Norm, kebab(_norm.__name__), _norm)
    register(Part, kebab(_norm.__name__), _norm)
for _name, _positions in {
    "rope": Rope,
    "slow-rope": SlowRope,
    "none": NoPositions,
    "alibi": Alibi,
    "learned": Learned,
    "randomized": Randomized,
}.items():
    register(Positions, _name, _positions)
for _name, _scores in {
    "none": PlainScores,
    "log-n": LogN,
    "adaptive-temperature": AdaptiveTemperature,
    "entmax": Entmax,
    "adaptive-entmax": AdaptiveEntmax,
    "stick-breaking": StickBreaking,
}.items():
    register(Scores, _name, _scores)
