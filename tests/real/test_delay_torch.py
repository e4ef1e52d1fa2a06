"""The switch with all that a training loop does: accumulation, clipping, AMP, checkpointing, compilation, tied weights."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn.utils import clip_grad_norm_
from torch.optim import SGD, Adam, AdamW, Optimizer

from hand_written import WIDTH, Attend, Attention, Block, CausalSelfAttention, FlaCache, Gpt, Hybrid
from lengthlab.errors import LabError
from lengthlab.switch import Delay, DelayWarning, Stages, delay, delay_attention

X_BTD = torch.randn(4, 5, WIDTH, generator=torch.Generator().manual_seed(2))
OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "adam": lambda parameters: Adam(parameters, lr=1e-2),
    "adamw": lambda parameters: AdamW(parameters, lr=1e-2, weight_decay=0.1),
    "sgd": lambda parameters: SGD(parameters, lr=1e-2, momentum=0.9, weight_decay=0.1, nesterov=True),
}
every_optimizer = pytest.mark.parametrize("kind", OPTIMIZERS)


def gpt(**options: Any) -> Gpt:
    torch.manual_seed(0)
    return Gpt(**options)


def exact() -> Gpt:
    """A key's bias has no gradient but rounding, of which Adam makes whole steps in single precision."""
    return gpt().double()


def loss_of(model: nn.Module, x_BTD: Tensor = X_BTD) -> Tensor:
    x_BTD = x_BTD.to(next(model.parameters()))
    return (model(x_BTD) - x_BTD.cumsum(1)).square().mean()


