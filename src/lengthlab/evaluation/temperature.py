"""Fitting an adaptive temperature to a trained network: the β that suits it, as a polynomial in the entropy of its attention.

Shapes: P pairs, K coefficients.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lengthlab.errors import require
from lengthlab.evaluation.sharpness import Pair, Probe
from lengthlab.models.attention.temperature import DEGREE, AdaptiveTemperature, Temperature
from lengthlab.tasks import Task

SAMPLES = 500


@dataclass(frozen=True)
class Fit:
    """Coefficients, highest power first, and the pairs they were fitted to. Where the entropy is at most `flat`, β is 1: that
    is half the lowest of the pairs, because entropies of pairs are means, and single ones lie around them.
    """

    question: str
    coefficients: tuple[float, ...]
    flat: float
    pairs: tuple[Pair, ...]

    @property
    def temperature(self) -> AdaptiveTemperature:
        """For `sharpened(network, fit.temperature)`, or for the scores of a model."""
        return AdaptiveTemperature(self.coefficients, self.flat)


def fit_temperature(
    network: nn.Module,
    task: Task,
    lengths: Iterable[int],
    samples: int = SAMPLES,
    question: str = "recall",
    degree: int = DEGREE,
    seed: int = 1,
) -> Fit:
    """The adaptive temperature that suits a trained network at these lengths. The fit looks at all of them: where the network
    was not trained on some, that is to be said with any result.

    At each length, on samples of a seed that accuracy is not counted on: the one β of at least 1 with the least loss of the
    question when all scores are multiplied by it, beside the entropy of each head's weights where the question is answered.
    Heads, and not their mean, because a temperature acts on heads; polynomials through means did harm to those far from them.

    Then least squares, of the degree up to `degree` that tells best what β is at a length left out. The longest is one of
    them, which is what keeps β from going astray beyond the lengths: nothing else does. Below three lengths β is constant.

    >>> from lengthlab import evaluation, models, tasks
    >>> task = tasks.ModuloRecall(modulus=2, keys=8)
    >>> network = models.transformer(width=8, blocks=1, heads=2).build(task.vocabulary)
    >>> fit = fit_temperature(network, task, lengths=[2, 4], samples=10)
    >>> [(pair.length, pair.head) for pair in fit.pairs]
    [(2, 0), (2, 1), (4, 0), (4, 1)]
    >>> counts = evaluation.accuracy.accuracy(models.sharpened(network, fit.temperature), task, [8], samples=10)
    """
    lengths = list(dict.fromkeys(lengths))
    require(len(lengths) > 0, "a temperature is fitted to one length at least, and better to several")
    require(degree >= 0, f"degree must be at least 0, not {degree}")
    probe = Probe(network, task, question, samples, seed)
    pairs = tuple(pair for length in lengths for pair in probe.pairs(length))
    require(len(pairs) > 0, "all attention of the network is off, so there is nothing to sharpen: open it first")
    return Fit(question, polynomial(pairs, degree), min(pair.entropy for pair in pairs) / 2, pairs)


def settle_temperatures(network: nn.Module, task: Task, longest: int) -> None:
    """For a network that is trained, on lengths up to `longest`: fit the temperatures that wait for it; most have none.

    >>> from lengthlab import models, tasks
    >>> task = tasks.ModuloRecall(modulus=2, keys=8)
    >>> network = models.transformer(width=8, blocks=1, heads=2, scores="adaptive-temperature").build(task.vocabulary)
    >>> settle_temperatures(network, task, longest=4)
    """
    waiting = [part for part in network.modules() if isinstance(part, Temperature) and part.waits]
    if not waiting:
        return
    made_of = waiting[0].made_of
    reach = task.longest or longest * max(made_of.times)
    lengths = [number * longest for number in made_of.times if number * longest <= reach] or [reach]
    if not Probe(network, task, made_of.question, SAMPLES).entropies(lengths[0]):
        return  # all attention is off
    fit = fit_temperature(network, task, lengths, question=made_of.question)
    for part in waiting:
        part.take(fit.temperature)


def polynomial(pairs: Sequence[Pair], degree: int) -> tuple[float, ...]:
    """β of the entropy: coefficients, highest power first, as many as help to tell β at a length left out.

    >>> pairs = [Pair(length, "attend", 0, entropy=length / 10, beta=1 + length / 20) for length in (10, 20, 40, 80)]
    >>> [round(coefficient, 3) for coefficient in polynomial(pairs, degree=4)]
    [0.5, 1.0]
    """
    lengths = {pair.length for pair in pairs}
    degrees = range(max(1, min(degree + 1, len(lengths) - 1)))  # those that one length fewer can determine
    if len(degrees) == 1:
        return _least_squares(pairs, degree=0)
    # Errors are rounded, because what nobody would notice is not worth a coefficient; of equals, min takes the first.
    best = min(degrees, key=lambda power: round(sum(_error_without(pairs, length, power) for length in lengths), 6))
    return _least_squares(pairs, best)


def _error_without(pairs: Sequence[Pair], length: int, degree: int) -> float:
    """Squared, at a length that the polynomial was not fitted to."""
    coefficients = _least_squares([pair for pair in pairs if pair.length != length], degree)
    return sum((_value(coefficients, pair.entropy) - pair.beta) ** 2 for pair in pairs if pair.length == length)


def _least_squares(pairs: Sequence[Pair], degree: int) -> tuple[float, ...]:
    h_P = torch.tensor([pair.entropy for pair in pairs], dtype=torch.float64)
    beta_P = torch.tensor([pair.beta for pair in pairs], dtype=torch.float64)
    powers_PK = torch.stack([h_P**power for power in reversed(range(degree + 1))], dim=1)
    # Entropies may all be alike; of the many polynomials that fit then, this driver gives the smallest.
    coefficients_K: Tensor = torch.linalg.lstsq(powers_PK, beta_P[:, None], driver="gelsd").solution[:, 0]
    return tuple(coefficients_K.tolist())


def _value(coefficients: Sequence[float], h: float) -> float:
    value = 0.0
    for coefficient in coefficients:
        value = value * h + coefficient
    return value
