"""Positions and scores: each against a slow reference in plain loops, all of them causal, at any length, in any hybrid."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lengthlab import models
from lengthlab.models import Attention
from lengthlab.models.asked import pick
from lengthlab.models.entmax import entmax15
from lengthlab.models.positions import POSITIONS
from lengthlab.models.scores import SCORES
from lengthlab.models.temperature import entropy

WIDTH, HEADS = 16, 4
every_pair = pytest.mark.parametrize(("positions", "scores"), list(product(POSITIONS, SCORES)))


def attention_of(positions: str, scores: str) -> nn.Module:
    torch.manual_seed(0)
    module = Attention(HEADS, positions, scores).build(WIDTH).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.eval()


def softmax(z: list[float], i: int, module: nn.Module) -> list[float]:
    total = sum(map(math.exp, z))
    return [math.exp(each) / total for each in z]


def sharpened(z: list[float], i: int, module: nn.Module) -> list[float]:
    weights = softmax(z, i, module)
    h = -sum(weight * math.log(weight) for weight in weights)
    beta = max(-0.037 * h**4 + 0.481 * h**3 - 2.3 * h**2 + 4.917 * h - 1.791, 1.0) if h > 0.5 else 1.0
    return softmax([beta * each for each in z], i, module)


def entmax(z: list[float], i: int, module: nn.Module) -> list[float]:
    """By bisection for the threshold."""
    low, high = max(z) / 2 - 1, max(z) / 2
    for _ in range(100):
        tau = (low + high) / 2
        low, high = (tau, high) if sum(max(each / 2 - tau, 0) ** 2 for each in z) > 1 else (low, tau)
    return [max(each / 2 - low, 0) ** 2 for each in z]


def broken_stick(z: list[float], i: int, module: nn.Module) -> list[float]:
    left, weights = 1.0, [0.0] * len(z)
    for j in reversed(range(i)):
        share = 1 / (1 + math.exp(-z[j]))
        weights[j] = left * share
        left *= 1 - share
    return weights


WEIGHTS: dict[str, Callable[[list[float], int, nn.Module], list[float]]] = {
    "none": softmax,
    "log-n": softmax,
    "adaptive-temperature": sharpened,
    "entmax": entmax,
    "adaptive-entmax": entmax,
    "stick-breaking": broken_stick,
}


def factor(scores: str, module: nn.Module, x_D: Tensor, i: int, h: int) -> float:
    """By which the query of a head at token i is multiplied."""
    if scores == "log-n":
        return float(module.scores.scale_H[h]) * math.log(i + 1)
    if scores == "adaptive-entmax":
        growth, power = float(module.scores.growth(x_D)[h]), float(module.scores.power(x_D)[h])
        return 1.0 + math.log1p(math.exp(growth)) * math.log(max(i + 1, 2)) ** (2.0 * math.tanh(power))
    return 1.0


def turned(x_C: Tensor, t: int) -> Tensor:
    """Rotary positions, pair by pair."""
    out_C, half = x_C.clone(), len(x_C) // 2
    for i in range(half):
        angle = t * 10_000.0 ** (-2 * i / len(x_C))
        low, high = x_C[i], x_C[i + half]
        out_C[i] = low * math.cos(angle) - high * math.sin(angle)
        out_C[i + half] = high * math.cos(angle) + low * math.sin(angle)
    return out_C


def reference(module: nn.Module, x_TD: Tensor, positions: str, scores: str) -> Tensor:
    """Attention in plain loops."""
    q_THC, k_THC, v_THC = (each.view(len(x_TD), HEADS, -1) for each in (module.q(x_TD), *module.kv(x_TD).chunk(2, dim=-1)))
    out_THC = torch.zeros_like(q_THC)
    for i, h in product(range(len(x_TD)), range(HEADS)):
        z = []
        for j in range(i + 1):
            q_C, k_C = q_THC[i, h], k_THC[j, h]
            q_C, k_C = (turned(q_C, i), turned(k_C, j)) if positions == "rope" else (q_C, k_C)
            score = float(q_C @ k_C) * factor(scores, module, x_TD[i], i, h) / math.sqrt(WIDTH // HEADS)
            z.append(score - 2.0 ** (-8 * (h + 1) / HEADS) * (i - j) if positions == "alibi" else score)
        for j, weight in enumerate(WEIGHTS[scores](z, i, module)):
            out_THC[i, h] += weight * v_THC[j, h]
    return module.out(out_THC.flatten(1))


@every_pair
def test_attention_is_what_plain_loops_compute(positions: str, scores: str) -> None:
    module, x_BTD = attention_of(positions, scores), torch.randn(2, 7, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        for x_TD, out_TD in zip(x_BTD, module(x_BTD), strict=True):
            assert torch.allclose(out_TD, reference(module, x_TD, positions, scores), atol=1e-6)


@every_pair
def test_asked_positions_get_what_they_get_among_all(positions: str, scores: str) -> None:
    module, x_BTD = attention_of(positions, scores), torch.randn(2, 9, WIDTH, dtype=torch.float64)
    at_BQ = torch.tensor([[3, 8], [0, 5]])
    assert torch.allclose(module(x_BTD, at_BQ), pick(module(x_BTD), at_BQ), atol=1e-6)


@every_pair
def test_no_token_sees_a_later_one(positions: str, scores: str) -> None:
    module, x_BTD = attention_of(positions, scores), torch.randn(1, 9, WIDTH, dtype=torch.float64)
    changed_BTD = x_BTD.clone()
    changed_BTD[:, 6:] += 1
    assert torch.equal(module(x_BTD)[:, :6], module(changed_BTD)[:, :6])


@every_pair
def test_some_queries_at_a_time_are_all_of_them(positions: str, scores: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, x_BTD = attention_of(positions, scores), torch.randn(2, 11, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        whole_BTD = module(x_BTD)
        monkeypatch.setattr(import_module("lengthlab.models.attention"), "PAIRS", 200)
        assert torch.allclose(module(x_BTD), whole_BTD, atol=1e-10)


@pytest.mark.parametrize("name", [name for name in models.MODELS if name != "lstm"])
@pytest.mark.parametrize(("positions", "scores"), [("alibi", "none"), ("none", "adaptive-entmax"), ("alibi", "stick-breaking")])
def test_any_hybrid_takes_them_and_every_parameter_learns(name: str, positions: str, scores: str) -> None:
    network = models.MODELS[name](width=8, blocks=2, heads=2, positions=positions, scores=scores).build(vocabulary=12)
    logits_BTV = network(torch.randint(12, (3, 40)))
    logits_BTV.square().mean().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in network.parameters())
    assert network(torch.randint(12, (1, 300))).isfinite().all()


@given(st.lists(st.floats(-8, 8), min_size=1, max_size=12))
@settings(deadline=None, max_examples=60)
def test_entmax_is_a_distribution_and_its_gradient_is_right(values: list[float]) -> None:
    z = torch.tensor(values, dtype=torch.float64)
    weights = entmax15(z)
    assert float(weights.sum()) == pytest.approx(1.0)
    assert float(weights.min()) >= 0
    assert weights.tolist() == pytest.approx(entmax(values, 0, nn.Identity()), abs=1e-6)
    spread = z + torch.linspace(0, 0.013, len(values), dtype=torch.float64)  # away from the kinks
    assert torch.autograd.gradcheck(entmax15, (spread.requires_grad_(),), atol=1e-3, eps=1e-7)


def test_entmax_gives_nothing_to_what_is_masked() -> None:
    assert entmax15(torch.tensor([1.0, -torch.inf, 0.9])).tolist()[1] == 0


def test_temperature_leaves_training_alone() -> None:
    module, x_BTD = attention_of("none", "adaptive-temperature"), torch.randn(1, 40, WIDTH, dtype=torch.float64) / 4
    plain = attention_of("none", "none")
    plain.load_state_dict(module.state_dict())
    assert torch.allclose(module.train()(x_BTD), plain(x_BTD), atol=1e-6)
    assert not torch.allclose(module.eval()(x_BTD), plain(x_BTD), atol=1e-6)


@given(st.integers(1, 30))
def test_entropy_of_even_weights_is_the_logarithm_of_their_number(number: int) -> None:
    assert float(entropy(torch.full((number,), 1 / number))) == pytest.approx(math.log(number), abs=1e-5)
