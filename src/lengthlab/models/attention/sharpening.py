"""A trained network with a temperature in its attention, whatever scores it was trained with.

Shapes: B samples, H heads, T tokens, Q of them with a query, C channels of a head, D width.
"""

from __future__ import annotations

from torch import Tensor, nn

from lengthlab.errors import require
from lengthlab.models.attention.positions import reads_pieces
from lengthlab.models.attention.scores import CustomWeights, Scores
from lengthlab.models.attention.softmax import _Attention
from lengthlab.models.attention.temperature import Temperature
from lengthlab.models.layout import PLAIN, Layout
from lengthlab.registry import kebab
from lengthlab.switch.hooks import copied_to_look_at


def sharpened(network: nn.Module, temperature: Scores) -> nn.Module:
    """A copy of a network, weights and all, in which every attention weighs by this temperature instead of by softmax.

    What the scores do to queries (log-n) stays. Plain scores and temperatures have no weights of their own, so there is a
    second way: a model with `scores=AdaptiveTemperature(coefficients)` loads the state of a run that had plain scores.

    >>> from lengthlab.models import AdaptiveTemperature, transformer
    >>> temperature = AdaptiveTemperature(coefficients=(0.5, 1.0))
    >>> plain = transformer(width=8, blocks=1, heads=2).build(vocabulary=12)
    >>> sharp = sharpened(plain, temperature)
    >>> other = transformer(width=8, blocks=1, heads=2, scores=temperature).build(vocabulary=12)
    >>> sharp.state_dict().keys() == plain.state_dict().keys() == other.state_dict().keys()
    True
    """
    check_sharpening(network)
    copy = copied_to_look_at(network)
    for attention in _attentions(copy).values():
        weights = temperature.build(attention.heads, attention.q.in_features)
        has_coefficients = not (isinstance(weights, Temperature) and weights.waits)
        told = "a trained network is sharpened with coefficients: fit_temperature(network, ...).temperature has some"
        require(has_coefficients, told)
        attention.scores = _Sharpened(attention.scores, weights).train(attention.training)
    return copy


def check_sharpening(network: nn.Module) -> None:
    """Whether there is attention, and all of it by softmax."""
    attentions = _attentions(network)
    require(len(attentions) > 0, "the network has no attention of lengthlab's, so there are no scores that could be sharpened")
    for name, attention in attentions.items():
        scores = kebab(type(attention.scores).__name__.lstrip("_"))
        can = not isinstance(attention.scores, CustomWeights) or isinstance(attention.scores, (Temperature, _Sharpened))
        require(can, f"{name} has {scores} instead of a softmax that a temperature could sharpen")


def _attentions(network: nn.Module) -> dict[str, _Attention]:
    return {name: module for name, module in network.named_modules() if isinstance(module, _Attention)}


class _Sharpened(nn.Module):
    """Queries as one module of scores has them, weights as another."""

    def __init__(self, queries: nn.Module, weights: nn.Module) -> None:
        super().__init__()
        self.queries, self.weights = queries, weights

    @property
    def in_pieces(self) -> bool:
        return reads_pieces(self.queries) and reads_pieces(self.weights)

    def forward(self, q_BHQC: Tensor, x_BQD: Tensor, layout: Layout = PLAIN) -> Tensor:
        out_BHQC: Tensor = self.queries(q_BHQC, x_BQD, layout)
        return out_BHQC

    def weigh(self, scores_BHQT: Tensor, seen_BHQT: Tensor) -> Tensor:
        assert isinstance(self.weights, CustomWeights)
        return self.weights.weigh(scores_BHQT, seen_BHQT)
