"""Attention that is on by chance: drawn once a step, the same for all, and still when it is off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from lengthlab.errors import LabError
from lengthlab.switch import ChanceDelay, Stages, by_chance, delay
from lengthlab.switch.delay import DelayWarning

STEPS = 24


def layer() -> nn.Module:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)


def attention_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters() if "self_attn" in name}


def same(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, first: int, last: int, set_to_none: bool = True) -> None:
    for step in range(first, last):
        optimizer.zero_grad(set_to_none=set_to_none)
        x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(step))
        model(x).square().mean().backward()
        optimizer.step()


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("fused", [True, False])
def test_in_a_step_in_which_attention_is_off_nothing_of_it_moves(fused: bool, set_to_none: bool) -> None:
    model = layer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1, fused=fused)
    sometimes = by_chance(model, 0.5).watch(optimizer)
    drawn = []
    for step in range(STEPS):
        drawn.append(sometimes.is_open)
        before, clocks = attention_of(model), [float(kept["step"]) for kept in optimizer.state.values()]
        train(model, optimizer, step, step + 1, set_to_none)
        assert same(before, attention_of(model)) != drawn[-1]
        assert clocks != [float(kept["step"]) for kept in optimizer.state.values()]  # the rest learns at every step
    assert 5 < sum(drawn) < STEPS - 5
    attention = next(parameter for name, parameter in model.named_parameters() if "self_attn" in name)
    assert float(optimizer.state[attention]["step"]) == sum(drawn)  # and what the optimizer knew was not forgotten


def test_one_draw_holds_for_all_batches_of_a_step() -> None:
    model = layer()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sometimes = by_chance(model, 0.5, seed=1).watch(optimizer)
    x = torch.randn(2, 5, 8)
    for _ in range(STEPS):
        seen = set()
        for _ in range(3):
            model.zero_grad()
            model(x).sum().backward()
            seen.add(model.get_submodule("self_attn").get_parameter("in_proj_weight").grad is not None)
        assert seen == {sometimes.is_open}
        optimizer.step()


def test_the_probability_follows_its_course_and_ends_in_open() -> None:
    sometimes = by_chance(layer(), [(100, 0.2), (1_100, 0.8), (2_100, 1.0)], until=2_200)
    drawn = []
    for _ in range(2_200):
        drawn.append(sometimes.is_open)
        sometimes.step()
    assert not any(drawn[:100])
    assert 150 < sum(drawn[100:1_100]) < 250
    assert 750 < sum(drawn[1_100:2_100]) < 850
    assert all(drawn[2_100:])
    assert sometimes.is_settled
    assert sometimes.opened_at == 2_200


def test_draws_follow_from_seed_and_step_alone() -> None:
    def drawn(seed: int) -> list[bool]:
        sometimes = by_chance(layer(), 0.5, seed=seed)
        torch.manual_seed(seed + 5)
        return [sometimes.go_to(step) or sometimes.is_open for step in range(64)]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


def test_in_evaluation_attention_is_on_unless_it_has_not_begun() -> None:
    model, plain, closed = layer().eval(), layer().eval(), layer().eval()
    sometimes = by_chance(model, [(1, 1e-9)])
    delay(closed, None)
    x = torch.randn(2, 5, 8)
    with torch.no_grad():
        assert torch.equal(model(x), closed(x))
        sometimes.step()
        assert not sometimes.is_open
        torch.testing.assert_close(model(x), plain(x))
        torch.testing.assert_close(model.train()(x), closed.train()(x))


def test_a_resumed_training_goes_on_bit_for_bit() -> None:
    def made() -> tuple[nn.Module, torch.optim.Optimizer, ChanceDelay]:
        model = layer()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        sometimes = by_chance(model, [(0, 0.4), (15, 0.7)], until=20, seed=2)
        sometimes.watch(optimizer)
        return model, optimizer, sometimes

    whole, optimizer, _ = made()
    train(whole, optimizer, 0, STEPS)
    for stop in (9, 16, 21):
        first, optimizer, sometimes = made()
        train(first, optimizer, 0, stop)
        kept = first.state_dict(), optimizer.state_dict(), json.loads(json.dumps(sometimes.state_dict()))
        second, optimizer, sometimes = made()
        second.load_state_dict(kept[0])
        optimizer.load_state_dict(kept[1])
        sometimes.load_state_dict(kept[2])
        train(second, optimizer, stop, STEPS)
        assert same(whole.state_dict(), second.state_dict()), stop


def test_it_opens_for_good_when_a_metric_says_so_even_in_a_step_in_which_it_is_on() -> None:
    sometimes = by_chance(layer(), 1.0, until=lambda metrics: metrics["accuracy"] > 0.9)
    assert sometimes.is_open
    sometimes.observe({"accuracy": 0.5})
    assert not sometimes.is_settled
    sometimes.observe({"accuracy": 0.95})
    assert sometimes.is_settled


def test_in_stages_it_waits_and_is_waited_for() -> None:
    model = nn.ModuleDict({"lower": nn.Linear(2, 2), "middle": nn.Linear(2, 2), "upper": nn.Linear(2, 2)})
    lower, upper = delay(model, "lower", until=2), delay(model, "upper", until=6)
    middle = by_chance(model, 1.0, until=8, modules=["middle"], instead="zeros")
    with pytest.raises(LabError, match="one after another"):
        Stages(lower, middle, upper)
    upper.until = 8
    stages = Stages(lower, middle, upper)
    seen = []
    for _ in range(9):
        seen.append((lower.is_open, middle.is_open, upper.is_open))
        stages.step()
    assert seen == [(False, False, False)] * 2 + [(True, True, False)] * 6 + [(True, True, True)]


def test_a_compiled_model_is_compiled_twice_and_no_more() -> None:
    model = layer()
    compiles = []

    def count(graph: Any, inputs: Any) -> Any:
        compiles.append(1)
        return graph

    sometimes = by_chance(model, 0.5)
    compiled = torch.compile(model, backend=count)
    x = torch.randn(2, 5, 8)
    for _ in range(12):
        torch.testing.assert_close(compiled(x), model(x))
        sometimes.step()
    assert len(compiles) == 2


def test_removed_it_leaves_the_model_as_it_was() -> None:
    model = layer()
    by_chance(model, 0.5).remove()
    assert "forward" not in vars(model.get_submodule("self_attn"))
    by_chance(model, 0.5).open()
    assert "forward" not in vars(model.get_submodule("self_attn"))


def test_another_probability_than_that_of_the_checkpoint_is_said() -> None:
    kept = by_chance(layer(), 0.5).state_dict()
    with pytest.warns(DelayWarning, match="goes on with"):
        by_chance(layer(), 0.25).load_state_dict(kept)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"p": 1.5}, "p must be from 0 to 1, not 1.5"),
        ({"p": "often"}, "p must be a number, not 'often'"),
        ({"p": True}, "p must be a number, not True"),
        ({"p": [(10, 0.5), (5, 1.0)]}, "the steps of p go up from pair to pair, not [10, 5]"),
        ({"p": [(0.5, 0.5)]}, "a step of p must be a whole number, not 0.5"),
        ({"p": 0.5, "seed": 0.5}, "seed must be a whole number, not 0.5"),
        ({"p": 0.5, "rate": 0.5}, "rate go with an opening that happens once"),
    ],
)
def test_what_makes_no_chance_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(LabError) as caught:
        by_chance(layer(), **options)
    assert told in str(caught.value)


def _rank(rank: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    torch.manual_seed(100 + rank)  # what a process draws for itself must not matter
    model = DistributedDataParallel(layer(), find_unused_parameters=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    sometimes = by_chance(model, 0.5).watch(optimizer)
    drawn = []
    for _ in range(8):
        drawn.append(sometimes.is_open)
        before = attention_of(model)
        optimizer.zero_grad()
        model(torch.randn(2, 5, 8)).square().mean().backward()
        optimizer.step()
        assert same(before, attention_of(model)) != drawn[-1]
    Path(folder, f"{rank}.json").write_text(json.dumps(drawn))
    torch.save(model.module.state_dict(), Path(folder, f"{rank}.pt"))
    dist.destroy_process_group()


def test_two_processes_draw_the_same_and_stay_the_same(tmp_path: Path) -> None:
    mp.spawn(_rank, args=(str(tmp_path),), nprocs=2)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert first == second
    assert len(set(first)) == 2
    assert same(torch.load(tmp_path / "0.pt"), torch.load(tmp_path / "1.pt"))
