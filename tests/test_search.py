"""Attention is found by trying, however it is written, and what is off adds nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

import lengthlab as ll
import toy_blocks as toys
from lengthlab.errors import LabError
from lengthlab.switch import DelayWarning
from lengthlab.switch.trace import watch_forward

BLOCKS = (
    toys.Plain,
    toys.ByMethod,
    toys.AddsItself,
    toys.ResidualAsArgument,
    toys.NormsItself,
    toys.InFunction,
)


def model_of(*kinds: type[nn.Module]) -> toys.Model:
    torch.manual_seed(0)
    return toys.Model(*(kind() for kind in kinds))


def attention_parameters(model: nn.Module) -> list[str]:
    return [name for name, _ in model.named_parameters() if ".qkv." in name or ".out." in name]


def loss_of(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    return model(tokens).square().mean()


@pytest.mark.parametrize("kind", BLOCKS)
def test_attention_weights_do_not_move_while_delayed_however_the_block_is_written(kind: type[nn.Module]) -> None:
    model = model_of(kind, kind)
    delay = ll.delay_attention(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.5)
    delay.watch(optimizer)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model, toys.tokens()).backward()
        optimizer.step()
    after = model.state_dict()
    still = attention_parameters(model)
    assert len(still) == 8
    assert all(torch.equal(before[name], after[name]) for name in still)
    assert not any(torch.equal(before[name], after[name]) for name in ("blocks.0.mlp.weight", "table.weight", "head.weight"))


@pytest.mark.parametrize("kind", BLOCKS)
def test_what_is_off_adds_nothing_and_the_residual_path_stays(kind: type[nn.Module]) -> None:
    model = model_of(kind)
    zeroed = copy.deepcopy(model)
    with torch.no_grad():
        for name, parameter in zeroed.named_parameters():
            if ".out." in name:
                parameter.zero_()
    ll_delay = ll.delay_attention(model)
    torch.testing.assert_close(model.eval()(toys.tokens()), zeroed.eval()(toys.tokens()))
    ll_delay.remove()


@pytest.mark.parametrize("kind", BLOCKS)
def test_opened_it_is_the_model_that_it_was(kind: type[nn.Module]) -> None:
    model = model_of(kind, kind).eval()
    wanted = model(toys.tokens())
    delay = ll.delay_attention(model)
    assert not torch.allclose(model(toys.tokens()), wanted)
    delay.open()
    assert torch.equal(model(toys.tokens()), wanted)


def test_a_block_that_adds_its_input_is_skipped_as_a_whole() -> None:
    (site,) = ll.delay_attention(model_of(toys.AddsItself)).sites
    assert (site.name, str(site.stand_in)) == ("blocks.0.attn", "its input")
    (site,) = ll.delay_attention(model_of(toys.ResidualAsArgument)).sites
    assert (site.name, str(site.stand_in)) == ("blocks.0.attn", "(its input, None)")


def test_routers_and_linear_attention_are_left_alone() -> None:
    with pytest.warns(DelayWarning, match=r"in 'blocks.1' values are weighed by a softmax of something else"):
        delay = ll.delay_attention(model_of(toys.Router, toys.LinearMixer, toys.Plain))
    assert [site.name for site in delay.sites] == ["blocks.2.attn"]


def test_attention_in_a_module_and_in_a_function_is_closed_in_both() -> None:
    delay = ll.delay_attention(model_of(toys.Plain, toys.InFunction))
    assert [site.name for site in delay.sites] == ["blocks.0.attn", "blocks.1.out"]
    assert delay.check(toys.tokens()).unused == ("blocks.1",)


def test_not_found_names_who_takes_a_softmax() -> None:
    with pytest.raises(LabError, match=r"no softmax attention found in Model: a softmax .* in 'blocks.0' \(Router\)"):
        ll.delay_attention(model_of(toys.Router))


class Bare(nn.Module):
    """Adds what it weighs to its input, with no map in between."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(toys.WIDTH, 3 * toys.WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + nn.functional.scaled_dot_product_attention(*toys.heads(x, self.qkv))


def test_a_block_of_nothing_but_attention_hands_its_input_through() -> None:
    (site,) = ll.delay_attention(toys.Model(Bare(), toys.Router())).sites
    assert (site.name, str(site.stand_in)) == ("blocks.0", "its input")


def test_attention_that_cannot_be_left_out_is_refused_with_what_to_do() -> None:
    class Normed(Bare):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).tanh()

    with pytest.raises(LabError, match=r"'blocks.0', and no module in it can be left out: put what is added"):
        ll.delay_attention(toys.Model(Normed()))


