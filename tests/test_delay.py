"""A part that is delayed is skipped, contributes nothing and does not move by one bit; opened, it trains like the rest."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from lengthlab import switch
from lengthlab.errors import LabError
from lengthlab.models import MODELS, Network
from lengthlab.spec.schedule import OFF
from lengthlab.switch import Delay, find
from lengthlab.tasks import ModuloRecall

TASK = ModuloRecall(modulus=3, values=3, keys=6)
DELAYABLE = [name for name in MODELS if name != "lstm"]
OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "adam": lambda parameters: Adam(parameters, lr=1e-2),
    "adamw": lambda parameters: AdamW(parameters, lr=1e-2, weight_decay=0.1),
    "sgd": lambda parameters: SGD(parameters, lr=1e-2, momentum=0.9, weight_decay=0.1),
}
every_model = pytest.mark.parametrize("name", DELAYABLE)
every_cover = pytest.mark.parametrize("part", sorted({part for parts in OFF.values() for part in parts}))
every_optimizer = pytest.mark.parametrize("kind", OPTIMIZERS)


def network_of(name: str) -> Network:
    torch.manual_seed(0)
    return MODELS[name](width=8, blocks=2, heads=2, mlp=2, scores="log-n").build(TASK.vocabulary)


def tokens() -> Tensor:
    return TASK.sample(4, (2, 5), torch.Generator().manual_seed(0)).tokens_BT


def train(network: nn.Module, optimizer: Optimizer, steps: int) -> None:
    """Predict the next token everywhere, which leaves no parameter that is on without a gradient."""
    tokens_BT = tokens()
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(network(tokens_BT[:, :-1]).flatten(0, 1), tokens_BT[:, 1:].flatten()).backward()
        optimizer.step()


def copies(parameters: object) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in parameters]  # type: ignore[attr-defined]


def all_equal(ones: list[Tensor], others: list[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(ones, others, strict=True))


def none_equal(ones: list[Tensor], others: list[Tensor]) -> bool:
    return not any(torch.equal(one, other) for one, other in zip(ones, others, strict=True))


def others_of(network: nn.Module, delay: Delay) -> list[nn.Parameter]:
    still = {id(parameter) for parameter in delay.parameters()}
    return [parameter for parameter in network.parameters() if id(parameter) not in still]


@every_cover
@every_model
def test_a_closed_part_never_runs(name: str, part: str) -> None:
    network = network_of(name)
    delay, calls = switch.delay(network, part), []
    for site in delay.sites:
        for module in site.module.modules():
            if isinstance(module, nn.Linear):
                module.register_forward_hook(lambda *_: calls.append(1))
    network(tokens())
    assert not calls
    delay.open()
    network(tokens())
    assert calls


def without_attention(network: Network, name: str) -> Tensor:
    """Each architecture written out again with its attention part left out."""
    x_BTD, body = network.embedding(tokens()), network.body
    if name == "hybrid-block":
        block = body.residual
        x_BTD = block.norm(x_BTD + block.lstm(x_BTD))
    elif name != "transformer":
        x_BTD = body.lstm(x_BTD)
    if name == "sandwich":
        x_BTD = body.get_submodule("lstm-2")(x_BTD)
    return network.head(x_BTD)


@every_model
def test_without_its_attention_part_a_model_is_the_rest_of_it(name: str) -> None:
    network = network_of(name)
    switch.delay(network, "attention")
    assert torch.equal(network(tokens()), without_attention(network, name))


def norms_and_mlps(attention: nn.Module, x_BTD: Tensor) -> Tensor:
    """What is left of the attention part when nothing is attended to: LN(x), then LN(x + MLP(x))."""
    for block in attention.children():
        first, second = block.children()
        x_BTD = first.norm(x_BTD)
        x_BTD = second.norm(x_BTD + second.mlp(x_BTD))
    return x_BTD


def without_attending(network: Network, name: str) -> Tensor:
    """Each architecture written out again with norms and MLPs where its attention part stands."""
    x_BTD, body = network.embedding(tokens()), network.body
    if name == "parallel":
        return network.head(body.lstm(x_BTD) + norms_and_mlps(body.attention, x_BTD))
    for child_name, child in body.named_children():
        x_BTD = norms_and_mlps(child, x_BTD) if child_name == "attention" else child(x_BTD)
    return network.head(x_BTD)


@every_model
def test_without_the_attention_function_norms_and_mlps_remain(name: str) -> None:
    network = network_of(name)
    switch.delay(network, "attend")
    assert torch.equal(network(tokens()), without_attending(network, name))


@every_optimizer
@every_cover
@every_model
def test_attention_does_not_move_by_one_bit_while_delayed(name: str, part: str, kind: str) -> None:
    network = network_of(name)
    optimizer = OPTIMIZERS[kind](network.parameters())
    delay = switch.delay(network, part)
    still, moving = copies(delay.parameters()), copies(others_of(network, delay))
    train(network, optimizer, 3)
    assert all_equal(still, list(delay.parameters()))
    assert none_equal(moving, others_of(network, delay))
    assert all(parameter.grad is None and parameter not in optimizer.state for parameter in delay.parameters())


@every_cover
@every_model
def test_opened_attention_trains_and_starts_its_count_at_one(name: str, part: str) -> None:
    network = network_of(name)
    optimizer = OPTIMIZERS["adam"](network.parameters())
    delay = switch.delay(network, part)
    train(network, optimizer, 3)
    still = copies(delay.parameters())
    delay.open()
    train(network, optimizer, 1)
    assert none_equal(still, list(delay.parameters()))
    assert {float(optimizer.state[parameter]["step"]) for parameter in delay.parameters()} == {1.0}
    assert {float(optimizer.state[parameter]["step"]) for parameter in others_of(network, delay)} == {4.0}


@every_optimizer
def test_a_part_closed_in_the_middle_of_training_stands_still(kind: str) -> None:
    network = network_of("sandwich")
    optimizer = OPTIMIZERS[kind](network.parameters())
    train(network, optimizer, 2)
    # Gradients and momentum are there at this point, and either would move the part.
    delay = switch.delay(network, "attention")
    still = copies(delay.parameters())
    optimizer.step()
    train(network, optimizer, 2)
    assert all_equal(still, list(delay.parameters()))


def test_a_forgotten_part_starts_afresh_when_it_is_opened_again() -> None:
    network = network_of("sandwich")
    optimizer = OPTIMIZERS["adam"](network.parameters())
    train(network, optimizer, 2)
    delay = switch.delay(network, "attention")
    delay.forget(optimizer)
    assert all(parameter not in optimizer.state for parameter in delay.parameters())
    delay.open()
    train(network, optimizer, 1)
    assert {float(optimizer.state[parameter]["step"]) for parameter in delay.parameters()} == {1.0}
    assert {float(optimizer.state[parameter]["step"]) for parameter in others_of(network, delay)} == {3.0}


@every_cover
@every_model
def test_closing_and_opening_leaves_the_model_as_it_was(name: str, part: str) -> None:
    network = network_of(name)
    before_BTV, state = network(tokens()), copy.deepcopy(network.state_dict())
    delay = switch.delay(network, part)
    assert not torch.equal(network(tokens()), before_BTV)
    delay.open()
    assert torch.equal(network(tokens()), before_BTV)
    assert all_equal(list(state.values()), list(network.state_dict().values()))
    assert not any("forward" in vars(module) for module in network.modules())


def test_opening_and_closing_twice_is_as_good_as_once() -> None:
    network = network_of("parallel")
    open_BTV = network(tokens())
    delay = switch.delay(network, "attention")
    closed_BTV = network(tokens())
    delay.close()
    assert torch.equal(network(tokens()), closed_BTV)
    delay.open()
    delay.open()
    assert delay.is_open
    assert torch.equal(network(tokens()), open_BTV)
    delay.close()
    assert not delay.is_open
    assert torch.equal(network(tokens()), closed_BTV)


def test_a_part_that_is_delayed_already_is_refused_until_that_delay_is_removed() -> None:
    network = network_of("parallel")
    open_BTV = network(tokens())
    first = switch.delay(network, "attention")
    with pytest.raises(LabError, match=r"'body.attention' is delayed already; call remove\(\) on that delay first"):
        switch.delay(network, "attention")
    assert not first.is_open
    first.remove()
    switch.delay(network, "attention").open()
    assert torch.equal(network(tokens()), open_BTV)


@every_cover
def test_the_names_of_the_weights_are_the_same_while_closed(part: str) -> None:
    network = network_of("hybrid-block")
    state = copy.deepcopy(network.state_dict())
    switch.delay(network, part)
    assert list(network.state_dict()) == list(state)
    network.load_state_dict(state)


def test_a_copy_of_a_closed_model_stays_closed_and_goes_its_own_way() -> None:
    network = network_of("attention-on-lstm")
    delay = switch.delay(network, "attention")
    copied = copy.deepcopy(network)
    delay.open()
    with pytest.warns(switch.DelayWarning, match="no delay knows of it, so it stays off"):
        copied(tokens())
    assert torch.equal(copied(tokens()), without_attention(copied, "attention-on-lstm"))
    assert not torch.equal(network(tokens()), copied(tokens()))
    train(copied, OPTIMIZERS["adam"](copied.parameters()), 1)
    assert not torch.equal(copied.head.weight, network.head.weight)


def test_a_copy_of_a_closed_model_can_be_opened_with_a_delay_of_its_own() -> None:
    network = network_of("attention-on-lstm")
    open_BTV = network(tokens())
    switch.delay(network, "attention")
    copied = copy.deepcopy(network)
    switch.delay(copied, "attention").open()
    assert torch.equal(copied(tokens()), open_BTV)


def test_a_model_and_its_delay_can_be_copied_together() -> None:
    network = network_of("attention-on-lstm")
    delay = switch.delay(network, "attention")
    copied, copied_delay = copy.deepcopy((network, delay))
    copied_delay.open()
    assert not torch.equal(copied(tokens()), network(tokens()))
    assert torch.equal(network(tokens()), without_attention(network, "attention-on-lstm"))


def test_a_forward_that_someone_set_on_the_object_comes_back() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].forward = lambda x: x + 100.0
    delay, x_BD = switch.delay(model, "1"), torch.zeros(1, 2)
    assert torch.equal(model(x_BD), model[0](x_BD))
    delay.open()
    assert torch.equal(model(x_BD), model[0](x_BD) + 100.0)


class Look(nn.Module):
    """Someone's attention, which takes a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(4, 4)

    def forward(self, x_BTD: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.project(x_BTD).cumsum(dim=1)


class Layer(nn.Module):
    def __init__(self, look: nn.Module, masked: bool = False) -> None:
        super().__init__()
        self.self_attn, self.masked = look, masked
        self.mlp = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 4)))

    def forward(self, x_BTD: Tensor) -> Tensor:
        mask = {"mask": torch.ones(x_BTD.shape[1])} if self.masked else {}
        x_BTD = x_BTD + self.self_attn(x_BTD, **mask)
        return x_BTD + self.mlp(x_BTD)


