"""A window on attention is a band mask, whoever wrote the attention."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab import models
from lengthlab.errors import LabError
from lengthlab.models.layout import Layout
from lengthlab.models.model import logits
from lengthlab.switch import by_window, delay
from lengthlab.switch.delay import DelayWarning

B, T, W = 2, 9, 3


def band(tokens: int, width: int) -> Tensor:
    """Queries by keys: a query sees its own position and the width - 1 before it."""
    place = torch.arange(tokens)
    back = place[:, None] - place
    return (back >= 0) & (back < width)


def small_llama(attention: str, **changes: Any) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "vocab_size": 20}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = LlamaConfig(**sizes | heads | changes)
    config._attn_implementation = attention
    return LlamaForCausalLM(config)


def small_gpt2(attention: str) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=20, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    config._attn_implementation = attention
    return GPT2LMHeadModel(config)


def tokens(length: int = T) -> Tensor:
    return torch.randint(0, 20, (B, length), generator=torch.Generator().manual_seed(1))


def banded_mask(padding: Tensor | None = None) -> Tensor:
    """For Hugging Face: a mask of its own, in place of the causal one."""
    seen = band(T, W).expand(B, 1, T, T)
    if padding is not None:
        seen = seen & padding[:, None, None].bool()
    return torch.zeros(B, 1, T, T).masked_fill(~seen, torch.finfo(torch.float32).min)


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("make", [small_llama, small_gpt2])
def test_a_window_on_hugging_faces_attention_is_a_band_mask_forward_and_backward(
    make: Callable[[str], Any], attention: str
) -> None:
    windowed, reference = make(attention), make(attention)
    by_window(windowed, W)
    out = windowed(tokens(), labels=tokens())
    expected = reference(tokens(), attention_mask=banded_mask(), labels=tokens())
    torch.testing.assert_close(out.logits, expected.logits)
    assert (out.logits - reference(tokens()).logits).abs().max() > 1e-3  # and it makes a difference
    out.loss.backward()
    expected.loss.backward()
    mine, theirs = gradients(windowed), gradients(reference)
    assert mine.keys() == theirs.keys()
    for name in mine:
        torch.testing.assert_close(mine[name], theirs[name], msg=name)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_stays_padding_and_nothing_becomes_nan(attention: str, side: str) -> None:
    windowed, reference = small_llama(attention), small_llama(attention)
    padding = torch.ones(B, T, dtype=torch.long)
    padding[1, :5] = 0
    padding = padding if side == "left" else padding.flip(1)
    by_window(windowed, W)
    out = windowed(tokens(), attention_mask=padding).logits
    expected = reference(tokens(), attention_mask=banded_mask(padding), position_ids=torch.arange(T)[None]).logits
    torch.testing.assert_close(out[padding.bool()], expected[padding.bool()])
    F.cross_entropy(out[padding.bool()], tokens()[padding.bool()]).backward()
    assert all(bool(grad.isfinite().all()) for grad in gradients(windowed).values())


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_window_goes_along_with_a_cache(attention: str) -> None:
    model = small_llama(attention).eval()
    by_window(model, W)
    with torch.no_grad():
        whole = model(tokens()).logits
        cache, pieces = None, []
        for piece in tokens().split([4, 1, 3, 1], dim=1):
            out = model(piece, past_key_values=cache, use_cache=True)
            cache, pieces = out.past_key_values, [*pieces, out.logits]
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole)


def test_generation_with_a_static_cache_sees_the_same_window() -> None:
    model = small_llama("sdpa").eval()
    by_window(model, W)
    options = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0, "attention_mask": torch.ones(B, T)}
    with torch.no_grad():
        torch.testing.assert_close(
            model.generate(tokens(), cache_implementation="static", disable_compile=True, **options),
            model.generate(tokens(), use_cache=False, **options),
        )


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("mask", ["none", "bool", "float", "causal"])
def test_a_window_on_torchs_attention_is_a_band_mask(weights: bool, mask: str) -> None:
    torch.manual_seed(0)
    model = nn.ModuleDict({"attention": nn.MultiheadAttention(8, 2, batch_first=True)})
    reference = copy.deepcopy(model)
    by_window(model, W)
    x = torch.randn(B, T, 8)
    place = torch.arange(T)
    near = (place[:, None] - place).abs() < W
    causal = ~torch.ones(T, T, dtype=torch.bool).tril()
    added = torch.zeros(T, T).masked_fill(causal, -torch.inf)
    given = {"none": None, "bool": causal, "float": added, "causal": added}[mask]
    hidden = ~near if mask == "none" else ~near | causal
    padding = torch.zeros(B, T, dtype=torch.bool)
    padding[1, 6:] = True
    options: dict[str, Any] = {"need_weights": weights, "is_causal": mask == "causal"}
    for key_padding in (None, padding) if mask == "none" else (None,):
        out = model["attention"](x, x, x, attn_mask=given, key_padding_mask=key_padding, **options)[0]
        expected = reference["attention"](x, x, x, attn_mask=hidden, key_padding_mask=key_padding, need_weights=weights)[0]
        kept = torch.ones(B, T, dtype=torch.bool) if key_padding is None else ~key_padding
        torch.testing.assert_close(out[kept], expected[kept])
        out.sum().backward()
        assert all(bool(grad.isfinite().all()) for grad in gradients(model).values())


@pytest.mark.parametrize("training", [True, False])
def test_torchs_fused_layer_does_not_run_past_the_window(training: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    reference = copy.deepcopy(layer)
    by_window(layer, W)
    place = torch.arange(T)
    x = torch.randn(B, T, 8)
    for each in (layer, reference):
        each.train(training)
    with torch.set_grad_enabled(training):
        torch.testing.assert_close(layer(x), reference(x, src_mask=(place[:, None] - place).abs() >= W))


def test_the_windows_grow_and_then_all_is_seen() -> None:
    model, plain = small_llama("sdpa"), small_llama("sdpa")
    narrow = by_window(model, windows=[(2, 1), (4, T - 1), (5, T)], until=6)
    seen = []
    for _ in range(7):
        seen.append((narrow.window, narrow.is_open, narrow.is_settled))
        narrow.step()
    assert [window for window, *_ in seen] == [0, 0, 1, 1, T - 1, T, None]
    assert [is_open for _, is_open, _ in seen] == [False] * 2 + [True] * 5
    assert [settled for *_, settled in seen] == [False] * 6 + [True]
    torch.testing.assert_close(model(tokens()).logits, plain(tokens()).logits, rtol=0, atol=0)
    assert "forward" not in vars(model.get_submodule("model.layers.0.self_attn"))


def test_a_window_as_wide_as_the_sequence_changes_no_bit() -> None:
    model, plain = small_llama("sdpa"), small_llama("sdpa")
    by_window(model, T)
    assert torch.equal(model(tokens()).logits, plain(tokens()).logits)


def test_before_the_first_window_attention_is_off() -> None:
    model, closed = small_llama("sdpa"), small_llama("sdpa")
    by_window(model, windows=[(10, 2)])
    delay(closed, None)
    out = model(tokens(), labels=tokens())
    assert torch.equal(out.logits, closed(tokens()).logits)
    out.loss.backward()
    assert not [name for name in gradients(model) if "self_attn" in name]


def test_with_a_probability_some_steps_have_the_window_and_evaluation_has_none() -> None:
    model, plain = small_llama("sdpa"), small_llama("sdpa")
    sometimes = by_window(model, W, p=0.5, seed=3)
    whole = plain(tokens()).logits
    drawn = []
    for _ in range(40):
        drawn.append(sometimes.window)
        assert torch.equal(model(tokens()).logits, whole) == (sometimes.window is None)
        sometimes.step()
    assert set(drawn) == {W, None}
    assert 10 < drawn.count(W) < 30
    while sometimes.window is None:
        sometimes.step()
    assert torch.equal(model.eval()(tokens()).logits, whole)


@pytest.mark.parametrize("scores", ["none", "log-n"])
@pytest.mark.parametrize("positions", ["none", "rope", "alibi"])
def test_a_window_on_our_own_attention_is_a_band_whichever_queries_are_named(positions: str, scores: str) -> None:
    torch.manual_seed(0)
    model = models.hybrid_block(width=16, blocks=2, heads=2, positions=positions, scores=scores)
    network = model.build(20)
    whole = logits(network, tokens(), Layout())
    by_window(network, W, modules=["attend"])
    every = logits(network, tokens(), Layout())
    assert (every - whole).abs().max() > 1e-4
    query = torch.tensor([[1, 7], [8, 4]])
    some = logits(network, tokens(), Layout(query_BQ=query))
    torch.testing.assert_close(some, every.gather(1, query[:, :, None].expand(-1, -1, 20)))
    attend = network.get_submodule("body.attention.0.residual.attend")
    x = torch.randn(B, T, 16, requires_grad=True)
    (grad,) = torch.autograd.grad(attend(x)[:, 7].sum(), x)
    assert grad[:, : 7 - W + 1].abs().max() == 0
    assert grad[:, 8:].abs().max() == 0
    assert grad[:, 7 - W + 1 : 8].abs().amin(dim=(0, 2)).min() > 0


def test_gradient_checkpointing_computes_the_same_window_again() -> None:
    model, plain = small_llama("sdpa").train(), small_llama("sdpa").train()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    for each in (model, plain):
        by_window(each, W)
        each(tokens(), labels=tokens()).loss.backward()
    for name, grad in gradients(plain).items():
        assert torch.equal(gradients(model)[name], grad), name


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # torch's own, at a graph break
def test_a_compiled_model_has_the_window_too() -> None:
    model = small_llama("sdpa")
    compiled = torch.compile(model, backend="eager")
    whole = compiled(tokens()).logits
    narrow = by_window(model, W)
    assert torch.equal(compiled(tokens()).logits, model(tokens()).logits)
    assert not torch.equal(compiled(tokens()).logits, whole)
    narrow.open()
    assert torch.equal(compiled(tokens()).logits, whole)


# Refused


class OwnKernel(nn.Module):
    """Attention by a kernel that nobody knows."""

    def forward(self, x: Tensor) -> Tensor:
        return (x @ x.transpose(1, 2)).tril().exp() @ x


class GatedAttention(nn.Module):
    """A softmax that is none of scores."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(x).softmax(-1).sum(-1, keepdim=True)