def test_maps_that_begin_with_zeros_hide_nothing() -> None:
    model = model_of(toys.Plain, toys.AddsItself)
    for block in model.blocks:
        nn.init.zeros_(block.attn.out.weight)  # type: ignore[union-attr, arg-type]
    before = copy.deepcopy(model.state_dict())
    delay = ll.delay_attention(model)
    assert [site.name for site in delay.sites] == ["blocks.0.attn", "blocks.1.attn"]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_search_leaves_no_trace() -> None:
    torch.manual_seed(0)
    model = toys.Model(toys.Plain(), nn.BatchNorm1d(9)).train()
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    delay = ll.delay_attention(model, batch=toys.tokens())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(module.training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())
    delay.remove()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert not any("forward" in vars(module) for module in model.modules())


def test_what_a_model_sets_up_in_its_first_forward_is_set_up_once() -> None:
    class Counting(toys.Model):
        """Hangs a hook on itself when it first runs, as transformers does to collect hidden states."""

        ready, seen = False, 0

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            if not self.ready:
                self.ready = True
                self.register_buffer("scale", torch.ones(()))
                self.blocks[0].register_forward_hook(self.count)
            return super().forward(tokens) * self.scale

        def count(self, *_: object) -> None:
            self.seen += 1

    torch.manual_seed(0)
    model = Counting(toys.Plain())
    delay = ll.delay_attention(model, batch=toys.tokens())
    delay.check(toys.tokens())
    assert not model.ready
    assert not hasattr(model, "scale")
    model(toys.tokens())
    assert model.seen == 1
    delay.check(toys.tokens())
    model(toys.tokens())
    assert model.seen == 2


class Reversible(torch.autograd.Function):
    """Runs its module again in the backward, as reversible layers do, and asks what comes out for a graph."""

    @staticmethod
    def forward(ctx, x, module):  # type: ignore[no-untyped-def]
        ctx.module = module
        ctx.save_for_backward(x)
        return x + module(x)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            out = ctx.module(x.detach().requires_grad_())
        out.backward(gradient)
        return gradient, None


def reversible() -> nn.Module:
    class Block(toys.Plain):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mixed: torch.Tensor = Reversible.apply(x, self.attn)
            return mixed

    return model_of(Block)


def test_what_cannot_be_trained_closed_is_refused_by_the_search_and_by_the_check() -> None:
    with pytest.raises(LabError, match="with its attention off the model cannot be trained, though it can with it on"):
        ll.delay_attention(reversible(), batch=toys.tokens())
    named = ll.delay_attention(reversible(), modules="attn")
    with pytest.raises(LabError, match="with its attention off the model cannot be trained, though it can with it on"):
        named.check(toys.tokens())


def test_what_cannot_be_trained_at_all_on_a_batch_is_said() -> None:
    class Untrainable(toys.Model):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            if torch.is_grad_enabled():
                raise RuntimeError("not today")
            return super().forward(tokens)

    with pytest.raises(LabError, match="cannot be trained on this batch, not even with its attention on"):
        ll.delay_attention(Untrainable(toys.Plain()), batch=toys.tokens())
    with pytest.raises(LabError, match="can be trained on no batch that could be made up"):
        ll.delay_attention(Untrainable(toys.Plain()))
    named = ll.delay_attention(Untrainable(toys.Plain()), modules="attn")
    assert "No gradient could be looked at" in str(named.check(toys.tokens()))


def test_attention_that_alone_brings_the_input_to_the_output_stays_on_and_says_so() -> None:
    class Classifier(toys.Model):
        """Reads the class of a sequence off a token of its own."""

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            own = torch.zeros_like(tokens[:, :1])
            return super().forward(torch.cat([tokens, own], 1))[:, -1]

    torch.manual_seed(0)
    model = Classifier(toys.InFunction(), toys.Plain(), toys.Plain())
    with pytest.warns(DelayWarning, match="attention stays on in 'blocks.2.attn': nothing else brings the input"):
        delay = ll.delay_attention(model)
    assert delay.left == ("blocks.2.attn",)
    assert [site.name for site in delay.sites] == ["blocks.0.out", "blocks.1.attn"]
    assert delay.check(toys.tokens()).left == ("blocks.2.attn",)


def test_where_nothing_else_brings_the_input_there_nothing_is_delayed() -> None:
    class Pooled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.query = nn.Embedding(toys.WORDS, toys.WIDTH), nn.Parameter(torch.randn(1, 1, toys.WIDTH))
            self.pool = nn.MultiheadAttention(toys.WIDTH, 2, batch_first=True)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x = self.table(tokens)
            return self.pool(self.query.expand(len(x), -1, -1), x, x)[0]

    with pytest.raises(LabError, match=r"without its attention \('pool'\) the output of the model is the same for any input"):
        ll.delay_attention(Pooled())


