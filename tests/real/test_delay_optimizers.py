"""Optimizers of every habit: scaled losses, several of them, state that comes early, counters in the group, one replaced."""

from __future__ import annotations

import copy
import gc
import json
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import SGD, AdamW, Optimizer

from hand_written import WIDTH, Gpt
from lengthlab.errors import LabError
from lengthlab.switch import Delay, Stages, delay, delay_attention

X_BTD = torch.randn(4, 5, WIDTH, generator=torch.Generator().manual_seed(2))


def gpt() -> Gpt:
    torch.manual_seed(0)
    return Gpt()


def loss_of(model: nn.Module) -> Tensor:
    return (model(X_BTD) - X_BTD.cumsum(1)).square().mean()


def train(model: nn.Module, steps: int, *optimizers: Optimizer) -> None:
    for _ in range(steps):
        model.zero_grad()
        loss_of(model).backward()
        for optimizer in optimizers:
            optimizer.step()


def adamw(parameters: Any, **options: Any) -> AdamW:
    return AdamW(parameters, lr=1e-2, weight_decay=0.1, **options)


def rest_of(model: nn.Module, later: Delay | Stages) -> list[nn.Parameter]:
    delays = later.delays if isinstance(later, Stages) else (later,)
    off = {parameter for each in delays for parameter in each.parameters()}
    return [parameter for parameter in model.parameters() if parameter not in off]


# State


@pytest.mark.parametrize("before", [True, False])
def test_a_run_goes_on_in_whatever_order_the_states_are_loaded(before: bool) -> None:
    whole, model = gpt(), gpt()
    optimizer = adamw(whole.parameters())
    delay_attention(whole, until=2).watch(optimizer)
    train(whole, 8, optimizer)
    first = adamw(model.parameters())
    later = delay_attention(model, until=2).watch(first)
    train(model, 5, first)
    resumed, other = gpt(), None
    resumed.load_state_dict(copy.deepcopy(model.state_dict()))
    other = adamw(resumed.parameters())
    again = delay_attention(resumed, until=2)
    if before:
        other.load_state_dict(copy.deepcopy(first.state_dict()))
        again.watch(other)
    else:
        again.watch(other)
        other.load_state_dict(copy.deepcopy(first.state_dict()))
    again.load_state_dict(json.loads(json.dumps(later.state_dict())))
    train(resumed, 3, other)
    assert all(torch.equal(*pair) for pair in zip(whole.state_dict().values(), resumed.state_dict().values(), strict=True))


@pytest.mark.parametrize("late", [True, False])
def test_state_of_what_is_off_is_dropped_with_the_first_step_whenever_it_came(late: bool) -> None:
    plain, model = gpt(), gpt()
    optimizer = adamw(plain.parameters())
    train(plain, 2, optimizer)
    other = adamw(model.parameters())
    if not late:
        other.load_state_dict(optimizer.state_dict())
    later = delay_attention(model, until=3).watch(other)
    train(model, int(late), other)
    if late:
        other.load_state_dict(optimizer.state_dict())
    assert all(parameter in other.state for parameter in later.parameters())
    train(model, 1, other)
    assert not any(parameter in other.state for parameter in later.parameters())
    assert all(parameter in other.state for parameter in rest_of(model, later))


