"""Models of other libraries: with attention off they are right, or there is an error that says what to do. Never neither."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import library_models as of
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lengthlab.errors import LabError
from lengthlab.integrations.numbers_of_models import apart, prepare
from lengthlab.integrations.numbers_of_models import same as close
from lengthlab.switch import Delay, DelayWarning, delay_attention
from lengthlab.switch.check import DelayReport

WEIGHING = (F.scaled_dot_product_attention, F.multi_head_attention_forward, F.softmax, torch.softmax, Tensor.softmax)
INSIDE = "attention is computed in '{}'.* and no module in it can be left out: .* name with modules= .* with instead="
SELECTIVE = r"no softmax attention found in ResNet: a softmax .* in 'layer1.0.conv1.attn' \(SelectiveKernelAttn\).*; name with"


@dataclass(frozen=True)
class Case:
    """What is made, what it takes, and what must become of it."""

    make: of.Make
    take: of.Take
    attention: str = ""
    """Patterns of the modules that compute attention, all of them, as their library has them."""
    left: tuple[str, ...] = ()
    """Those that stay on, since nothing else brings the input to the output."""
    options: dict[str, Any] = field(default_factory=dict)
    refused: str = ""
    """The words of the error, where it is refused."""
    alone: bool = False
    """Whether nothing but attention brings one place of a sequence to another."""


SMALL, LARGE = of.images(32), of.images(64)
IMAGES = {
    "timm ViT": Case(of.timm_vit, SMALL, "blocks.*.attn", ("blocks.1.attn",)),
    "timm ViT, pooled by attention as SigLIP": Case(
        lambda: of.timm_vit(global_pool="map", class_token=False), SMALL, "blocks.*.attn attn_pool", ("attn_pool",)
    ),
    "timm ViT, pooled by mean": Case(lambda: of.timm_vit(global_pool="avg"), SMALL, "blocks.*.attn"),
    "timm CaiT": Case(of.timm_cait, SMALL, "blocks.*.attn blocks_token_only.*.attn", ("blocks_token_only.1.attn",)),
    "timm XCiT": Case(of.timm_xcit, SMALL, "blocks.*.attn cls_attn_blocks.*.attn", ("cls_attn_blocks.1.attn",)),
    "timm LeViT": Case(
        of.timm_levit,
        LARGE,
        "stages.*.blocks.*.attn *.attn_downsample",
        ("stages.1.downsample.attn_downsample", "stages.2.downsample.attn_downsample"),
    ),
    "timm MViTv2": Case(of.timm_mvit, LARGE, refused=INSIDE.format("stages.0.blocks.0.attn")),
    "timm MViTv2, nothing added inside": Case(lambda: of.timm_mvit(residual_pooling=False), LARGE, "stages.*.blocks.*.attn"),
    "timm Hiera": Case(of.timm_hiera, LARGE, "blocks.*.attn"),
    "timm SK-ResNet": Case(of.timm_skresnet, LARGE, refused=SELECTIVE),
    "timm PVTv2": Case(of.timm_pvt, LARGE, "stages.*.blocks.*.attn"),
    "torchvision Swin": Case(lambda: of.torchvision_swin(1), SMALL, "features.*.attn"),
    "torchvision Swin 2": Case(lambda: of.torchvision_swin(2), SMALL, "features.*.attn"),
    "torchvision ViT": Case(
        of.torchvision_vit, SMALL, "encoder.layers.*.self_attention", ("encoder.layers.encoder_layer_1.self_attention",)
    ),
}
X_TRANSFORMERS = "attn_layers.layers.[02].1"
SEQUENCES = {
    "x-transformers": Case(of.x_transformers, of.tokens, X_TRANSFORMERS, alone=True),
    "x-transformers, named": Case(
        of.x_transformers,
        of.tokens,
        X_TRANSFORMERS,
        options={"modules": ["attn_layers.layers.0.1.to_out", "attn_layers.layers.2.1.to_out"]},
        alone=True,
    ),
    "x-transformers, named where several values are given": Case(
        of.x_transformers,
        of.tokens,
        options={"modules": ["attn_layers.layers.0.1", "attn_layers.layers.2.1"]},
        refused=r"cannot tell what 'attn_layers\.layers\.0\.1' gives back while off: .* say it with instead=",
    ),
    "x-transformers, gated by a GRU": Case(
        lambda: of.x_transformers(gate_residual=True), of.tokens, X_TRANSFORMERS, alone=True
    ),
    "x-transformers, heads that talk": Case(
        lambda: of.x_transformers(attn_pre_talking_heads=True, attn_post_talking_heads=True),
        of.tokens,
        X_TRANSFORMERS,
        alone=True,
    ),
    "x-transformers, hybrid with a GRU": Case(of.x_transformers_hybrid, of.tokens, X_TRANSFORMERS),
    "x-transformers after an LSTM": Case(of.AfterLSTM, of.tokens, "decoder.layers.[02].1"),
    "torchtune Llama 3": Case(of.torchtune, of.tokens, "layers.*.attn", alone=True),
    "torchtune Llama 3, named": Case(
        of.torchtune, of.tokens, "layers.*.attn", options={"modules": ["layers.*.attn"]}, alone=True
    ),
    "litgpt": Case(of.litgpt, of.tokens, "transformer.h.*.attn", alone=True),
    "MultiheadAttention, called as it is": Case(lambda: of.subclassed(of.Plain), of.vectors, "*.attn", alone=True),
    "MultiheadAttention of one input": Case(lambda: of.subclassed(of.OfOne), of.vectors, "*.attn", alone=True),
    "MultiheadAttention that computes by itself": Case(lambda: of.subclassed(of.Own), of.vectors, "*.attn", alone=True),
    "MultiheadAttention that adds its input": Case(lambda: of.subclassed(of.Adding), of.vectors, "*.attn", alone=True),
    "MultiheadAttention that adds its input, named": Case(
        lambda: of.subclassed(of.Adding),
        of.vectors,
        "*.attn",
        options={"modules": "attn", "instead": lambda x: x},
        alone=True,
    ),
    "MultiheadAttention that adds its input, named with what it hands on": Case(
        lambda: of.subclassed(of.Adding), of.vectors, "*.attn", options={"modules": "attn", "instead": "input"}, alone=True
    ),
}
CASES = IMAGES | SEQUENCES
RIGHT = [name for name, case in CASES.items() if not case.refused]
REFUSED = [name for name, case in CASES.items() if case.refused]


def made(case: Case) -> nn.Module:
    torch.manual_seed(0)
    return case.make().eval()


def delayed(model: nn.Module, case: Case, made_up: bool = False) -> tuple[Delay, DelayReport]:
    """A delay that was checked; it warns of attention that stays on, and only where some does."""
    batch = {} if case.options or made_up else {"batch": case.take(0)}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", DelayWarning)
        held = delay_attention(model, **batch, **case.options)
        report = held.check(case.take(0))
    said = [str(each.message) for each in seen if issubclass(each.category, DelayWarning)]
    assert any("stays on" in each for each in said) == bool(report.left), said
    assert not any("nothing was tried" in each for each in said), said
    return held, report


def is_covered(name: str, off: tuple[str, ...]) -> bool:
    """Whether a module is off, lies in one that is, or gives only what goes through one that is."""
    return any(each == name or name.startswith(f"{each}.") or each.startswith(f"{name}.") for each in off)


def attention_of(model: nn.Module, case: Case) -> Iterator[str]:
    for pattern in case.attention.split():
        found = [name for name, _ in model.named_modules() if fnmatchcase(name, pattern)]
        assert found, pattern
        yield from (each for each in found if not any(each.startswith(f"{other}.") for other in found))


def tries() -> Iterator[Any]:
    """Each case on a batch of its own, and on one that is made up."""
    for name in RIGHT:
        for made_up in (False,) if CASES[name].options else (False, True):
            yield pytest.param(name, made_up)


@pytest.mark.parametrize(("name", "made_up"), tries())
def test_all_attention_is_off_but_what_alone_carries_the_input(name: str, made_up: bool) -> None:
    case = CASES[name]
    model = made(case)
    _, report = delayed(model, case, made_up)
    assert report.left == case.left
    assert [each for each in attention_of(model, case) if not is_covered(each, report.off)] == list(case.left)
    one, other = model(case.take(0)), model(case.take(1))
    assert not torch.equal(one, other), "the input does not reach the output"


@pytest.mark.parametrize("name", [name for name in RIGHT if CASES[name].alone])
def test_no_place_hears_of_another_while_attention_is_off(name: str) -> None:
    model, batch = made(CASES[name]), CASES[name].take(0)
    changed = batch.clone()
    changed[:, 0] = CASES[name].take(1)[:, 0]
    assert not torch.equal(model(batch)[:, 1:], model(changed)[:, 1:])
    delayed(model, CASES[name])
    assert torch.equal(model(batch)[:, 1:], model(changed)[:, 1:])
    assert not torch.equal(model(batch)[:, 0], model(changed)[:, 0])


class Without(TorchFunctionMode):
    """While on, these modules weigh everything with zero. It knows nothing of what the switch looks at."""

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        super().__init__()
        self._inside, self.calls = 0, 0
        for module in modules:
            module.register_forward_pre_hook(lambda *_: self._go(1))
            module.register_forward_hook(lambda *_: self._go(-1))

    def _go(self, further: int) -> None:
        self._inside += further

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        given = func(*args, **(kwargs or {}))
        if not self._inside or func not in WEIGHING:
            return given
        self.calls += 1
        return (torch.zeros_like(given[0]), *given[1:]) if isinstance(given, tuple) else torch.zeros_like(given)


@pytest.mark.parametrize("name", RIGHT)
def test_closed_it_gives_the_numbers_of_the_library_with_all_its_attention_weights_at_zero(name: str) -> None:
    case = CASES[name]
    model, untouched = prepare(made(case)), prepare(made(case))
    opened = [untouched(case.take(seed)) for seed in range(2)]
    delayed(model, case)
    off = [each for each in attention_of(untouched, case) if each not in case.left]
    without = Without(untouched.get_submodule(each) for each in off)
    for seed in range(2):
        with without:
            wanted = untouched(case.take(seed))
        found = model(case.take(seed))
        assert close([found], [wanted]), apart([found], [wanted])
        assert not close([found], [opened[seed]])
    assert without.calls >= 2 * len(off)


def trained(model: nn.Module, held: Delay, take: of.Take) -> dict[str, bool]:
    """Two steps with weight decay; of each parameter, whether there was a gradient that was not zero."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5)
    held.watch(optimizer)
    had = dict.fromkeys(dict(model.named_parameters()), False)
    for step in range(2):
        optimizer.zero_grad()
        model(take(step)).square().mean().backward()
        assert all(parameter.grad is None for parameter in held.parameters())
        for name, parameter in model.named_parameters():
            had[name] |= parameter.grad is not None and bool(parameter.grad.any())
        optimizer.step()
    assert held.steps == 2
    model.eval()
    return had


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_off_stands_still_and_the_rest_learns_until_it_opens_as_it_was(name: str) -> None:
    case = CASES[name]
    model = made(case)
    untouched = copy.deepcopy(model)
    held, report = delayed(model, case)
    before = {each: parameter.detach().clone() for each, parameter in model.named_parameters()}
    had_gradient = trained(model, held, case.take)
    moved = {each for each, parameter in model.named_parameters() if not torch.equal(parameter, before[each])}
    shared = {f"{site.name}.{each}" for site in held.sites for each in site.shared}
    off = {each for each in before if each.startswith(tuple(f"{site}." for site in report.off))} - shared
    assert off
    assert not moved & (off | set(report.still) | set(report.without_gradient))
    assert moved == {each for each, has in had_gradient.items() if has}  # nothing decays, either, without a gradient
    held.open()
    untouched.load_state_dict(model.state_dict())
    for seed in range(2):
        assert same(model(case.take(seed)), untouched(case.take(seed)))