def train(model: nn.Module, optimizer: Optimizer, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()


def copies(module: nn.Module) -> list[Tensor]:
    return [value.detach().clone() for value in module.state_dict().values()]


def same(ones: list[Tensor], others: list[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(ones, others, strict=True))


def close(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.allclose(*pair, atol=1e-9) for pair in zip(copies(one), copies(other), strict=True))


def mlps_alone(model: Gpt, x_BTD: Tensor) -> Tensor:
    x_BTD = model.wte(x_BTD)
    for block in model.h:
        x_BTD = x_BTD + block.mlp(block.ln_2(x_BTD))
    return model.ln_f(x_BTD)


# Training


@every_optimizer
def test_micro_batches_that_make_one_step_count_once_and_are_the_whole_batch(kind: str) -> None:
    whole, parts = exact(), exact()
    optimizer = OPTIMIZERS[kind](whole.parameters())
    delay_attention(whole, until=2).watch(optimizer)
    train(whole, optimizer, 4)
    optimizer = OPTIMIZERS[kind](parts.parameters())
    later, still = delay_attention(parts, until=2).watch(optimizer), copies(parts.h[0].attn)
    for step in range(4):
        assert later.is_open == (step >= 2)
        assert same(still, copies(parts.h[0].attn)) == (step <= 2)
        optimizer.zero_grad()
        for x_BTD in X_BTD.chunk(2):
            (loss_of(parts, x_BTD) / 2).backward()
        optimizer.step()
    assert close(whole, parts)


def test_the_norm_of_the_gradients_is_that_of_what_is_on() -> None:
    model = gpt()
    delay_attention(model)
    loss_of(model).backward()
    grads = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    wanted = torch.stack([grad.norm() for grad in grads]).norm()
    assert torch.allclose(clip_grad_norm_(model.parameters(), 1e-3), wanted)
    assert torch.stack([grad.norm() for grad in grads]).norm() <= 1.01e-3


def test_in_lower_precision_a_closed_part_stands_still_and_an_open_one_learns() -> None:
    model = gpt()
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    later, still = delay_attention(model, until=2, ramp=2).watch(optimizer), copies(model.h[0].attn)
    for step in range(6):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            if not later.is_open:
                assert torch.equal(model(X_BTD), mlps_alone(model, X_BTD))
            loss = loss_of(model)
        assert same(still, copies(model.h[0].attn)) == (step < 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert later.is_open


def test_a_step_that_the_scaler_of_the_loss_skips_is_not_counted() -> None:
    model = gpt()
    optimizer, scaler = OPTIMIZERS["adam"](model.parameters()), torch.amp.GradScaler("cpu", init_scale=8.0)
    later = delay_attention(model, until=3).watch(optimizer)
    for factor in (1.0, torch.inf, 1.0):
        optimizer.zero_grad()
        scaler.scale(loss_of(model) * factor).backward()
        scaler.step(optimizer)
        scaler.update()
    assert later.steps == 2
    assert not later.is_open


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_blocks_have_the_gradients_of_others(reentrant: bool) -> None:
    plain, recomputed = gpt(), gpt(reentrant=reentrant)
    both = [delay_attention(model) for model in (plain, recomputed)]
    for is_open in (False, True):
        for model in (plain, recomputed):
            model.zero_grad()
            loss_of(model).backward()
        for one, other in zip(plain.parameters(), recomputed.parameters(), strict=True):
            assert (one.grad is None) == (other.grad is None)
            assert one.grad is None or torch.equal(one.grad, other.grad)
        assert all((parameter.grad is not None) == is_open for parameter in both[1].parameters())
        for each in both:
            each.open()


@pytest.fixture
def fresh_compiler() -> None:
    torch._dynamo.reset()


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("ramp", [0, 4])
@pytest.mark.parametrize("before", [True, False])
def test_compiled_code_is_compiled_once_more_when_it_opens(before: bool, ramp: int) -> None:
    mine, theirs, counter = gpt(), gpt(), CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(theirs, backend=counter)
    optimizers = [OPTIMIZERS["adamw"](model.parameters()) for model in (mine, theirs)]
    delay_attention(mine, until=2, ramp=ramp).watch(optimizers[0])
    later = delay_attention(theirs if before else compiled, until=2, ramp=ramp).watch(optimizers[1])
    assert [site.name for site in later.sites] == ["h.0.attn", "h.1.attn"]
    graphs = []
    for _ in range(9):
        train(mine, optimizers[0], 1)
        train(compiled, optimizers[1], 1)
        assert torch.allclose(compiled(X_BTD), mine(X_BTD), atol=1e-5)
        graphs.append(counter.frame_count)
    # After the second step it opens; where there is a ramp, it ends four steps later.
    assert graphs == ([1, *[2] * 8] if ramp == 0 else [1, *[2] * 4, *[3] * 4])


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_compiler_that_people_use_gives_the_same_numbers() -> None:
    model = gpt(blocks=1)
    compiled = torch.compile(model)
    later = delay_attention(model)
    with torch.no_grad():
        assert torch.allclose(compiled(X_BTD), mlps_alone(model, X_BTD), atol=1e-5)
        later.open()
        assert torch.allclose(compiled(X_BTD), model(X_BTD), atol=1e-5)


# Opening gently


def rates(model: nn.Module, later: Delay) -> list[dict[str, Any]]:
    """What is delayed in a group of its own."""
    slow = set(later.parameters())
    return [
        {"params": [parameter for parameter in model.parameters() if parameter not in slow]},
        {"params": list(slow)},
    ]


@every_optimizer
def test_rate_and_warm_up_are_another_learning_rate(kind: str) -> None:
    mine, theirs = exact(), exact()
    optimizer = OPTIMIZERS[kind](mine.parameters())
    delay_attention(mine, until=2, rate=0.3, warm_up=3).watch(optimizer)
    train(mine, optimizer, 8)
    later = delay_attention(theirs)
    other = OPTIMIZERS[kind](rates(theirs, later))
    train(theirs, other, 2)
    later.open()
    for share in (0.1, 0.2, 0.3, 0.3, 0.3, 0.3):
        other.param_groups[1]["lr"] = 1e-2 * share
        train(theirs, other, 1)
    assert close(mine, theirs)


def test_a_step_that_computes_the_gradients_itself_is_scaled_too() -> None:
    plain, closure = gpt(), gpt()
    optimizer = OPTIMIZERS["adam"](plain.parameters())
    delay_attention(plain, until=2, rate=0.3, warm_up=3).watch(optimizer)
    train(plain, optimizer, 6)
    optimizer = OPTIMIZERS["adam"](closure.parameters())
    delay_attention(closure, until=2, rate=0.3, warm_up=3).watch(optimizer)

    def compute() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(closure)
        loss.backward()
        return loss

    for _ in range(6):
        optimizer.step(compute)
    assert same(copies(plain), copies(closure))


def test_two_optimizers_are_scaled_and_the_first_one_counts() -> None:
    model = gpt()
    later = delay_attention(model, until=2, rate=0.25)
    first, second = (SGD(group["params"], lr=1.0) for group in rates(model, later))
    later.watch(first).watch(second)
    for step in range(3):
        model.zero_grad()
        loss_of(model).backward()
        before, grads = copies(model.h[0].attn.c_proj), [each.grad for each in model.h[0].attn.c_proj.parameters()]
        second.step()
        first.step()
        assert later.steps == step + 1
    wanted = [value - 0.25 * grad for value, grad in zip(before, grads, strict=True)]
    assert all(torch.allclose(*pair) for pair in zip(wanted, copies(model.h[0].attn.c_proj), strict=True))


def test_the_contribution_grows_step_by_step() -> None:
    model = gpt(blocks=1)
    later = delay_attention(model, until=1, ramp=4)
    off_BTD, inner_BTD = loss_of(model), model.h[0].ln_1(model.wte(X_BTD))
    assert torch.equal(model.h[0].attn(inner_BTD), torch.zeros_like(inner_BTD))
    on_BTD = CausalSelfAttention.forward(model.h[0].attn, inner_BTD)
    for weight in (0.0, 0.25, 0.5, 0.75, 1.0, 1.0):
        later.step()
        assert torch.allclose(model.h[0].attn(inner_BTD), weight * on_BTD, atol=1e-6)
        assert torch.equal(loss_of(model), off_BTD) == (weight == 0.0)
    assert "forward" not in vars(model.h[0].attn)


def test_an_evaluation_without_gradients_may_open_it() -> None:
    model = gpt()
    optimizer = OPTIMIZERS["adam"](model.parameters())
    later = delay_attention(model, until=lambda metrics: metrics["accuracy"] > 0.9, ramp=3, rate=0.5).watch(optimizer)
    train(model, optimizer, 1)
    with torch.inference_mode():
        model(X_BTD)
        later.observe({"accuracy": 0.5})
        assert not later.is_open
        later.observe({"accuracy": torch.tensor(0.95)})
    train(model, optimizer, 5)
    assert later.opened_at == 1


def test_a_metric_that_is_missing_is_told_of_once() -> None:
    later = delay_attention(gpt(), until=lambda metrics: metrics["accuracy"] > 0.9)
    with pytest.warns(DelayWarning, match="until= asks for 'accuracy', and there is: loss"):
        later.observe({"loss": 1.0})
    later.observe({"loss": 1.0})
    assert not later.is_open


# Tied weights


@every_optimizer
def test_a_parameter_that_is_shared_goes_on_learning_where_it_is_on(kind: str) -> None:
    model = gpt()
    model.h[0].attn.c_proj.weight = model.h[0].mlp.weight
    optimizer = OPTIMIZERS[kind](model.parameters())
    later, untied = delay_attention(model, until=3).watch(optimizer), gpt()
    assert [site.shared for site in later.sites] == [("c_proj.weight",), ()]
    assert "shared with other parts, where they learn on: c_proj.weight" in repr(later)
    assert model.h[0].mlp.weight not in set(later.parameters())
    still, moving = copies(model.h[0].attn.c_attn), model.h[0].mlp.weight.detach().clone()
    train(model, optimizer, 3)
    assert same(still, copies(model.h[0].attn.c_attn))
    assert model.h[0].attn.c_proj.weight is model.h[0].mlp.weight
    assert not torch.equal(moving, model.h[0].mlp.weight)
    assert later.is_open
    # Off, the model is the untied one.
    other = OPTIMIZERS[kind](untied.parameters())
    delay_attention(untied)
    train(untied, other, 3)
    assert torch.equal(untied.h[0].mlp.weight, model.h[0].mlp.weight)


def test_a_parameter_that_two_delayed_parts_share_is_theirs_once() -> None:
    model = gpt()
    model.h[0].attn.c_proj.weight = model.h[1].attn.c_proj.weight
    optimizer = SGD(model.parameters(), lr=1.0)
    later = delay_attention(model, rate=0.5).watch(optimizer)
    assert len(list(later.parameters())) == 7
    later.open()
    before = model.h[0].attn.c_proj.weight.detach().clone()
    train(model, optimizer, 1)
    assert torch.allclose(model.h[0].attn.c_proj.weight, before - 0.5 * model.h[0].attn.c_proj.weight.grad)


# Stages


def test_stages_open_one_after_another_and_each_stands_still_until_then() -> None:
    model = gpt()
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    stages = Stages(delay(model, "h.0.attn", until=1), delay(model, "h.1.attn", until=3)).watch(optimizer)
    starts = [copies(block.attn) for block in model.h]
    for step in range(1, 6):
        train(model, optimizer, 1)
        moved = [not same(start, copies(block.attn)) for start, block in zip(starts, model.h, strict=True)]
        assert moved == [step > 1, step > 3]
        assert [each.is_open for each in stages.delays] == [step >= 1, step >= 3]
    assert stages.is_open
    assert [site.name for site in stages.sites] == ["h.0.attn", "h.1.attn"]
    stages.close()
    assert not any(each.is_open for each in stages.delays)
    stages.open()
    assert [each.is_open for each in stages.delays] == [True, False]
    stages.remove()
    assert not optimizer._optimizer_step_pre_hooks


def test_a_stage_waits_for_the_one_before_it() -> None:
    model = gpt()
    stages = Stages(delay(model, "h.0.attn", until=lambda m: m["accuracy"] > 0.9), delay(model, "h.1.attn", until=2))
    for _ in range(3):
        stages.step()
    assert [each.is_open for each in stages.delays] == [False, False]
    kept = json.loads(json.dumps(stages.state_dict()))
    stages.observe({"accuracy": 1.0})
    assert [each.is_open for each in stages.delays] == [True, False]
    stages.load_state_dict(kept)
    assert [each.is_open for each in stages.delays] == [False, False]
    stages.observe({"accuracy": 1.0})
    stages.load_state_dict(json.loads(json.dumps(stages.state_dict())))  # saved between the two openings
    stages.step()
    assert [each.opened_at for each in stages.delays] == [3, 3]


# State


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7])
def test_a_run_goes_on_from_its_state_as_if_nothing_had_been(steps: int) -> None:
    def begin() -> tuple[Gpt, Optimizer, Delay]:
        model = gpt()
        optimizer = OPTIMIZERS["adam"](model.parameters())
        return model, optimizer, delay_attention(model, until=2, rate=0.5, warm_up=3, ramp=3).watch(optimizer)

    whole, optimizer, _ = begin()
    train(whole, optimizer, 9)
    model, optimizer, later = begin()
    train(model, optimizer, steps)
    kept = json.loads(json.dumps(later.state_dict()))
    resumed, other, again = begin()
    resumed.load_state_dict(copy.deepcopy(model.state_dict()))
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    again.load_state_dict(kept)
    assert again.state_dict() == kept
    assert repr(again) == repr(later)
    train(resumed, other, 9 - steps)
    assert same(copies(whole), copies(resumed))


def test_a_state_of_a_compiled_model_is_one_of_the_model() -> None:
    model = gpt()
    later = delay_attention(torch.compile(model, backend="eager"), until=2)
    later.step()
    delay_attention(gpt(), until=2).load_state_dict(later.state_dict())


def test_a_state_of_another_schedule_or_model_is_told_of() -> None:
    later = delay_attention(gpt(), until=9)
    for _ in range(5):
        later.step()
    with pytest.warns(DelayWarning, match="this run was begun with until=9 and goes on with until=8"):
        delay_attention(gpt(), until=8).load_state_dict(later.state_dict())
    with pytest.warns(DelayWarning), pytest.raises(LabError, match="until=5 is in the past: the checkpoint is closed after 5"):
        delay_attention(gpt(), until=5).load_state_dict(later.state_dict())
    with pytest.raises(LabError, match=r"other parts are delayed: h.1.attn is not among those of this one"):
        delay_attention(gpt(blocks=1), until=9).load_state_dict(later.state_dict())
    with pytest.raises(LabError, match=r"other parts are delayed: h.2.attn is not among its"):
        delay_attention(gpt(blocks=3), until=9).load_state_dict(later.state_dict())
    with pytest.raises(LabError, match="the checkpoint has 1 stages, and there are 2"):
        Stages(delay(model := gpt(), "h.0", until=1), delay(model, "h.1", until=2)).load_state_dict(later.state_dict())


def anatomy(model: nn.Module, optimizer: Optimizer) -> list[dict[str, Any]]:
    """All that is in the modules and in the hooks of the optimizer."""
    inside = [{name: copy.copy(value) for name, value in vars(module).items()} for module in model.modules()]
    hooks = {"before": dict(optimizer._optimizer_step_pre_hooks), "after": dict(optimizer._optimizer_step_post_hooks)}
    return [*inside, hooks]


@pytest.mark.parametrize("steps", [0, 1, 3, 6])
def test_removed_it_leaves_the_model_and_the_optimizer_as_they_were(steps: int) -> None:
    model = gpt()
    optimizer = OPTIMIZERS["adam"](model.parameters())
    before = anatomy(model, optimizer)
    later = delay_attention(model, until=2, rate=0.5, ramp=3).watch(optimizer)
    train(model, optimizer, steps)
    later.remove()
    assert anatomy(model, optimizer) == before
    delay_attention(model)


def test_an_optimizer_can_be_let_go() -> None:
    optimizer = OPTIMIZERS["adam"]((model := gpt()).parameters())
    later = delay_attention(model).watch(optimizer)
    later.unwatch(optimizer)
    later.unwatch(optimizer)
    train(model, optimizer, 1)
    assert later.steps == 0
    later.watch(optimizer, counts=False)
    train(model, optimizer, 1)
    assert later.steps == 0


# What is delayed


def names(later: Delay) -> list[str]:
    return [site.name for site in later.sites]


def test_parts_are_named_by_pattern_by_object_and_by_predicate() -> None:
    model = gpt()
    assert names(delay(gpt(), "h.*.attn")) == ["h.0.attn", "h.1.attn"]
    assert names(delay(model, model.h[0].mlp)) == ["h.0.mlp"]
    assert set(names(delay(model, ["h.0.attn", model.h[1]]))) == {"h.0.attn", "h.1"}
    norms = delay(gpt(), lambda name, module: isinstance(module, nn.LayerNorm))
    assert set(names(norms)) == {"h.0.ln_1", "h.0.ln_2", "h.1.ln_1", "h.1.ln_2", "ln_f"}
    assert names(delay_attention(gpt(), modules=["mlp"])) == ["h.0.mlp", "h.1.mlp"]


def test_a_whole_residual_block_gives_back_what_comes_in() -> None:
    model = gpt()
    later = delay(model, "h.*")
    assert [str(site.stand_in) for site in later.sites] == ["its input", "its input"]
    assert torch.equal(model(X_BTD), model.ln_f(model.wte(X_BTD)))


def twice(x: Tensor) -> Tensor:
    return 2 * x


@pytest.mark.parametrize(("instead", "wanted"), [("zeros", torch.zeros_like), ("input", lambda x: x), (twice, twice)])
def test_what_is_given_instead_can_be_said(instead: Any, wanted: Callable[[Tensor], Tensor]) -> None:
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH))
    later = delay(model, "1", instead=instead, ramp=2)
    assert torch.equal(model(X_BTD), wanted(model[0](X_BTD)))
    assert {"zeros": "zeros", "input": "its input", twice: "twice"}[instead] in repr(later)
    copied = copy.deepcopy(model)
    delay(copied, "1", instead=instead).open()
    inner_BTD = model[0](X_BTD)
    assert torch.equal(copied(X_BTD), nn.Linear.forward(copied[1], inner_BTD))
    later.open()
    assert torch.equal(model(X_BTD), wanted(inner_BTD))
    later.step()
    mixed_BTD = (wanted(inner_BTD) + nn.Linear.forward(model[1], inner_BTD)) / 2
    assert torch.allclose(model(X_BTD), mixed_BTD, atol=1e-6)