# Scaled losses


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("unscale", [True, False])
def test_a_step_that_is_skipped_is_not_counted(fused: bool, unscale: bool) -> None:
    model = gpt()
    optimizer, scaler = adamw(model.parameters(), fused=fused), GradScaler("cpu", init_scale=8.0)
    later = delay_attention(model, until=3).watch(optimizer)
    for factor, steps in ((1.0, 1), (torch.inf, 1), (torch.nan, 1), (1.0, 2), (1.0, 3)):
        optimizer.zero_grad()
        scaler.scale(loss_of(model) * factor).backward()
        if unscale:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        assert later.steps == steps
    assert later.is_open


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("unscale", [True, False])
def test_an_optimizer_of_attention_alone_works_with_a_scaled_loss(fused: bool, unscale: bool, staged: bool) -> None:
    model, scaler = gpt(), GradScaler("cpu", init_scale=8.0)
    stages = [delay(model, f"h.{block}.attn", until=2 + block) for block in range(2)]
    later = Stages(*stages) if staged else stages[0]
    if not staged:
        stages[1].remove()
        stages[1].is_open = True
    attention = [parameter for each in stages[: 1 + staged] for parameter in each.parameters()]
    others = adamw(rest_of(model, later), fused=fused)
    alone = adamw(attention, fused=fused)
    had = hasattr(alone, "_step_supports_amp_scaling")
    later.watch(others).watch(alone)
    still = [parameter.detach().clone() for parameter in attention]
    for step in range(5):
        moved = [not torch.equal(*pair) for pair in zip(still, attention, strict=True)]
        assert any(moved) == (step > 2)
        model.zero_grad()
        scaler.scale(loss_of(model)).backward()
        for optimizer in (others, alone):
            if unscale:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
        scaler.update()
    assert later.is_open
    later.remove()
    assert hasattr(alone, "_step_supports_amp_scaling") == had


def test_a_removed_delay_leaves_no_word_to_the_scaler() -> None:
    model = gpt()
    later = delay_attention(model)
    alone = adamw(later.parameters())
    before = set(vars(alone))
    later.watch(alone)
    later.remove()
    assert set(vars(alone)) == before


# Counters in the group


class ScheduleFree(Optimizer):
    """AdamW as in the package schedulefree: count, sum of weights and largest rate are the group's."""

    def __init__(self, params: Any, lr: float = 0.01, weight_decay: float = 0.1, warmup_steps: int = 0) -> None:
        defaults = {"lr": lr, "betas": (0.9, 0.999), "eps": 1e-8, "r": 0.0, "k": 0, "warmup_steps": warmup_steps}
        more = {"weight_sum": 0.0, "lr_max": -1.0, "scheduled_lr": 0.0, "weight_lr_power": 2.0, "weight_decay": weight_decay}
        super().__init__(params, defaults | more)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            k, (beta1, beta2) = group["k"], group["betas"]
            warmup = group["warmup_steps"]
            group["scheduled_lr"] = lr = group["lr"] * ((k + 1) / warmup if k < warmup else 1.0)
            group["lr_max"] = max(lr, group["lr_max"])
            weight = (k + 1) ** group["r"] * group["lr_max"] ** group["weight_lr_power"]
            group["weight_sum"] += weight
            share = weight / group["weight_sum"]
            for y in [each for each in group["params"] if each.grad is not None]:
                state = self.state[y]
                if "z" not in state:
                    state["z"], state["exp_avg_sq"] = y.clone(), torch.zeros_like(y)
                state["exp_avg_sq"].mul_(beta2).addcmul_(y.grad, y.grad, value=1 - beta2)
                denominator = (state["exp_avg_sq"] / (1 - beta2 ** (k + 1))).sqrt_().add_(group["eps"])
                direction = (y.grad / denominator).add_(y, alpha=group["weight_decay"])
                y.lerp_(end=state["z"], weight=share)
                y.add_(direction, alpha=lr * (beta1 * (1 - share) - 1))
                state["z"].sub_(direction, alpha=lr)
            group["k"] = k + 1


