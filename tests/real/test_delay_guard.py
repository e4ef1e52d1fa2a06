"""What is off stays off or says so: a guard on every watched step, forwards that others wrap, copies, and names of wrappers."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from accelerate.hooks import ModelHook, add_hook_to_module, remove_hook_from_module
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from hand_written import WIDTH, Block, CausalSelfAttention, Gpt
from lengthlab.errors import LabError
from lengthlab.switch import Delay, DelayWarning, delay, delay_attention
from lengthlab.switch.guard import Guard
from small_lms import VOCABULARY, lm_of

X_BTD = torch.randn(4, 5, WIDTH, generator=torch.Generator().manual_seed(2))


def gpt(**options: Any) -> Gpt:
    torch.manual_seed(0)
    return Gpt(**options)


def backward(model: nn.Module) -> None:
    (model(X_BTD) - X_BTD.cumsum(1)).square().mean().backward()


def train(model: nn.Module, optimizer: Optimizer, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        backward(model)
        optimizer.step()


def watched(model: nn.Module, **options: Any) -> tuple[Delay, Optimizer]:
    optimizer = AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    return delay_attention(model, **options).watch(optimizer), optimizer


# The guard


class Mixing(CausalSelfAttention):
    def mix(self, x_BTD: Tensor) -> Tensor:
        return CausalSelfAttention.forward(self, x_BTD)


class MixingBlock(Block):
    """Attention is called by another name than forward."""

    def __init__(self) -> None:
        super().__init__()
        self.attn = Mixing()

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = x_BTD + self.attn.mix(self.ln_1(x_BTD))
        return x_BTD + self.mlp(self.ln_2(x_BTD))


def test_attention_that_is_called_by_another_method_ends_in_an_error_before_the_step() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(MixingBlock())
    optimizer = AdamW(model.parameters(), lr=1e-2)
    delay(model, "attn").watch(optimizer)
    before = copy.deepcopy(model.state_dict())
    backward(model)
    with pytest.raises(LabError, match=r"'0.attn.c_attn.weight' is off and has a gradient.*a method of it") as caught:
        optimizer.step()
    assert "\n" not in str(caught.value)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_gradient_that_comes_within_the_step_is_found_as_well() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(MixingBlock())
    optimizer = AdamW(model.parameters(), lr=1e-2)
    delay(model, "attn").watch(optimizer)

    def closure() -> float:
        backward(model)
        return 0.0

    with pytest.raises(LabError, match="is off and has a gradient"):
        optimizer.step(closure)


class Decaying(SGD):
    """Decays all that it is given, by way of `.data` or not, from a step on."""

    def __init__(self, parameters: Any, begin: int, data: bool) -> None:
        super().__init__(parameters, lr=1e-2)
        self.begin, self.data, self.made = begin, data, 0

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        super().step()
        self.made += 1
        for parameter in self.param_groups[0]["params"] if self.made > self.begin else ():
            (parameter.data if self.data else parameter).mul_(0.999)


@pytest.mark.parametrize("data", [False, True])
@pytest.mark.parametrize("begin", [0, 5])
def test_what_is_moved_without_a_gradient_ends_in_an_error(begin: int, data: bool) -> None:
    model = gpt()
    optimizer = Decaying(model.parameters(), begin, data)
    later = delay_attention(model).watch(optimizer)
    train(model, optimizer, begin)
    with pytest.raises(LabError, match=r"'h.\d.attn.* is off and was moved by a step of Decaying"):
        train(model, optimizer, 2)
    assert later.steps <= begin + 1


def test_values_that_are_written_back_are_no_motion() -> None:
    """As LBFGS does, which adds zero to what has no gradient."""
    model = gpt()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=1e-2, max_iter=2)
    later = delay_attention(model, until=4).watch(optimizer)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = (model(X_BTD) - X_BTD.cumsum(1)).square().mean()
        loss.backward()
        return loss

    for _ in range(4):
        optimizer.step(closure)
    assert later.is_open


def test_values_that_are_loaded_between_steps_are_no_motion() -> None:
    model, other = gpt(), gpt()
    nn.init.ones_(other.h[0].attn.c_proj.weight)
    later, optimizer = watched(model, until=6)
    train(model, optimizer, 2)
    model.load_state_dict(other.state_dict())
    train(model, optimizer, 2)
    model.h[0].attn.c_proj.weight.data = torch.zeros(WIDTH, WIDTH)
    train(model, optimizer, 2)
    assert later.is_open


def test_weights_that_are_not_numbers_are_no_motion() -> None:
    weight = nn.Parameter(torch.full((3,), torch.nan))
    guard = Guard([weight])
    guard.begin()
    assert guard.moved() is None


class Fed(nn.Module):
    """A map beside attention that only attention feeds, as in Zamba."""

    def __init__(self) -> None:
        super().__init__()
        self.attn, self.linear, self.mlp = CausalSelfAttention(), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return x_BTD + self.linear(self.attn(x_BTD)) + self.mlp(x_BTD)


@pytest.mark.parametrize("closure", [False, True])
def test_parameters_that_only_attention_feeds_stand_still_as_well_and_are_let_go(closure: bool) -> None:
    torch.manual_seed(0)
    model = Fed()
    later = delay_attention(model, until=2)
    later.remove()
    later = Delay(later.sites, until=2, starved=tuple(model.linear.parameters()), model=model)
    later.close()
    optimizer = AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    later.watch(optimizer)
    still = copy.deepcopy(model.linear.state_dict())

    def compute() -> float:
        optimizer.zero_grad()
        backward(model)
        return 0.0

    for step in range(4):
        assert later.is_open == (step >= 2)
        if not closure:
            compute()
        optimizer.step(compute if closure else None)
        assert (model.linear.weight.grad is None) == (step < 2)
        assert torch.equal(model.linear.weight, still["weight"]) == (step < 2)
        assert (model.linear.weight in optimizer.state) == (step >= 2)


# Forwards that others wrap


class Counted(ModelHook):
    def __init__(self) -> None:
        self.calls = 0

    def pre_forward(self, module: nn.Module, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        self.calls += 1
        return args, kwargs


def hooked(attention: nn.Module) -> None:
    add_hook_to_module(attention, Counted())


def compiled(attention: nn.Module) -> None:
    attention.forward = torch.compile(attention.forward, backend="eager")


def closed_over(attention: nn.Module) -> None:
    old = attention.forward
    attention.forward = lambda *inputs: old(*inputs)


def in_a_partial(attention: nn.Module) -> None:
    attention.forward = functools.partial(lambda forward, x: forward(x), attention.forward)


def kept_on_the_module(attention: nn.Module) -> None:
    attention.before = attention.forward
    attention.forward = types.MethodType(lambda self, x: self.before(x), attention)


def wrapped(attention: nn.Module) -> None:
    @functools.wraps(attention.forward)
    def forward(x: Tensor) -> Tensor:
        return forward.__wrapped__(x)

    attention.forward = forward


WRAPPERS = [hooked, compiled, closed_over, in_a_partial, kept_on_the_module, wrapped]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # the compiler looks for it itself
@pytest.mark.parametrize("ramp", [0, 2])
@pytest.mark.parametrize("wrap", WRAPPERS, ids=lambda wrap: wrap.__name__)
def test_a_forward_that_was_wrapped_while_off_opens_closes_and_opens_again(wrap: Callable[..., None], ramp: int) -> None:
    model, open_BTD = gpt(), gpt()(X_BTD)
    later = delay_attention(model, ramp=ramp)
    off_BTD = model(X_BTD)
    for block in model.h:
        wrap(block.attn)
    assert torch.equal(model(X_BTD), off_BTD)
    for _ in range(2):
        later.open()
        for _ in range(ramp):
            later.step()
        assert torch.allclose(model(X_BTD), open_BTD, atol=1e-6)
        later.close()
        assert torch.equal(model(X_BTD), off_BTD)
    later.remove()
    assert torch.allclose(model(X_BTD), open_BTD, atol=1e-6)
    again = delay_attention(model)
    assert torch.equal(model(X_BTD), off_BTD)
    again.open()
    assert torch.allclose(model(X_BTD), open_BTD, atol=1e-6)


def test_hooks_of_accelerate_that_are_taken_off_leave_the_forward_that_is_meant() -> None:
    model, open_BTD = gpt(), gpt()(X_BTD)
    later = delay_attention(model)
    off_BTD = model(X_BTD)
    for is_open in (False, True):
        hooked(model.h[0].attn)
        remove_hook_from_module(model.h[0].attn)
        assert torch.equal(model(X_BTD), open_BTD if is_open else off_BTD)
        later.open()


def test_a_forward_that_was_put_in_the_place_of_ours_is_refused_and_nothing_is_opened() -> None:
    model = gpt()
    later, optimizer = watched(model)
    model.h[1].attn.forward = types.MethodType(lambda self, x: self.c_proj(x), model.h[1].attn)
    with pytest.raises(LabError, match=r"the forward of 'h.1.attn' was replaced by .* keep the old one and call it"):
        later.open()
    assert not later.is_open
    backward(model)
    with pytest.raises(LabError, match=r"'h.1.attn.c_proj.weight' is off and has a gradient.*'h.1.attn' was replaced since"):
        optimizer.step()


# Copies


def hooks_in(model: nn.Module) -> int:
    return sum(len(module._forward_pre_hooks) for module in model.modules())


def test_a_delay_of_a_copy_leaves_nothing_behind_when_it_is_removed() -> None:
    model, open_BTD = gpt(), gpt()(X_BTD)
    later = delay_attention(model)
    copied = copy.deepcopy(model)
    with pytest.warns(DelayWarning, match="no delay knows of it"):
        assert torch.equal(copied(X_BTD), model(X_BTD))
    delay_attention(copied).remove()
    assert hooks_in(copied) == 0
    assert not any("forward" in vars(module) for module in copied.modules())
    assert torch.equal(copied(X_BTD), open_BTD)
    assert not later.is_open
    assert hooks_in(model) == 2


@pytest.mark.parametrize("together", [True, False])
def test_a_delay_and_its_model_are_copied_and_go_their_own_ways(together: bool) -> None:
    model = gpt()
    later, optimizer = watched(model, until=3)
    train(model, optimizer, 1)
    memo: dict[int, Any] = {}
    copied, twin = (
        copy.deepcopy((model, later), memo) if together else reversed([copy.deepcopy(later, memo), copy.deepcopy(model, memo)])
    )
    assert twin.is_of(copied)
    assert not set(twin.parameters()) & set(model.parameters())
    other = AdamW(copied.parameters(), lr=1e-2, weight_decay=0.1)
    twin.watch(other)
    with pytest.raises(LabError, match="is delayed already"):
        delay_attention(copied)
    train(copied, other, 2)
    assert (twin.is_open, twin.steps) == (True, 3)
    assert (later.is_open, later.steps) == (False, 1)
    twin.remove()
    assert hooks_in(copied) == 0
    train(model, optimizer, 2)
    assert later.is_open


# Names, and adapters


class Wrapped(nn.Module):
    """As DDP holds a model."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module


