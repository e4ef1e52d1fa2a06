"""Positions and scores: each against a slow reference in plain loops, all of them causal, at any length, in any hybrid."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lengthlab import models
from lengthlab.errors import LabError
from lengthlab.models import AdaptiveTemperature, Attention, Rope, SlowRope
from lengthlab.models.attention.counted_random import CountedRandom
from lengthlab.models.attention.entmax import entmax15
from lengthlab.models.attention.positions import Positions
from lengthlab.models.attention.scores import Scores
from lengthlab.models.attention.temperature import VELICKOVIC, entropy
from lengthlab.models.layout import Layout, pick
from lengthlab.registry import registered
from lengthlab.training.checkpoint import load_checkpoint, save_checkpoint
from lengthlab.training.precision import BF16, FP32, Precision
from lengthlab.training.result import claim
from lengthlab.training.state import TrainState
from small_runs import CPU, end_to_end_run, folder_of

WIDTH, HEADS = 16, 4
PAIRS = [
    ("alibi", "none"),
    ("none", "adaptive-entmax"),
    ("alibi", "stick-breaking"),
    ("learned", "entmax"),
    ("randomized", "log-n"),
]
every_pair = pytest.mark.parametrize(("positions", "scores"), list(product(registered(Positions), registered(Scores))))


def attention_of(positions: str, scores: str) -> nn.Module:
    torch.manual_seed(0)
    made = AdaptiveTemperature(VELICKOVIC) if scores == "adaptive-temperature" else scores
    module = Attention(HEADS, positions, made).build(WIDTH).double()
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
    "tempered": softmax,
    "adaptive-temperature": sharpened,
    "entmax": entmax,
    "adaptive-entmax": entmax,
    "stick-breaking": broken_stick,
}


def factor(scores: str, module: nn.Module, x_D: Tensor, i: int, h: int) -> float:
    """By which the query of a head at token i is multiplied."""
    if scores == "log-n":
        return float(module.scores.scale_H[h]) * math.log(i + 1)
    if scores == "tempered":
        return 1 + float(module.scores.tau_H[h]) * math.log(i + 1)
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


def placed(positions: str, module: nn.Module, x_C: Tensor, t: int, place: int, what: str) -> Tensor:
    """A query or a key at token t, as its position changes it."""
    if positions == "learned":
        return x_C + (module.positions.q_LC if what == "query" else module.positions.k_LC)[t]
    return turned(x_C, place if positions == "randomized" else t) if positions in ("rope", "slow-rope", "randomized") else x_C


def reference(module: nn.Module, x_TD: Tensor, positions: str, scores: str, sample: int) -> Tensor:
    """Attention in plain loops."""
    places = (
        module.positions._positions(sample + 1, len(x_TD))[sample].tolist() if positions == "randomized" else range(len(x_TD))
    )
    q_THC, k_THC, v_THC = (each.view(len(x_TD), HEADS, -1) for each in (module.q(x_TD), *module.kv(x_TD).chunk(2, dim=-1)))
    out_THC = torch.zeros_like(q_THC)
    for i, h in product(range(len(x_TD)), range(HEADS)):
        z = []
        for j in range(i + 1):
            q_C = placed(positions, module, q_THC[i, h], i, places[i], "query")
            k_C = placed(positions, module, k_THC[j, h], j, places[j], "key")
            score = float(q_C @ k_C) * factor(scores, module, x_TD[i], i, h) / math.sqrt(WIDTH // HEADS)
            z.append(score - 2.0 ** (-8 * (h + 1) / HEADS) * (i - j) if positions == "alibi" else score)
        for j, weight in enumerate(WEIGHTS[scores](z, i, module)):
            out_THC[i, h] += weight * v_THC[j, h]
    return module.out(out_THC.flatten(1))


@every_pair
def test_attention_is_what_plain_loops_compute(positions: str, scores: str) -> None:
    module, x_BTD = attention_of(positions, scores), torch.randn(2, 7, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        for sample, (x_TD, out_TD) in enumerate(zip(x_BTD, module(x_BTD), strict=True)):
            assert torch.allclose(out_TD, reference(module, x_TD, positions, scores, sample), atol=1e-5)


@every_pair
def test_asked_positions_get_what_they_get_among_all(positions: str, scores: str) -> None:
    module, x_BTD = attention_of(positions, scores), torch.randn(2, 9, WIDTH, dtype=torch.float64)
    at_BQ = torch.tensor([[3, 8], [0, 5]])
    assert torch.allclose(module(x_BTD, Layout(query_BQ=at_BQ)), pick(module(x_BTD), at_BQ), atol=1e-6)


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
        monkeypatch.setattr(import_module("lengthlab.models.attention.softmax"), "PAIRS", 200)
        assert torch.allclose(module(x_BTD), whole_BTD, atol=1e-10)


@pytest.mark.parametrize("name", [name for name in models.MODELS if name != "lstm"])
@pytest.mark.parametrize(("positions", "scores"), PAIRS)
def test_any_hybrid_takes_them_and_every_parameter_learns(name: str, positions: str, scores: str) -> None:
    network = models.MODELS[name](width=8, blocks=2, heads=2, positions=positions, scores=scores).build(vocabulary=12)
    logits_BTV = network(torch.randint(12, (3, 40)))
    logits_BTV.square().mean().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in network.parameters())
    assert network(torch.randint(12, (1, 300))).isfinite().all()


@given(st.lists(st.floats(-8, 8), min_size=1, max_size=12))
@settings(max_examples=60)
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


# Positions that are drawn


def test_drawn_positions_are_ordered_distinct_and_within_the_limit() -> None:
    positions = models.Randomized(limit=40).build(channels=4)
    for _ in range(20):
        place_BT = positions._positions(8, 33)
        assert (place_BT.diff(dim=1) > 0).all()
        assert 0 <= int(place_BT.min()) <= int(place_BT.max()) < 40
    assert torch.equal(positions._positions(1, 40), torch.arange(40)[None])


def test_training_draws_anew_each_time_and_measuring_always_the_same() -> None:
    positions = models.Randomized(limit=500).build(channels=4)
    assert not torch.equal(positions._positions(2, 9), positions._positions(2, 9))
    positions.eval()
    assert torch.equal(positions._positions(2, 9), positions._positions(2, 9))


def test_learned_positions_begin_anywhere_in_training_and_at_the_first_when_measured() -> None:
    positions = models.Learned(limit=30).build(channels=4)
    starts = {int(start) for _ in range(60) for start in positions._positions(8, 9)[:, 0]}
    assert starts == set(range(22))
    assert torch.equal(positions.eval()._positions(1, 9), torch.arange(9)[None])


def test_draws_are_even_and_go_on_where_they_were_after_a_resume() -> None:
    chance = CountedRandom()
    many = torch.stack([chance(50, 20) for _ in range(100)])
    assert float(many.mean()) == pytest.approx(0.5, abs=0.005)
    assert torch.histc(many, bins=10).div(many.numel()).tolist() == pytest.approx([0.1] * 10, abs=0.005)
    resumed = CountedRandom()
    resumed.load_state_dict(chance.state_dict())
    assert torch.equal(resumed(3, 4), chance(3, 4))


@pytest.mark.parametrize("positions", [models.Learned(limit=8), models.Randomized(limit=8)])
def test_a_sequence_beyond_the_limit_is_refused(positions: models.Learned | models.Randomized) -> None:
    with pytest.raises(LabError, match=r"positions end at 8 tokens, and there are 9: raise positions\.limit"):
        Attention(2, positions).build(8)(torch.randn(1, 9, 8))


@pytest.mark.parametrize("precision", [FP32, BF16])
def test_a_run_with_drawn_positions_goes_on_after_a_kill_as_ever(tmp_path: Path, precision: Precision) -> None:
    run = end_to_end_run(steps=8, model=models.hybrid_block(8, blocks=1, heads=2, positions="randomized"))
    whole, first = TrainState(run, CPU, precision), TrainState(run, CPU, precision)
    for _ in range(4):
        first.advance()
    folder = folder_of(tmp_path, run)
    claim(folder, run)
    save_checkpoint(first, folder, 0.0)
    second = TrainState(run, CPU, precision)
    load_checkpoint(second, folder)
    expected = [whole.advance() for _ in range(8)]
    assert [second.advance() for _ in range(4)] == expected[4:]


def test_slow_rope_begins_faint_in_the_pairs_that_turn_quickly() -> None:
    built = []
    for positions in (Rope(), SlowRope(tokens=50, share=0.25)):
        torch.manual_seed(0)
        built.append(Attention(HEADS, positions).build(64))
    usual, slow = built
    quick = sum(50 * 10_000.0 ** (-2 * pair / 16) > 1 for pair in range(8))
    assert 0 < quick < 8
    for usual_DD, slow_DD in ((usual.q.weight, slow.q.weight), (usual.kv.weight[:64], slow.kv.weight[:64])):
        for channel in range(64):
            share = 0.25 if channel % 16 % 8 < quick else 1.0
            assert torch.allclose(slow_DD[channel], share * usual_DD[channel])
    assert torch.equal(usual.kv.weight[64:], slow.kv.weight[64:])
    x_BTD = torch.randn(2, 9, 64)
    slow.load_state_dict(usual.state_dict())
    assert torch.equal(usual(x_BTD), slow(x_BTD))


@pytest.mark.parametrize(("wrong", "said"), [({"tokens": 0}, "tokens"), ({"share": 0.0}, "share"), ({"base": -1.0}, "base")])
def test_slow_rope_says_what_is_wrong_with_it(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(LabError, match=f"positions.{said} must be"):
        SlowRope(**wrong)


def test_positions_of_ones_own_may_set_the_first_weights() -> None:
    class Halved(nn.Module):
        def forward(self, q_BHQC: Tensor, k_BHTC: Tensor, layout: Layout = Layout()) -> tuple[Tensor, Tensor]:
            return q_BHQC, k_BHTC

        def init_weights(self, weight_HCD: Tensor) -> None:
            weight_HCD /= 2

    class Own:
        def build(self, channels: int) -> nn.Module:
            return Halved()

    built = []
    for positions in ("none", Own()):
        torch.manual_seed(0)
        built.append(Attention(HEADS, positions).build(WIDTH))
    assert torch.equal(built[1].q.weight, built[0].q.weight / 2)
    assert torch.equal(built[1].kv.weight[:WIDTH], built[0].kv.weight[:WIDTH] / 2)
    assert torch.equal(built[1].kv.weight[WIDTH:], built[0].kv.weight[WIDTH:])
