"""WHO learns it. One part a file; compose.py puts them together, paper.py has the paper's seven, decoder.py
those of other papers, module.py takes anyone's."""

from collections.abc import Callable
from typing import Any

from lengthlab.models.activations import Activation as Activation
from lengthlab.models.activations import Dropout as Dropout
from lengthlab.models.activations import Gelu as Gelu
from lengthlab.models.activations import Relu as Relu
from lengthlab.models.activations import Silu as Silu
from lengthlab.models.attention.alibi import Alibi as Alibi
from lengthlab.models.attention.chunk_memory import ChunkMemory as ChunkMemory
from lengthlab.models.attention.chunk_weights import BrokenStick as BrokenStick
from lengthlab.models.attention.chunk_weights import ChunkWeights as ChunkWeights
from lengthlab.models.attention.chunk_weights import SoftmaxOfChunks as SoftmaxOfChunks
from lengthlab.models.attention.entmax import AdaptiveEntmax as AdaptiveEntmax
from lengthlab.models.attention.entmax import Entmax as Entmax
from lengthlab.models.attention.hierarchical import HierarchicalAttention as HierarchicalAttention
from lengthlab.models.attention.learned import Learned as Learned
from lengthlab.models.attention.local import LocalAttention as LocalAttention
from lengthlab.models.attention.positions import NoPositions as NoPositions
from lengthlab.models.attention.positions import Positions as Positions
from lengthlab.models.attention.randomized import Randomized as Randomized
from lengthlab.models.attention.rope import Rope as Rope
from lengthlab.models.attention.rope import SlowRope as SlowRope
from lengthlab.models.attention.scores import LogN as LogN
from lengthlab.models.attention.scores import PlainScores as PlainScores
from lengthlab.models.attention.scores import Scores as Scores
from lengthlab.models.attention.scores import Tempered as Tempered
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
from lengthlab.models.decoder import gpt2 as gpt2
from lengthlab.models.decoder import llama as llama
from lengthlab.models.decoder import t5_decoder as t5_decoder
from lengthlab.models.hsa import lstm_hsa as lstm_hsa
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
from lengthlab.models.position_table import PositionIds as PositionIds
from lengthlab.models.recurrence.bilinear import Bilinear as Bilinear
from lengthlab.models.recurrence.deltaproduct import Deltaproduct as Deltaproduct
from lengthlab.models.recurrence.gated_deltanet import GatedDeltanet as GatedDeltanet
from lengthlab.models.recurrence.gru import Gru as Gru
from lengthlab.models.recurrence.lstm import Lstm as Lstm
from lengthlab.models.recurrence.mamba2 import Mamba2 as Mamba2
from lengthlab.models.recurrence.mlstm import MLstm as MLstm
from lengthlab.models.recurrence.recurrence import Recurrence as Recurrence
from lengthlab.models.recurrence.rnn import Rnn as Rnn
from lengthlab.models.recurrence.slstm import SLstm as SLstm
from lengthlab.registry import register_all

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

DECODERS: dict[str, Callable[..., Model]] = {"gpt2": gpt2, "llama": llama, "t5-decoder": t5_decoder}
"""Those of neighbouring papers."""

LONG_MEMORY: dict[str, Callable[..., Model]] = {"lstm-hsa": lstm_hsa}
"""Recurrences that find again what they read long ago."""

NAMES: dict[Any, dict[str, Callable[..., Any]]] = {
    AnyModel: {**MODELS, **DECODERS, **LONG_MEMORY, "model": Model, "module": Module, "causal-lm": CausalLm},
    Part: {
        "chain": Chain,
        "parallel": Parallel,
        "residual": Residual,
        "repeat": Repeat,
        "named": Named,
        "silent": Silent,
        "lstm": Lstm,
        "gru": Gru,
        "rnn": Rnn,
        "slstm": SLstm,
        "mlstm": MLstm,
        "mamba2": Mamba2,
        "gated-deltanet": GatedDeltanet,
        "deltaproduct": Deltaproduct,
        "bilinear": Bilinear,
        "attention": Attention,
        "local-attention": LocalAttention,
        "hierarchical-attention": HierarchicalAttention,
        "chunk-memory": ChunkMemory,
        "mlp": Mlp,
        "gated-mlp": GatedMlp,
        "dropout": Dropout,
        "relu": Relu,
        "gelu": Gelu,
        "silu": Silu,
        "layer-norm": LayerNorm,
        "rms-norm": RmsNorm,
    },
    PositionIds: {"position-ids": PositionIds},
    Activation: {"relu": Relu, "gelu": Gelu, "silu": Silu},
    ChunkWeights: {"stick-breaking": BrokenStick, "softmax": SoftmaxOfChunks},
    Norm: {"layer-norm": LayerNorm, "rms-norm": RmsNorm},
    Positions: {
        "rope": Rope,
        "slow-rope": SlowRope,
        "none": NoPositions,
        "alibi": Alibi,
        "learned": Learned,
        "randomized": Randomized,
    },
    Scores: {
        "none": PlainScores,
        "log-n": LogN,
        "tempered": Tempered,
        "adaptive-temperature": AdaptiveTemperature,
        "entmax": Entmax,
        "adaptive-entmax": AdaptiveEntmax,
        "stick-breaking": StickBreaking,
    },
}
"""By kind; written out, so that a list of them can be read without torch."""

register_all(NAMES)
