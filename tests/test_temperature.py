"""Temperatures fitted to a network: entropies against plain Python, a β that is known, a network that stays as it was."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Generator, Tensor, nn

from lengthlab import models
from lengthlab.errors import LabError
from lengthlab.evaluation.accuracy import accuracy, evaluation_set
from lengthlab.evaluation.sharpness import Pair, Probe
from lengthlab.evaluation.temperature import fit_temperature, polynomial, settle_temperatures
from lengthlab.models import AdaptiveTemperature, sharpened
from lengthlab.models.attention.temperature import VELICKOVIC, Temperature
from lengthlab.models.layout import Layout
from lengthlab.models.model import logits
from lengthlab.switch import Delay, find
from lengthlab.tasks import Batch, ModuloRecall
from lengthlab.training import train
from small_runs import end_to_end_run, identical

TASK = ModuloRecall(modulus=2, values=4, keys=24)
KNOWN = 3.0


def network_of(blocks: int = 1, positions: str = "none", scores: str = "none", **more: Any) -> nn.Module:
    """Untrained, but of strong opinions, and sharp where it looks."""
    torch.manual_seed(0)
    choices: dict[str, Any] = {"blocks": blocks, "heads": 2, "mlp": 1, "positions": positions, "scores": scores, **more}
    network = models.transformer(width=16, **choices).build(TASK.vocabulary)
    with torch.no_grad():
        network.head.weight.mul_(8)
        for attention in attentions(network):
            attention.q.weight.mul_(4)
            attention.out.weight.mul_(4)
    return network


def attentions(network: nn.Module) -> list[Any]:
    return [module for name, module in network.named_modules() if name.endswith(".attend")]


def scaled(network: nn.Module, factor: float) -> nn.Module:
    """With every score multiplied."""
    network = deepcopy(network)
    with torch.no_grad():
        for attention in attentions(network):
            attention.q.weight.mul_(factor)
            attention.q.bias.mul_(factor)
    return network


@dataclass(frozen=True)
class Dictated(ModuloRecall):
    """What is right is drawn from what a teacher says, so that no loss is lower on average than the teacher's own."""

    teacher: ClassVar[nn.Module]

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        batch = super().draw(n_B, generator)
        query_B1, _ = batch.queries(["recall"], most=1)
        with torch.no_grad():
            says_BV = logits(self.teacher, batch.tokens_BT[:, :-1], Layout(query_BQ=query_B1))[:, 0].softmax(dim=-1)
        token_B1 = torch.multinomial(says_BV, 1, generator=generator)
        return replace(batch, target={**batch.target, "recall": batch.target["recall"].scatter(1, query_B1, token_B1)})


@pytest.fixture
def dictated(monkeypatch: pytest.MonkeyPatch) -> Dictated:
    monkeypatch.setattr(Dictated, "teacher", network_of(), raising=False)
    return Dictated(TASK.modulus, TASK.values, TASK.keys)


# β


def test_the_beta_that_undoes_a_division_is_found(dictated: Dictated) -> None:
    fit = fit_temperature(scaled(dictated.teacher, 1 / KNOWN), dictated, [4, 8, 16], samples=400)
    assert [pair.beta for pair in fit.pairs] == pytest.approx([KNOWN] * 6, rel=0.15)
    module = fit.temperature.build(heads=2, width=16)
    for pair in fit.pairs:
        assert float(module.sharpness(torch.tensor(pair.entropy))) == pytest.approx(KNOWN, rel=0.15)


def test_beta_is_1_where_a_sharper_attention_is_worse(dictated: Dictated) -> None:
    fit = fit_temperature(scaled(dictated.teacher, KNOWN), dictated, [4, 8, 16], samples=100)
    assert {pair.beta for pair in fit.pairs} == {1.0}
    assert fit.coefficients == pytest.approx((1.0,))


def test_beta_is_1_where_attention_says_nothing() -> None:
    fit = fit_temperature(network_of(silent=True), TASK, [3, 5, 7], samples=10)
    assert {pair.beta for pair in fit.pairs} == {1.0}