@pytest.mark.parametrize(("made", "told"), [(OwnKernel, "attn_implementation='sdpa'"), (GatedAttention, "own sequence")])
def test_attention_that_a_window_cannot_be_put_on_is_refused(made: type[nn.Module], told: str) -> None:
    model = nn.ModuleDict({"mixer": made()})
    by_window(model, W, modules=["mixer"], instead="zeros")
    with pytest.raises(LabError, match="mixer.*" + told):
        model["mixer"](torch.randn(B, T, 8))


def test_attention_to_another_sequence_is_refused() -> None:
    layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    by_window(layer, W)
    with pytest.raises(LabError, match=r"multihead_attn.*modules="):
        layer(torch.randn(B, T, 8), torch.randn(B, T, 8))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"windows": 0}, "windows must be at least 1, not 0"),
        ({"windows": 2.5}, "windows must be a whole number, not 2.5"),
        ({"windows": []}, "windows is a number, or pairs of a step and a number"),
        ({"windows": [(5, 2), (5, 3)]}, "the steps of windows go up from pair to pair, not [5, 5]"),
        ({"windows": 2, "p": 0.0}, "p, the share of steps with a window, must be above 0"),
        ({"windows": 2, "until": 0}, "until=0 is in the past"),
        ({"windows": 2, "ramp": 5}, "ramp go with an opening that happens once"),
    ],
)
def test_what_makes_no_window_is_refused_and_leaves_the_model_alone(options: dict[str, Any], told: str) -> None:
    model = small_llama("sdpa")
    with pytest.raises(LabError) as caught:
        by_window(model, **options)
    assert told in str(caught.value)
    assert not any("forward" in vars(module) for module in model.modules())


def test_the_state_goes_on_where_it_was() -> None:
    first, second = small_llama("sdpa"), small_llama("sdpa")
    kept = by_window(first, [(0, 2), (3, 4)], until=10)
    kept.go_to(4)
    again = by_window(second, [(0, 2), (3, 4)], until=10)
    again.load_state_dict(kept.state_dict())
    assert (again.steps, again.window, again.is_settled) == (4, 4, False)
    other = by_window(small_llama("sdpa"), 5, until=10)
    with pytest.warns(DelayWarning, match="goes on with"):
        other.load_state_dict(kept.state_dict())
    plain = delay(small_llama("sdpa"), None)
    with pytest.raises(LabError, match="off or on"):
        kept.load_state_dict(plain.state_dict())
    with pytest.raises(LabError, match="the same call"):
        plain.load_state_dict(kept.state_dict())
