"""A silent part says nothing at first, so that opening it changes nothing until it has learned something."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from lengthlab.errors import LabError
from lengthlab.models import MODELS, Attention, Lstm, Mlp, Model, Part, chain, named, repeat, residual, silent
from lengthlab.models.outline import outline
from lengthlab.switch import delay
from lengthlab.tasks import ModuloRecall

TASK = ModuloRecall(modulus=3, values=3, keys=6)
HYBRIDS = [name for name in MODELS if name not in ("lstm", "transformer")]


@pytest.mark.parametrize("local", [0, 2])
@pytest.mark.parametrize("name", HYBRIDS)
def test_opening_silent_sublayers_changes_no_output(name: str, local: int) -> None:
    torch.manual_seed(0)
    network = MODELS[name](width=8, blocks=2, heads=2, silent=True, local=local).build(TASK.vocabulary)
    tokens_BT = TASK.sample(4, (2, 5), torch.Generator().manual_seed(0)).tokens_BT
    switch = delay(network, ["attend", "mlp"])
    closed = network(tokens_BT)
    switch.open()
    assert torch.equal(network(tokens_BT), closed)


@pytest.mark.parametrize("name", HYBRIDS)
def test_silence_moves_no_other_weight(name: str) -> None:
    states = []
    for quiet in (True, False):
        torch.manual_seed(0)
        states.append(MODELS[name](width=8, blocks=2, heads=2, silent=quiet).build(TASK.vocabulary).state_dict())
    changed = [key for key, value in states[0].items() if not torch.equal(value, states[1][key])]
    assert {key.rsplit(".", 2)[-2] for key in changed} == {"out", "2"}
    assert not any(states[0][key].any() for key in changed)


def test_a_silent_part_learns_to_speak() -> None:
    torch.manual_seed(0)
    part = silent(Attention(heads=2)).build(8)
    optimizer = torch.optim.Adam(part.parameters(), lr=0.1)
    x_BTD = torch.randn(2, 3, 8)
    for _ in range(2):
        optimizer.zero_grad()
        (part(x_BTD) - 1).square().mean().backward()
        optimizer.step()
    assert all(weight.grad is not None and weight.grad.any() for name, weight in part.named_parameters() if "weight" in name)


def test_a_silent_part_keeps_the_name_of_its_kind() -> None:
    loud, quiet = (
        Model("mine", 8, chain(residual(named("attend", wrap(Attention(heads=2)))), residual(wrap(Mlp(2)))))
        for wrap in (lambda part: part, silent)
    )
    assert list(loud.build(9).state_dict()) == list(quiet.build(9).state_dict())


def test_the_outline_says_what_is_silent() -> None:
    texts = [line.text for line in outline(MODELS["parallel"](width=8, blocks=1, heads=2, silent=True), TASK.vocabulary)]
    assert "attend: attention, 2 heads, positions rope, scores none, silent at first" in texts
    assert "mlp, 4 times as wide inside, silent at first" in texts


@pytest.mark.parametrize("wrap", [lambda part: named("x", part), residual, chain, silent, lambda part: repeat(2, part)])
def test_silent_goes_around_one_part(wrap: Callable[[Part], Part]) -> None:
    with pytest.raises(LabError, match="silent goes around one part"):
        silent(wrap(Mlp(2)))


def test_what_has_no_linear_map_cannot_be_silent() -> None:
    with pytest.raises(LabError, match="Lstm has no linear map"):
        silent(Lstm()).build(8)
