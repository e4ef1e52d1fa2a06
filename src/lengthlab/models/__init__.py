"""WHO learns it. One part a file; `compose.py` puts them together, `paper.py` has the paper's seven, `MODELS` their names."""

from collections.abc import Callable

from lengthlab.models.alibi import Alibi as Alibi
from lengthlab.models.attention import Attention as Attention
from lengthlab.models.causal_lm import CausalLm as CausalLm
from lengthlab.models.compose import Part as Part
from lengthlab.models.compose import chain as chain
from lengthlab.models.compose import named as named
from lengthlab.models.compose import parallel as parallel
from lengthlab.models.compose import repeat as repeat
from lengthlab.models.compose import residual as residual
from lengthlab.models.compose import silent as silent
from lengthlab.models.entmax import AdaptiveEntmax as AdaptiveEntmax
from lengthlab.models.entmax import Entmax as Entmax
from lengthlab.models.learned import Learned as Learned
from lengthlab.models.lstm import Lstm as Lstm
from lengthlab.models.mlp import Mlp as Mlp
from lengthlab.models.model import AnyModel as AnyModel
from lengthlab.models.model import Model as Model
from lengthlab.models.model import Network as Network
from lengthlab.models.paper import attention as attention
from lengthlab.models.paper import attention_on_lstm as attention_on_lstm
from lengthlab.models.paper import hybrid_block as hybrid_block
from lengthlab.models.paper import lstm as lstm
from lengthlab.models.paper import lstm_on_attention as lstm_on_attention
from lengthlab.models.paper import parallel_branches as parallel_branches
from lengthlab.models.paper import sandwich as sandwich
from lengthlab.models.paper import transformer as transformer
from lengthlab.models.positions import NoPositions as NoPositions
from lengthlab.models.randomized import Randomized as Randomized
from lengthlab.models.rope import Rope as Rope
from lengthlab.models.rope import SlowRope as SlowRope
from lengthlab.models.scores import LogN as LogN
from lengthlab.models.scores import PlainScores as PlainScores
from lengthlab.models.sharpening import sharpened as sharpened
from lengthlab.models.stick_breaking import StickBreaking as StickBreaking
from lengthlab.models.temperature import AdaptiveTemperature as AdaptiveTemperature

MODELS: dict[str, Callable[..., Model]] = {
    "transformer": transformer,
    "lstm": lstm,
    "attention-on-lstm": attention_on_lstm,
    "lstm-on-attention": lstm_on_attention,
    "parallel": parallel_branches,
    "hybrid-block": hybrid_block,
    "sandwich": sandwich,
}