def test_the_fitted_temperature_brings_back_what_a_division_lost(dictated: Dictated) -> None:
    flattened = scaled(dictated.teacher, 1 / KNOWN)
    fit = fit_temperature(flattened, dictated, [8], samples=300)
    sharp = sharpened(flattened, fit.temperature)
    before, after, best = (loss_of(network, dictated, length=12) for network in (flattened, sharp, dictated.teacher))
    assert after < before - 0.8 * (before - best)


@torch.no_grad()
def loss_of(network: nn.Module, task: ModuloRecall, length: int) -> float:
    (batch,) = evaluation_set(task, length, samples=50)
    query_B1, wanted = batch.queries(["recall"], most=1)
    logits_BV = logits(network.eval(), batch.tokens_BT[:, :-1], Layout(query_BQ=query_B1))[:, 0]
    return float(nn.functional.cross_entropy(logits_BV, wanted["recall"][:, 0]))


# Entropy


def plain_entropy(attention: Any, x_TD: Tensor, at: int, head: int) -> float:
    q_C, k_TC = attention.q(x_TD[at]).view(2, -1)[head], attention.kv(x_TD).chunk(2, dim=-1)[0].view(len(x_TD), 2, -1)[:, head]
    z = [float(q_C @ k_TC[j]) / math.sqrt(len(q_C)) for j in range(at + 1)]
    total = sum(map(math.exp, z))
    return -sum(math.exp(each) / total * math.log(math.exp(each) / total) for each in z)