@pytest.mark.parametrize("make", [lambda: nn.MultiheadAttention(toys.WIDTH, 2), toys.Attention])
def test_a_model_that_is_attention_itself_is_refused_as_it_has_nothing_else(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    model = make().eval()
    x = torch.randn(2, 5, toys.WIDTH)
    before = model(*[x] * (3 if isinstance(model, nn.MultiheadAttention) else 1))
    with pytest.raises(LabError, match="without its attention the output of the model is the same for any input"):
        ll.delay_attention(model)
    torch.testing.assert_close(model(*[x] * (3 if isinstance(model, nn.MultiheadAttention) else 1)), before, rtol=0, atol=0)


class Free(nn.Module):
    """Torch's attention, called by a function of nobody's."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out, self.mlp = (nn.Linear(toys.WIDTH, size * toys.WIDTH) for size in (3, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.out(attend(x, self.qkv))
        return x + self.mlp(x)


def attend(x: torch.Tensor, projection: nn.Linear) -> torch.Tensor:
    return nn.functional.scaled_dot_product_attention(*toys.heads(x, projection), is_causal=True)


def test_attention_of_torch_in_a_free_function_is_off_with_all_its_maps() -> None:
    model = model_of(Free, toys.Plain)
    delay = ll.delay_attention(model)
    assert [site.name for site in delay.sites] == ["blocks.0.out", "blocks.1.attn"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.5)
    delay.watch(optimizer)
    before = copy.deepcopy(model.state_dict())
    loss_of(model, toys.tokens()).backward()
    optimizer.step()
    moved = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == {name for name in before if not any(part in name for part in (".qkv.", ".out.", ".norm."))}


def test_cross_attention_can_be_kept() -> None:
    torch.manual_seed(0)
    model = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
    batch = torch.randn(2, 5, 16), torch.randn(2, 6, 16)
    kept = ll.delay_attention(model, batch=batch, cross=False)
    assert [site.name for site in kept.sites] == ["encoder.layers.0.self_attn", "decoder.layers.0.self_attn"]


def test_closing_cross_attention_says_that_the_encoder_will_not_learn() -> None:
    torch.manual_seed(0)
    model = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
    with pytest.warns(DelayWarning, match=r"'encoder' will not learn while attention is off.*cross=False"):
        delay = ll.delay_attention(model, batch=(torch.randn(2, 5, 16), torch.randn(2, 6, 16)))
    assert [site.name for site in delay.sites][-1] == "decoder.layers.0.multihead_attn"


def test_a_token_that_only_attention_reads_stands_still() -> None:
    class Registers(toys.Model):
        """Tokens of the model's own, which are cut off again."""

        def __init__(self, *blocks: nn.Module) -> None:
            super().__init__(*blocks)
            self.register = nn.Parameter(torch.ones(1, 1, toys.WIDTH))

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x = torch.cat([self.register.expand(len(tokens), -1, -1), self.table(tokens)], 1)
            for block in self.blocks:
                x = block(x)
            return self.head(x[:, 1:])

    torch.manual_seed(0)
    model = Registers(toys.Plain())
    delay = ll.delay_attention(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.5)
    delay.watch(optimizer)
    loss_of(model, toys.tokens()).backward()
    optimizer.step()
    assert delay.starved == (model.register,)
    assert torch.equal(model.register, torch.ones(1, 1, toys.WIDTH))
    assert model.register not in optimizer.state
    delay.open()
    loss_of(model, toys.tokens()).backward()
    optimizer.step()
    assert not torch.equal(model.register, torch.ones(1, 1, toys.WIDTH))


def test_every_spelling_of_attention_is_one_call() -> None:
    model = model_of(toys.Plain, toys.InFunction, toys.Router, toys.LinearMixer).eval()
    tokens = toys.tokens()
    seen = watch_forward(model, lambda: model(tokens), tokens)
    assert [call.modules[-1] for call in seen.attention] == ["blocks.0.attn", "blocks.1"]
    assert [call.modules[-1] for call in seen.softmax] == ["blocks.2", "blocks.3", "blocks.3"]


def test_where_no_batch_can_be_made_up_it_is_found_by_names_and_says_so() -> None:
    class Curious(toys.Model):
        """Takes something that nobody would guess."""

        def forward(self, tokens: torch.Tensor, how: str) -> torch.Tensor:
            return super().forward(tokens) * len(how)

    torch.manual_seed(0)
    model = Curious(toys.Plain())
    with pytest.warns(DelayWarning, match="nothing was tried, since no batch could be made up: hand over batch="):
        delay = ll.delay_attention(model)
    assert delay.check((toys.tokens(), "so")).off == ("blocks.0.attn",)
    delay.remove()
    assert ll.delay_attention(model, batch=(toys.tokens(), "so")).whole


def test_a_link_of_a_chain_hands_its_input_on() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(toys.WORDS, toys.WIDTH), toys.Attention(), nn.Linear(toys.WIDTH, toys.WORDS))
    delay = ll.delay_attention(model)
    assert [(site.name, str(site.stand_in)) for site in delay.sites] == [("1", "its input")]
    assert torch.equal(model(toys.tokens()), model[2](model[0](toys.tokens())))
    assert delay.check(toys.tokens()).left == ()
