"""Optimizers of other libraries that count for whole groups: what opens late makes first steps of the usual size."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from prodigyopt import Prodigy
from schedulefree import AdamWScheduleFree, RAdamScheduleFree, ScheduleFreeWrapper, SGDScheduleFree
from torch import Tensor, nn

from hand_written import WIDTH, Gpt
from lengthlab.errors import LabError
from lengthlab.switch import Delay, delay_attention

X_BTD = torch.randn(4, 5, WIDTH, generator=torch.Generator().manual_seed(2))
LR, UNTIL = 1e-2, 30
KINDS: dict[str, Any] = {
    "AdamW": lambda parameters: AdamWScheduleFree(parameters, lr=LR, weight_decay=0.1),
    "AdamW, one by one": lambda parameters: AdamWScheduleFree(parameters, lr=LR, weight_decay=0.1, foreach=False),
    "AdamW with warm-up": lambda parameters: AdamWScheduleFree(parameters, lr=LR, warmup_steps=3),
    "RAdam": lambda parameters: RAdamScheduleFree(parameters, lr=LR),
    "SGD": lambda parameters: SGDScheduleFree(parameters, lr=LR),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def gpt() -> Gpt:
    torch.manual_seed(0)
    return Gpt()


def train(model: nn.Module, steps: int, *optimizers: Any) -> None:
    for _ in range(steps):
        model.zero_grad()
        (model(X_BTD) - X_BTD.cumsum(1)).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()


def groups(model: nn.Module, later: Delay) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    off = list(later.parameters())
    return [each for each in model.parameters() if all(each is not other for other in off)], off


def values(parameters: Any) -> list[Tensor]:
    return [each.detach().clone() for each in parameters]


def farthest(ones: Any, others: Any) -> float:
    return max(float((one - other).abs().max()) for one, other in zip(ones, others, strict=True))


@every_kind
def test_schedule_free_what_opens_in_a_group_of_its_own_is_trained_as_by_a_fresh_optimizer(kind: str) -> None:
    make = KINDS[kind]
    mine, theirs = gpt(), gpt()
    later, other = delay_attention(mine, until=UNTIL), delay_attention(theirs)
    optimizer = make([{"params": each} for each in groups(mine, later)])
    rest, fresh = map(make, groups(theirs, other))
    for each in (optimizer, rest, fresh):
        each.train()
    later.watch(optimizer)
    train(mine, UNTIL, optimizer)
    train(theirs, UNTIL, rest)
    assert later.is_open
    other.open()
    for _ in range(5):
        train(mine, 1, optimizer)
        train(theirs, 1, rest, fresh)
        assert farthest(mine.parameters(), theirs.parameters()) == 0


@pytest.mark.parametrize("kind", ["AdamW", "AdamW, one by one"])
def test_schedule_free_the_first_step_after_the_opening_is_no_larger_than_the_rate(kind: str) -> None:
    model = gpt()
    later = delay_attention(model, until=UNTIL)
    optimizer = KINDS[kind]([{"params": each} for each in groups(model, later)])
    optimizer.train()
    later.watch(optimizer)
    train(model, UNTIL, optimizer)
    before = values(later.parameters())
    train(model, 1, optimizer)
    assert 0 < farthest(later.parameters(), before) < 1.1 * LR


@every_kind
def test_schedule_free_in_one_group_with_what_learns_is_refused_with_what_to_do(kind: str) -> None:
    model = gpt()
    optimizer = KINDS[kind](model.parameters())
    optimizer.train()
    delay_attention(model, until=UNTIL).watch(optimizer)
    with pytest.raises(LabError, match=r"counts steps for a whole group \('k'\).*list\(delay.parameters\(\)\)"):
        train(model, 1, optimizer)


@every_kind
def test_schedule_free_an_evaluation_meanwhile_leaves_what_is_off_as_it_was(kind: str) -> None:
    model = gpt()
    later = delay_attention(model, until=UNTIL)
    optimizer = KINDS[kind]([{"params": each} for each in groups(model, later)])
    later.watch(optimizer)
    before, learning = values(later.parameters()), values(groups(model, later)[0])
    for _ in range(3):
        optimizer.train()
        train(model, 3, optimizer)
        optimizer.eval()
        assert farthest(later.parameters(), before) == 0
    assert farthest(groups(model, later)[0], learning) > 0


def test_schedule_free_around_another_optimizer_is_refused() -> None:
    model = gpt()
    wrapped = ScheduleFreeWrapper(torch.optim.SGD(model.parameters(), lr=LR))
    with pytest.raises(LabError, match=r"what is watched is an optimizer, not .*ScheduleFreeWrapper"):
        delay_attention(model).watch(wrapped)


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("apart", [False, True])
def test_prodigy_leaves_alone_what_is_off_and_opens_it_with_a_step_of_its_estimate(apart: bool, corrected: bool) -> None:
    model = gpt()
    later = delay_attention(model, until=UNTIL)
    parameters: Any = [{"params": each} for each in groups(model, later)] if apart else model.parameters()
    optimizer = Prodigy(parameters, weight_decay=0.01, use_bias_correction=corrected)
    later.watch(optimizer)
    before = values(later.parameters())
    train(model, UNTIL, optimizer)
    assert later.is_open
    assert farthest(later.parameters(), before) == 0
    assert not any(each in optimizer.state for each in later.parameters())
    train(model, 1, optimizer)
    estimate = optimizer.param_groups[0]["d"]
    assert estimate > 100 * optimizer.d0  # it has found a rate
    # Without a correction, the first step of Adam is (1 - 0.9) / sqrt(1 - 0.999) = 3.2 times the rate, and decay comes on top.
    assert 0 < farthest(later.parameters(), before) < 3.3 * estimate


def test_prodigy_estimates_the_same_rate_as_without_what_is_off() -> None:
    mine, theirs = gpt(), gpt()
    later, other = delay_attention(mine, until=UNTIL), delay_attention(theirs)
    optimizer, rest = Prodigy(mine.parameters()), Prodigy(groups(theirs, other)[0])
    later.watch(optimizer)
    train(mine, UNTIL - 1, optimizer)
    train(theirs, UNTIL - 1, rest)
    assert optimizer.param_groups[0]["d"] == rest.param_groups[0]["d"]
    assert farthest(mine.parameters(), theirs.parameters()) == 0


@pytest.mark.parametrize("kind", [*KINDS, "Prodigy"])
def test_a_run_goes_on_from_its_states_as_if_nothing_had_been(kind: str) -> None:
    make = KINDS.get(kind, lambda parameters: Prodigy(parameters))
    results = []
    for interrupted in (False, True):
        model = gpt()
        later = delay_attention(model, until=4)
        optimizer = make([{"params": each} for each in groups(model, later)])
        later.watch(optimizer)
        getattr(optimizer, "train", lambda: None)()
        train(model, 2, optimizer)
        if interrupted:
            kept = copy.deepcopy((model.state_dict(), optimizer.state_dict(), later.state_dict()))
            model = gpt()
            later = delay_attention(model, until=4)
            optimizer = make([{"params": each} for each in groups(model, later)])
            for part, state in zip((model, optimizer, later.watch(optimizer)), kept, strict=True):
                part.load_state_dict(state)
        train(model, 5, optimizer)
        assert later.opened_at == 4
        results.append(values(model.parameters()))
    assert farthest(*results) == 0