@pytest.mark.parametrize("name", ["timm ViT", "timm LeViT"])
def test_nothing_of_a_trial_stays_in_a_model_in_evaluation(name: str) -> None:
    model = made(CASES[name])
    expected = copy.deepcopy(model)(CASES[name].take(0))
    held, _ = delayed(model, CASES[name])
    held.open()
    assert same(model(CASES[name].take(0)), expected)


def same(one: Tensor, other: Tensor) -> bool:
    return bool(one.isfinite().all()) and torch.equal(one, other)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_refused_with_what_to_do_and_nothing_has_changed(name: str) -> None:
    case = CASES[name]
    model = made(case)
    before = model(case.take(0))
    with pytest.raises(LabError, match=case.refused):
        delayed(model, case)
    if not case.options:
        assert torch.equal(model(case.take(0)), before)
        with pytest.raises(LabError, match=case.refused):
            delayed(model, case, made_up=True)


def test_a_gated_delta_rule_is_not_taken_for_softmax_attention() -> None:
    """Its kernels do not run on a CPU, so nothing can be tried: it is read."""
    with pytest.raises(LabError, match=r"no softmax attention found in the model; name it: modules="):
        delay_attention(of.fla("GatedDeltaNet"))


def test_a_gated_delta_rule_with_a_router_is_not_taken_for_softmax_attention() -> None:
    with pytest.raises(LabError, match=r"no softmax attention found in the model; name it: modules="):
        delay_attention(of.fla("Mom"))


@pytest.mark.parametrize("kind", ["GatedDeltaNet", "Mom"])
def test_a_batch_on_which_a_kernel_does_not_run_is_refused(kind: str) -> None:
    with pytest.raises(LabError, match=r"the model does not run on the batch \(.*\): hand over one that it takes"):
        delay_attention(of.fla(kind), batch=of.tokens(0))


def test_transformers_works_beside_a_torchvision_without_operators() -> None:
    from torchvision.transforms import v2
    from transformers import AutoImageProcessor, ViTConfig, ViTForImageClassification
    from transformers.utils import is_torchvision_available

    assert is_torchvision_available()
    assert AutoImageProcessor
    picture = v2.functional.resize(of.images(64)(0), [32, 32])
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    model = ViTForImageClassification(ViTConfig(image_size=32, patch_size=8, **sizes)).eval()
    assert model(picture).logits.isfinite().all()