def test_a_state_moves_across_wrappers_and_back() -> None:
    plain = delay_attention(gpt(), until=9)
    for _ in range(3):
        plain.step()
    for wrap in (Wrapped, lambda model: nn.ModuleDict({"model": torch.compile(model, backend="eager")})):
        other = delay_attention(wrap(gpt()), modules=["*.attn"], until=9)
        assert [site.name for site in other.sites] != [site.name for site in plain.sites]
        other.load_state_dict(plain.state_dict())
        assert other.steps == 3
        delay_attention(gpt(), until=9).load_state_dict(other.state_dict())


def adapted(targets: list[str]) -> nn.Module:
    torch.manual_seed(0)
    return get_peft_model(lm_of("Llama"), LoraConfig(r=2, target_modules=targets))


TOKENS_BT = torch.randint(3, VOCABULARY, (2, 6), generator=torch.Generator().manual_seed(0))


def test_a_state_moves_to_a_model_with_adapters() -> None:
    plain = delay_attention(lm_of("Llama"), until=9)
    plain.step()
    later = delay_attention(adapted(["q_proj", "up_proj"]), until=9)
    later.load_state_dict(plain.state_dict())
    assert later.steps == 1
    plain.load_state_dict(later.state_dict())


def test_adapters_on_attention_alone_say_that_nothing_learns() -> None:
    model = adapted(["q_proj", "v_proj"])
    later = delay_attention(model, modules="self_attn", until=2)
    with torch.no_grad():
        model(TOKENS_BT)
    with pytest.raises(LabError, match="all parameters that are not frozen are in parts that are off, so nothing learns"):
        model(TOKENS_BT)
    later.open()
    model(TOKENS_BT, labels=TOKENS_BT).loss.backward()


def test_adapters_on_more_than_attention_learn_and_those_of_attention_wait() -> None:
    model = adapted(["q_proj", "v_proj", "up_proj"])
    optimizer = AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-2, weight_decay=0.1)
    later = delay_attention(model, until=2).watch(optimizer)
    for step in range(4):
        optimizer.zero_grad()
        model(TOKENS_BT, labels=TOKENS_BT).loss.backward()
        attention = {each.grad is None for name, each in model.named_parameters() if "attn" in name and "lora_B" in name}
        assert attention == {step < 2}
        optimizer.step()
    assert later.is_open