def test_in_nanogpt_attention_is_found() -> None:
    model = gpt()
    later = delay_attention(model)
    assert names(later) == ["h.0.attn", "h.1.attn"]
    assert torch.equal(model(X_BTD), mlps_alone(model, X_BTD))


@pytest.mark.parametrize("qk_norm", [False, True])
def test_attention_is_found_with_the_maps_around_it(qk_norm: bool) -> None:
    model = nn.ModuleDict({"layer": nn.ModuleDict({"norm": nn.LayerNorm(WIDTH), "attn": Attention(qk_norm)})})
    later = delay_attention(model)
    assert names(later) == ["layer.attn"]
    assert torch.equal(model["layer"]["attn"](X_BTD), torch.zeros_like(X_BTD))


class NormedAttention(nn.Module):
    """A layer with a residual path of its own, which is called attention."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attend = nn.LayerNorm(WIDTH), Attend()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attend(self.norm(x), x, x)


def test_a_residual_path_that_is_called_attention_stays() -> None:
    model = nn.ModuleDict({"layer": NormedAttention()})
    assert names(delay_attention(model)) == ["layer.attend"]
    assert torch.equal(model["layer"](X_BTD), X_BTD)


def test_linear_attention_and_experts_beside_it_are_left_alone() -> None:
    model, cache = Hybrid(), FlaCache()
    with pytest.warns(DelayWarning, match="in 'linear' values are weighed by a softmax of something else than scores"):
        later = delay_attention(model)
    assert names(later) == ["attn"]
    assert str(later.sites[0].stand_in) == "(zeros, None, the cache)"
    out_BTD, given = model(X_BTD, cache)
    x_BTD = X_BTD + model.linear(X_BTD) + model.gated(X_BTD)
    assert torch.equal(out_BTD, x_BTD + model.moe(x_BTD))
    assert given is cache
    assert cache.seen == X_BTD.shape[1]
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    out_BTD.square().mean().backward()
    optimizer.step()
    assert {name.split(".")[0] for name, each in model.named_parameters() if each.grad is None} == {"attn"}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
@pytest.mark.parametrize("training", [True, False])
def test_in_torchs_encoder_a_padded_batch_works_as_well(training: bool) -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).train(training)
    padding_BT = torch.arange(5) >= torch.tensor([[5], [3], [4], [5]])
    assert names(delay_attention(model)) == ["layers.0.self_attn", "layers.1.self_attn"]
    with torch.no_grad():
        out_BTD, x_BTD = model(X_BTD, src_key_padding_mask=padding_BT), X_BTD
        for each in model.layers:
            x_BTD = each.norm1(x_BTD)
            x_BTD = each.norm2(x_BTD + each.linear2(each.linear1(x_BTD).relu()))
    assert torch.allclose(out_BTD[~padding_BT], x_BTD[~padding_BT], atol=1e-6)


def test_in_torchs_decoder_both_attentions_are_off() -> None:
    layer = nn.TransformerDecoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True)
    model = nn.ModuleDict({"layer": layer})
    assert names(delay_attention(model)) == ["layer.self_attn", "layer.multihead_attn"]
    x_BTD = layer.norm2(layer.norm1(X_BTD))
    wanted_BTD = layer.norm3(x_BTD + layer.linear2(layer.linear1(x_BTD).relu()))
    assert torch.allclose(layer(X_BTD, torch.randn(4, 7, WIDTH)), wanted_BTD, atol=1e-6)


class Handing(nn.Module):
    """Gives what an inner module gives, by a detour."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Any:
        return self.hand_over(x)

    def hand_over(self, x: Tensor) -> Any:
        return self.inner(x, x, x)