@pytest.mark.parametrize("pairs_at_a_time", [2**25, 200])
def test_entropies_are_what_plain_python_computes(pairs_at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network, length, samples = network_of(blocks=2).eval(), 5, 6
    monkeypatch.setattr(import_module("lengthlab.models.attention.softmax"), "PAIRS", pairs_at_a_time)
    trial, read = Probe(network, TASK, "modulo", samples), {}
    for attention in attentions(network):
        attention.register_forward_pre_hook(lambda module, inputs: read.__setitem__(module, inputs[0]))
    (batch,) = trial._batches(length)
    with torch.no_grad():
        network(batch.tokens_BT)
        measured, at = trial.entropies(length), 1 + 2 * length
        assert len(measured) == 4
        for (name, head), h in measured.items():
            attention = network.get_submodule(name)
            plain = [plain_entropy(attention, x_TD, at, head) for x_TD in read[attention]]
            assert h == pytest.approx(sum(plain) / samples, abs=1e-4)


def test_it_is_the_entropy_before_any_temperature() -> None:
    plain = network_of()
    sharp = sharpened(plain, AdaptiveTemperature((5.0,), flat=0.0))
    of_plain, of_sharp = (Probe(network, TASK, "recall", samples=10).entropies(6) for network in (plain, sharp))
    assert list(of_sharp.values()) == list(of_plain.values())


# The polynomial


def test_a_stray_beta_does_not_bend_the_polynomial_beyond_the_lengths() -> None:
    stray = {10: 2.0, 15: 1.0, 20: 1.0, 25: 1.1, 30: 1.0, 35: 1.0, 40: 1.1}
    pairs = [Pair(n, "attend", head, math.log(n) - head, beta) for n, beta in stray.items() for head in range(2)]
    module = AdaptiveTemperature(polynomial(pairs, degree=4), flat=0.0).build(heads=2, width=16)
    beyond = module.sharpness(torch.linspace(math.log(40), 2 * math.log(40), 50))
    assert 1.0 <= float(beyond.min()) <= float(beyond.max()) <= 2.0


@pytest.mark.parametrize(("lengths", "number"), [(1, 1), (2, 1), (3, 2), (9, 4)])
def test_few_lengths_make_few_coefficients(lengths: int, number: int) -> None:
    pairs = [Pair(n, "attend", 0, entropy=n / 2, beta=1 + n**3 / 50) for n in range(1, lengths + 1)]
    assert len(polynomial(pairs, degree=4)) == number
    assert len(polynomial(pairs, degree=0)) == 1


# The network


def test_fitting_leaves_the_network_as_it_was_bit_for_bit() -> None:
    network = network_of(positions="randomized", scores="log-n").train()
    before, text, chance = deepcopy(network.state_dict()), str(network), torch.get_rng_state()
    first = fit_temperature(network, TASK, [2, 4], samples=20)
    assert identical(network.state_dict(), before)
    assert str(network) == text
    assert torch.equal(torch.get_rng_state(), chance)
    assert all(module.training for module in network.modules())
    assert fit_temperature(network, TASK, [2, 4], samples=20) == first


@pytest.mark.parametrize("positions", ["none", "rope", "alibi", "learned"])
@pytest.mark.parametrize("scores", ["none", "log-n"])
def test_a_temperature_of_1_changes_nothing(positions: str, scores: str) -> None:
    network = network_of(blocks=2, positions=positions, scores=scores)
    same = sharpened(network, AdaptiveTemperature((1.0,)))
    tokens_BT = torch.randint(TASK.vocabulary, (2, 30))
    assert torch.allclose(same.eval()(tokens_BT), network.eval()(tokens_BT), atol=1e-4)
    assert accuracy(same, TASK, [6], samples=50) == accuracy(network, TASK, [6], samples=50)


def test_a_sharpened_network_is_the_model_with_that_temperature_and_the_same_weights() -> None:
    temperature, network = AdaptiveTemperature((0.5, 1.0), flat=0.2), network_of(blocks=2, positions="rope")
    model = network_of(blocks=2, positions="rope", scores=temperature)
    model.load_state_dict(network.state_dict())
    tokens_BT = torch.randint(TASK.vocabulary, (2, 30))
    sharp = sharpened(network.eval(), temperature)
    assert torch.equal(sharp(tokens_BT), model.eval()(tokens_BT))
    assert not torch.allclose(sharp(tokens_BT), network(tokens_BT), atol=1e-2)
    assert torch.allclose(sharp.train()(tokens_BT), network(tokens_BT), atol=1e-4)


def test_scores_that_scale_their_queries_go_on_doing_so() -> None:
    network = network_of(scores="log-n").eval()
    larger, tokens_BT = deepcopy(network), torch.randint(TASK.vocabulary, (2, 30))
    for attention in attentions(larger):
        attention.scores.scale_H.data.mul_(2)
    assert torch.allclose(sharpened(network, AdaptiveTemperature((2.0,), 0.0))(tokens_BT), larger(tokens_BT), atol=1e-4)


def test_the_last_of_two_temperatures_counts() -> None:
    network, tokens_BT = network_of().eval(), torch.randint(TASK.vocabulary, (2, 30))
    once = sharpened(network, AdaptiveTemperature((2.0,)))
    twice = sharpened(sharpened(network, AdaptiveTemperature(VELICKOVIC)), AdaptiveTemperature((2.0,)))
    assert torch.equal(twice(tokens_BT), once(tokens_BT))


# Fitted when training is over


def test_a_run_is_trained_as_with_plain_scores_and_measured_with_a_temperature_fitted_to_it(tmp_path: Path) -> None:
    plain, adaptive = (
        end_to_end_run(model=models.hybrid_block(8, blocks=1, heads=2, positions="none", scores=scores), evaluate=(3, 12))
        for scores in ("none", AdaptiveTemperature(times=(1, 2, 100)))
    )
    trained, result = train(plain, tmp_path).network(), train(adaptive, tmp_path)
    fitted = result.network()
    fit = fit_temperature(trained, plain.task, [3, 6])
    (scores,) = (module for module in fitted.modules() if isinstance(module, Temperature))
    assert [value for value in scores.coefficients.tolist() if value] == pytest.approx(fit.coefficients)
    assert float(scores.flat) == pytest.approx(fit.flat)
    weights = trained.state_dict()
    assert identical({name: fitted.state_dict()[name] for name in weights}, weights)
    sharp = sharpened(trained, fit.temperature)
    counted = {(count.length, count.question): count.correct for count in result.counts}
    assert counted == {(count.length, count.question): count.correct for count in accuracy(sharp, plain.task, [3, 12])}


def test_attention_that_is_off_to_the_end_is_left_as_it_is() -> None:
    network = models.hybrid_block(8, blocks=1, heads=2, scores="adaptive-temperature").build(TASK.vocabulary)
    before = deepcopy(network.state_dict())
    switch = Delay(find(network, "attention"))
    switch.close()
    settle_temperatures(network, TASK, longest=6)
    assert identical(network.state_dict(), before)
    switch.open()
    settle_temperatures(network, TASK, longest=6)
    assert not identical(network.state_dict(), before)


def test_what_is_not_fitted_yet_sharpens_nothing() -> None:
    network = network_of(scores="adaptive-temperature").eval()
    plain, tokens_BT = network_of().eval(), torch.randint(TASK.vocabulary, (2, 30))
    assert torch.allclose(network(tokens_BT), plain(tokens_BT), atol=1e-4)


# What is refused


def test_a_temperature_without_coefficients_is_refused_where_nothing_fits_it() -> None:
    with pytest.raises(LabError, match=r"^a trained network is sharpened with coefficients"):
        sharpened(network_of(), AdaptiveTemperature())


@pytest.mark.parametrize("times", [(0,), (), (1.5, 2)])
def test_times_that_are_no_numbers_of_lengths_are_refused(times: tuple[Any, ...]) -> None:
    with pytest.raises(LabError, match=r"^scores\.times must be whole numbers, one or more, each at least 1"):
        AdaptiveTemperature(times=times)


def two_blocks(first: Any, second: Any) -> models.Model:
    blocks = (models.residual(models.Attention(2, "none", scores)) for scores in (first, second))
    return models.Model("two-blocks", 8, models.chain(*blocks))


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (two_blocks(AdaptiveTemperature(), "entmax"), r"has entmax instead of a softmax"),
        (two_blocks(AdaptiveTemperature(), AdaptiveTemperature(times=(1,))), r"are to be the same in all attention"),
        (two_blocks(AdaptiveTemperature(question="recal"), "none"), r"has no question 'recal'; did you mean 'recall'"),
    ],
)
def test_what_could_not_be_fitted_after_training_is_refused_before_it(model: models.Model, text: str) -> None:
    with pytest.raises(LabError, match=text):
        end_to_end_run(model=model)