class Foreign(nn.Module):
    """A model of someone else, built as theirs are: a list of layers."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x_BTD: Tensor) -> Tensor:
        for layer in self.layers:
            x_BTD = layer(x_BTD)
        return x_BTD


def mlps_alone(model: Foreign, x_BTD: Tensor) -> Tensor:
    for layer in model.layers:
        x_BTD = x_BTD + layer.mlp(x_BTD)
    return x_BTD


@pytest.mark.parametrize("pattern", ["self_attn", "layers.*.self_attn", "*_attn", "*.self_attn"])
def test_a_pattern_switches_off_parts_of_anyones_model(pattern: str) -> None:
    model, x_BTD = Foreign(Layer(Look()), Layer(Look())), torch.randn(2, 3, 4)
    delay = switch.delay(model, pattern)
    assert [site.name for site in delay.sites] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert torch.equal(model(x_BTD), mlps_alone(model, x_BTD))


def test_one_layer_of_several_can_be_named() -> None:
    model, x_BTD = Foreign(Layer(Look()), Layer(Look())), torch.randn(2, 3, 4)
    switch.delay(model, "layers.1.self_attn")
    middle_BTD = model.layers[0](x_BTD)
    assert torch.equal(model(x_BTD), middle_BTD + model.layers[1].mlp(middle_BTD))


def test_a_link_of_a_sequential_passes_on_and_anything_else_adds_nothing() -> None:
    model, x_BTD = Foreign(Layer(Look())), torch.randn(2, 3, 4)
    layer = model.layers[0]
    switch.delay(model, ["mlp.1", "self_attn"])
    assert torch.equal(model(x_BTD), x_BTD + layer.mlp[0](x_BTD))


def test_a_part_that_is_called_with_more_than_its_input_can_be_off() -> None:
    model, x_BTD = Foreign(Layer(Look(), masked=True)), torch.randn(2, 3, 4)
    switch.delay(model, "self_attn")
    assert torch.equal(model(x_BTD), mlps_alone(model, x_BTD))


@pytest.mark.parametrize("training", [True, False])
def test_attention_of_a_torch_transformer_layer_can_be_off(training: bool) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).train(training)
    x_BTD = torch.randn(2, 3, 8)
    switch.delay(layer, "self_attn")
    with torch.no_grad():  # in eval mode without gradients torch takes a fused path that never calls the attention module
        normed_BTD = layer.norm1(x_BTD)
        wanted_BTD = layer.norm2(normed_BTD + layer.linear2(layer.linear1(normed_BTD).relu()))
        assert torch.allclose(layer(x_BTD), wanted_BTD, atol=1e-6)


def test_one_module_in_two_places_can_be_closed_and_opened() -> None:
    shared = Look()
    model, x_BTD = Foreign(Layer(shared), Layer(shared)), torch.randn(2, 3, 4)
    open_BTD = model(x_BTD)
    delay = switch.delay(model, "self_attn")
    assert torch.equal(model(x_BTD), mlps_alone(model, x_BTD))
    delay.open()
    assert torch.equal(model(x_BTD), open_BTD)


def test_the_outermost_match_wins() -> None:
    network = network_of("sandwich")
    assert [site.name for site in find(network, "attend", "attention")] == ["body.attention"]
    assert [site.name for site in find(network, "*")] == ["embedding", "body", "head"]
    inner = nn.Sequential(nn.Sequential(nn.Sequential(nn.Linear(2, 2))))
    assert [site.name for site in find(inner, "0")] == ["0"]


def test_a_name_means_the_part_of_that_name_and_not_a_piece_inside_another() -> None:
    network = network_of("sandwich")
    assert [site.name for site in find(network, "lstm-2")] == ["body.lstm-2"]
    assert [site.name for site in find(network, "lstm")] == ["body.lstm"]


@pytest.mark.parametrize("part", ["atention", "blocks.attention"])
def test_an_unknown_part_is_refused_with_the_nearest_name(part: str) -> None:
    with pytest.raises(LabError) as caught:
        switch.delay(network_of("sandwich"), part)
    assert str(caught.value) == f"no part of the model is named '{part}'; did you mean 'attention'?"


def test_a_call_that_fails_changes_nothing() -> None:
    network = network_of("sandwich")
    train(network, OPTIMIZERS["adam"](network.parameters()), 1)
    before_BTV, grads = network(tokens()), [parameter.grad for parameter in network.parameters()]
    with pytest.raises(LabError):
        switch.delay(network, ["attention", "atention"])
    assert torch.equal(network(tokens()), before_BTV)
    assert all(parameter.grad is grad for parameter, grad in zip(network.parameters(), grads, strict=True))
    assert not any("forward" in vars(module) for module in network.modules())


def test_a_delay_tells_what_it_holds() -> None:
    delay = switch.delay(network_of("parallel"), "attention")
    size = sum(parameter.numel() for parameter in delay.parameters())
    assert repr(delay).splitlines() == [
        "Delay, closed:",
        "  module          parameters  while off",
        f"  body.attention  {size:>10,}  zeros",
    ]
    delay.open()
    assert repr(delay).startswith("Delay, open since step 0:")


@pytest.mark.parametrize("kind", [lambda: nn.MultiheadAttention(8, 2), lambda: nn.LSTM(8, 8)])
def test_a_module_that_gives_a_pair_gives_a_pair_while_off(kind: Callable[[], nn.Module]) -> None:
    model = nn.ModuleDict({"part": kind()})
    x = torch.randn(5, 3, 8)
    inputs = {"query": x, "key": x, "value": x} if isinstance(model["part"], nn.MultiheadAttention) else {"input": x}
    delay = switch.delay(model, "part")
    out, other = model["part"](**inputs)
    assert torch.equal(out, torch.zeros_like(x))
    assert other is None
    delay.open()
    assert model["part"](**inputs)[0].abs().max() > 0