@pytest.mark.parametrize(("inner", "values"), [(nn.MultiheadAttention(WIDTH, 2), 2), (Attend(), 0)])
def test_as_many_values_are_given_as_an_inner_module_gives(inner: nn.Module, values: int) -> None:
    later = delay(nn.ModuleDict({"part": Handing(inner)}), "part")
    assert later.sites[0].stand_in.returns.values == values


class Undecided(nn.Module):
    def forward(self, x: Tensor, weights: bool = False) -> Any:
        if weights:
            return x, x
        return x


def undecided() -> nn.Module:
    return nn.ModuleDict({"part": Undecided()})


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: delay_attention(nn.Sequential(nn.Linear(2, 2))), "no softmax attention found in Sequential"),
        (lambda: delay(gpt(), lambda name, module: False), "the predicate is true of no module of the model"),
        (lambda: delay(gpt(), []), "no part is named"),
        (lambda: delay(gpt(), "h.*.attm"), "no part of the model is named 'h.*.attm'; did you mean 'attn'?"),
        (lambda: delay(gpt(), nn.Linear(2, 2)), "the Linear that should be delayed is not in the model"),
        (lambda: delay(gpt(), ["attn", "h.0.attn"]), "'h.0.attn' meant twice, by 'attn' and by 'h.0.attn': name it once"),
        (lambda: delay(gpt(), ["h.0", "h.0.attn"]), "'h.0.attn' and 'h.0', one inside the other, meant twice"),
        (lambda: delay(gpt(), "attn", instead="ones"), "instead must be 'zeros', 'input' or a function, not 'ones'"),
        (lambda: delay(gpt(), "h"), "'h' is a ModuleList, which is never called itself; name what is in it: 'h.*'"),
        (lambda: delay(undecided(), "part"), "cannot tell what 'part' gives back while off: the forward of Undecided returns"),
        (lambda: delay(gpt(), "attn", until=0), "until=0 is in the past: name a step of the optimizer to come"),
        (lambda: delay(gpt(), "attn", rate=0.0), "rate must be a number above 0, not 0.0"),
        (lambda: delay(gpt(), "attn", warm_up=-1), "warm_up must be a whole number of steps, at least 0, not -1"),
        (lambda: delay(gpt(), "attn", ramp=-1), "ramp must be a whole number of steps, at least 0, not -1"),
        (lambda: Stages(), "there is no stage"),
        (
            lambda: Stages(delay(model := gpt(), "h.0", until=2), delay(model, "h.1", until=1)),
            "stages open one after another, not at steps [2, 1]",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(make: Callable[[], object], text: str) -> None:
    with pytest.raises(LabError) as caught:
        make()
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_was_done_already_is_refused() -> None:
    model = gpt()
    optimizer = OPTIMIZERS["adam"](model.parameters())
    later = delay_attention(model).watch(optimizer)
    with pytest.raises(LabError, match="this delay watches this optimizer already"):
        later.watch(optimizer)
    with pytest.raises(LabError, match=r"'h.0.attn' is delayed already; call remove\(\) on that delay first"):
        delay_attention(model)


def test_a_part_that_is_called_without_a_tensor_says_so() -> None:
    model = nn.ModuleDict({"part": Block()})
    delay(model, "part")
    with pytest.raises(LabError, match="a part that is off was called without a tensor: say what it gives with instead="):
        model["part"]([X_BTD])


def test_a_part_that_cannot_be_read_can_be_told_of() -> None:
    model = undecided()
    delay(model, "part", instead=lambda x, weights=False: torch.zeros_like(x))
    assert torch.equal(model["part"](X_BTD), torch.zeros_like(X_BTD))


def test_a_delay_that_is_open_goes_back_to_a_checkpoint_in_the_middle_of_its_ramp() -> None:
    torch.manual_seed(0)
    model, x = nn.ModuleDict({"part": nn.Linear(4, 4)}), torch.randn(2, 4)
    later = delay(model, "part", until=1, instead="zeros", ramp=10)
    for _ in range(5):
        later.step()
    kept, expected = later.state_dict(), model["part"](x)
    for _ in range(20):
        later.step()
    assert not torch.equal(model["part"](x), expected)
    later.load_state_dict(kept)
    assert torch.equal(model["part"](x), expected)
    for _ in range(20):
        later.step()
    assert torch.equal(model["part"](x), nn.Linear.forward(model["part"], x))


def test_stages_say_that_nobody_watches_an_optimizer_as_one_delay_does() -> None:
    model = nn.ModuleDict({"lower": nn.Linear(2, 2), "upper": nn.Linear(2, 2)})
    stages = Stages(delay(model, "lower", until=1, rate=0.5), delay(model, "upper", until=9))
    stages.step()
    with pytest.warns(DelayWarning, match="rate and warm_up have no effect"):
        stages.step()