@pytest.mark.parametrize("scores", ["entmax", "adaptive-entmax", "stick-breaking"])
def test_attention_without_a_softmax_is_refused(scores: str) -> None:
    with pytest.raises(LabError, match=rf"^body\.attention\.0\.residual\.attend has {scores} instead of a softmax"):
        fit_temperature(network_of(scores=scores), TASK, [3])


def test_a_network_without_attention_is_refused() -> None:
    with pytest.raises(LabError, match=r"^the network has no attention of lengthlab's"):
        fit_temperature(models.lstm(width=8).build(TASK.vocabulary), TASK, [3])


def test_a_network_whose_attention_is_off_is_refused() -> None:
    network = models.attention_on_lstm(width=8, blocks=1, heads=2).build(TASK.vocabulary)
    Delay(find(network, "attention")).close()
    with pytest.raises(LabError, match=r"^all attention of the network is off"):
        fit_temperature(network, TASK, [3], samples=10)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"question": "recal"}, "task 'modulo-recall' has no question 'recal'; did you mean 'recall'?"),
        ({"lengths": []}, "a temperature is fitted to one length at least, and better to several"),
        ({"lengths": [99]}, "length 99: task 'modulo-recall' reaches 24 at most"),
        ({"seed": 0}, "accuracy is counted on the samples of seed 0: take another one here"),
        ({"samples": 0}, "samples must be at least 1, not 0"),
        ({"degree": -1}, "degree must be at least 0, not -1"),
    ],
)
def test_what_cannot_be_fitted_is_said_in_one_line(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(LabError) as caught:
        fit_temperature(**{"network": network_of(), "task": TASK, "lengths": [3]} | wrong)
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)