class LateCounter(SGD):
    """As apex's: the count is in the group from the first step on."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        super().step(closure)
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1


def groups_of(model: nn.Module, later: Delay) -> list[dict[str, Any]]:
    return [{"params": rest_of(model, later)}, {"params": list(later.parameters())}]


def test_what_opens_in_a_group_of_its_own_counts_from_its_first_step() -> None:
    mine, theirs = gpt(), gpt()
    later = delay_attention(mine, until=30)
    optimizer = ScheduleFree(groups_of(mine, later), warmup_steps=2)
    later.watch(optimizer)
    train(mine, 30, optimizer)
    assert later.is_open
    assert [group["k"] for group in optimizer.param_groups] == [30, 0]
    other = delay_attention(theirs)
    rest = ScheduleFree(rest_of(theirs, other), warmup_steps=2)
    train(theirs, 30, rest)
    other.open()
    fresh = ScheduleFree(other.parameters(), warmup_steps=2)
    before = mine.h[0].attn.c_attn.weight.detach().clone()
    for _ in range(3):
        train(mine, 1, optimizer)
        train(theirs, 1, rest, fresh)
        assert all(torch.equal(*pair) for pair in zip(mine.parameters(), theirs.parameters(), strict=True))
    assert (mine.h[0].attn.c_attn.weight - before).abs().max() < 4 * 1e-2


@pytest.mark.parametrize("kind", [ScheduleFree, LateCounter])
def test_a_count_that_others_share_is_refused_with_what_to_do(kind: Any) -> None:
    model = gpt()
    optimizer = kind(model.parameters(), lr=1e-2)
    delay_attention(model, until=30).watch(optimizer)
    with pytest.raises(LabError, match=r"counts steps for a whole group \('(k|step)'\).*list\(delay.parameters\(\)\)"):
        train(model, 1, optimizer)


def test_a_count_that_begins_with_the_first_step_begins_when_it_opens() -> None:
    model = gpt()
    later = delay_attention(model, until=3)
    optimizer = LateCounter(groups_of(model, later), lr=1e-2)
    later.watch(optimizer)
    train(model, 5, optimizer)
    assert [group["step"] for group in optimizer.param_groups] == [5, 2]


def test_closed_once_more_it_goes_on_with_the_count_and_averages_that_it_had() -> None:
    model = gpt()
    later = delay_attention(model, until=2)
    optimizer = ScheduleFree(groups_of(model, later))
    later.watch(optimizer)
    train(model, 5, optimizer)
    later.close()
    later.until = 9
    kept = copy.deepcopy(optimizer.state[model.h[0].attn.c_attn.weight])
    train(model, 3, optimizer)
    assert optimizer.param_groups[1]["k"] == 3
    state = optimizer.state[model.h[0].attn.c_attn.weight]
    assert all(torch.equal(state[name], kept[name]) for name in kept)


def test_a_rate_that_the_average_would_not_see_is_refused() -> None:
    model = gpt()
    later = delay_attention(model, until=1, rate=0.5)
    optimizer = ScheduleFree(groups_of(model, later))
    later.watch(optimizer)
    with pytest.raises(LabError, match="rate and warm_up do not reach the copy of the weights that ScheduleFree keeps"):
        train(model, 2, optimizer)


# Several, replaced, and made of others


def test_a_step_that_calls_that_of_its_base_class_is_one_step() -> None:
    model = gpt()
    SGD(model.parameters())  # from now on, torch calls hooks for the step of the base class as well
    later = delay_attention(model, until=9, rate=0.5)
    optimizer = LateCounter(groups_of(model, later), lr=1e-2)
    later.watch(optimizer)
    train(model, 3, optimizer)
    assert later.steps == 3
    with pytest.raises(RuntimeError, match="half-way"):
        optimizer.step(lambda: fail())  # type: ignore[arg-type]
    train(model, 1, optimizer)
    assert later.steps == 4


def fail() -> float:
    raise RuntimeError("half-way")


@pytest.mark.parametrize("how", ["gone", "let go", "kept"])
def test_an_optimizer_that_replaces_another_counts_on(how: str) -> None:
    model = gpt()
    first = adamw(model.parameters())
    later = delay_attention(model, until=4).watch(first)
    train(model, 2, first)
    if how == "let go":
        later.unwatch(first)
    second = SGD(model.parameters(), lr=1e-2)
    later.watch(second)
    if how == "gone":
        del first
        gc.collect()
    train(model, 2, second)
    assert later.is_open
    assert later.opened_at == 4


def test_one_of_other_parameters_counts_when_the_first_is_gone_and_not_before() -> None:
    model = gpt()
    later = delay_attention(model, until=4)
    half = len(rest := rest_of(model, later)) // 2
    first, second = SGD(rest[:half], lr=1e-2), SGD(rest[half:], lr=1e-2)
    later.watch(first).watch(second)
    train(model, 1, first, second)
    assert later.steps == 1
    train(model, 1, second)
    assert later.steps == 1
    del first
    gc.collect()
    train(model, 3, second)
    assert later.is_open
