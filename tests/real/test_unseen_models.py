"""Models that somebody thought of to mislead the search: each is right, refused with what to do, or told of."""

from __future__ import annotations

import copy
import random
from collections import Counter, deque
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations
from torch.optim import AdamW
from torch.utils.checkpoint import checkpoint

import lengthlab as ll
from lengthlab.errors import LabError
from lengthlab.switch import DelayWarning

D = 16


def tokens() -> Tensor:
    return torch.randint(0, 32, (2, 9), generator=torch.Generator().manual_seed(0))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return (q @ k.mT).softmax(-1)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        seen = x if context is None else context
        mixed: Tensor = self.out(self.weights(self.q(x), self.k(seen)) @ self.v(seen))
        return mixed


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(D, 32), nn.GELU(), nn.Linear(32, D))


class Block(nn.Module):
    def __init__(self, attn: nn.Module | None = None, feed: nn.Module | None = None) -> None:
        super().__init__()
        self.norm, self.attn, self.mlp = nn.LayerNorm(D), attn or Attention(), feed or mlp()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm(x))
        return x + self.mlp(x)


class Lm(nn.Module):
    def __init__(self, *blocks: nn.Module) -> None:
        super().__init__()
        self.embed, self.blocks, self.head = nn.Embedding(32, D), nn.ModuleList(blocks), nn.Linear(D, 32)

    def forward(self, t: Tensor) -> Tensor:
        x = self.embed(t)
        for block in self.blocks:
            x = block(x)
        said: Tensor = self.head(x)
        return said


def off(model: nn.Module, batch: object = None, **options: object) -> list[str]:
    """What is off, after a check has found it right."""
    delay = ll.delay_attention(model, batch=batch, **options)  # type: ignore[arg-type]
    delay.check(tokens() if batch is None else batch)
    return [site.name for site in delay.sites]


# Routers


class Experts(nn.Module):
    """Weighs experts by a softmax; `router` makes its matrix of what it has."""

    def __init__(self, router: Callable[[nn.Linear], Tensor], wrap: Callable[[nn.Linear], nn.Module] = nn.Identity()) -> None:
        super().__init__()
        self.gate = wrap(nn.Linear(D, 3, bias=False))
        self.experts, self._router = nn.ModuleList(mlp() for _ in range(3)), router

    def forward(self, x: Tensor) -> Tensor:
        weights = (x @ self._router(self.gate).T).softmax(-1)  # type: ignore[arg-type]
        return sum((weights[..., i : i + 1] * each(x) for i, each in enumerate(self.experts)), torch.zeros(()))


ROUTERS: dict[str, Callable[[], Experts]] = {
    "cosine": lambda: Experts(lambda gate: F.normalize(gate.weight, dim=-1)),
    "scaled": lambda: Experts(lambda gate: gate.weight * 4.0),
    "joined": lambda: Experts(lambda gate: torch.cat([gate.weight[:1], gate.weight[1:]])),
    "weight norm": lambda: Experts(lambda gate: gate.weight, parametrizations.weight_norm),
    "spectral norm": lambda: Experts(lambda gate: gate.weight, parametrizations.spectral_norm),
}


@pytest.mark.parametrize("name", ROUTERS)
def test_a_router_is_left_alone_whatever_is_done_to_its_weights(name: str) -> None:
    torch.manual_seed(0)
    assert off(Lm(Block(feed=ROUTERS[name]()))) == ["blocks.0.attn"]


def test_latents_that_look_at_the_input_are_attention_even_where_they_are_as_many_as_it_is_long() -> None:
    class Latents(nn.Module):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.latents, self.attn, self.back = nn.Parameter(torch.randn(number, D)), Attention(), Attention()

        def forward(self, x: Tensor) -> Tensor:
            read = self.attn(self.latents.expand(len(x), -1, -1), x)
            return x + self.back(x, read)

    for number in (4, 9, 11):
        torch.manual_seed(0)
        assert off(Lm(Latents(number), Block())) == ["blocks.0.attn", "blocks.0.back", "blocks.1.attn"]


def test_attention_whose_maps_are_computed_is_found() -> None:
    torch.manual_seed(0)
    model = Lm(Block(), Block())
    for block in model.blocks:
        for name in ("q", "k", "v"):
            parametrizations.weight_norm(getattr(block.attn, name))
    assert off(model) == ["blocks.0.attn", "blocks.1.attn"]


# Attention that is written otherwise


class ByExponential(Attention):
    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        powers = (q @ k.mT).exp()
        return powers / powers.sum(-1, keepdim=True)


class ByLogarithm(Attention):
    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return (q @ k.mT).log_softmax(-1).exp()


@pytest.mark.parametrize("kind", [ByExponential, ByLogarithm])
def test_a_softmax_written_by_hand_beside_another_is_refused_and_can_be_named(kind: type[Attention]) -> None:
    torch.manual_seed(0)
    model = Lm(Block(), Block(kind()))
    with pytest.raises(LabError, match=r"in 'blocks.1.attn' \(By.*\) an exponential of scores is taken"):
        ll.delay_attention(model)
    named = ll.delay_attention(model, modules="blocks.*.attn")
    assert named.check(tokens()).left == ()


class Additive(Attention):
    """Bahdanau's."""

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return torch.tanh(q[:, :, None] + k[:, None]).sum(-1).softmax(-1)


class Elementwise(Attention):
    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return (q[:, :, None] * k[:, None]).sum(-1).softmax(-1)


class ByDistance(Attention):
    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return (-torch.cdist(q, k)).softmax(-1)


@pytest.mark.parametrize("kind", [Additive, Elementwise, ByDistance])
def test_a_softmax_of_something_else_that_weighs_values_is_told_of(kind: type[Attention]) -> None:
    torch.manual_seed(0)
    with pytest.warns(DelayWarning, match=r"in 'blocks.1.attn' values are weighed by a softmax of something else"):
        delay = ll.delay_attention(Lm(Block(), Block(kind())))
    assert [site.name for site in delay.sites] == ["blocks.0.attn"]


class LinearMixer(nn.Module):
    """Softmax of queries and of keys, each by itself, and no map at its end."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (each(x).unflatten(-1, (2, D // 2)).transpose(1, 2) for each in (self.q, self.k, self.v))
        return x + (q.softmax(-1) @ (k.softmax(-2).mT @ v)).transpose(1, 2).flatten(2)


def test_linear_attention_is_none_however_many_layers_of_it_there_are() -> None:
    torch.manual_seed(0)
    with pytest.raises(LabError, match="no softmax attention found in Lm"):
        ll.delay_attention(Lm(LinearMixer(), LinearMixer()))
    with pytest.warns(DelayWarning, match=r"in 'blocks.1', 'blocks.2' values are weighed by a softmax"):
        delay = ll.delay_attention(Lm(Block(), LinearMixer(), LinearMixer()))
    assert [site.name for site in delay.sites] == ["blocks.0.attn"]


class Laser(Attention):
    """Weighs exponentials of values, and takes the logarithm: with weights of zero it gives a large constant."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        weights = self.dropout(self.weights(self.q(x), self.k(x)))
        mixed: Tensor = self.out((weights @ self.v(x).exp() + 1e-20).log())
        return mixed


def test_attention_that_gives_a_constant_for_weights_of_zero_is_refused_and_can_be_named() -> None:
    torch.manual_seed(0)
    with pytest.raises(LabError, match=r"attention is computed in 'blocks.0.attn', and no module in it can be left out"):
        ll.delay_attention(Lm(Block(Laser())))
    assert ll.delay_attention(Lm(Block(Laser())), modules="attn").check(tokens()).off == ("blocks.0.attn",)


# Where leaks hide


class Inline(nn.Module):
    """Adds its attention itself and maps the result, so that no module of it can be left out."""

    def __init__(self, share: float = 1.0) -> None:
        super().__init__()
        self.qkv, self.mlp, self.share = nn.Linear(D, 3 * D), mlp(), share

    def forward(self, x: Tensor) -> Tensor:
        seen = F.scaled_dot_product_attention(*self.qkv(x).chunk(3, -1))
        return x + self.mlp(x + self.share * seen)


class Masked(Lm):
    def forward(self, t: Tensor) -> Tensor:
        return super().forward(t).masked_fill(torch.arange(32) >= 30, float("-inf"))


@pytest.mark.parametrize("share", [1.0, 1e-4])
@pytest.mark.parametrize("kind", [Lm, Masked])
def test_a_leak_is_seen_beside_large_numbers_and_where_it_is_small(kind: type[Lm], share: float) -> None:
    torch.manual_seed(0)
    with pytest.raises(LabError, match=r"attention is computed in 'blocks.1', and no module in it can be left out"):
        ll.delay_attention(kind(Block(), Inline(share)))
    named = ll.delay_attention(kind(Block(), Inline(share)), modules="blocks.0.attn")
    assert named.check(tokens()).left == ("blocks.1",)


def test_attention_that_runs_in_training_alone_is_refused_and_seen_by_the_check() -> None:
    class Auxiliary(Lm):
        def __init__(self) -> None:
            super().__init__(Block())
            self.extra = Attention()

        def forward(self, t: Tensor) -> Tensor:
            x = self.blocks[0](self.embed(t))
            said: Tensor = self.head(x + self.extra(x) if self.training else x)
            return said

    torch.manual_seed(0)
    with pytest.raises(LabError, match="attention in 'extra' runs in training alone"):
        ll.delay_attention(Auxiliary())


# Inputs and outputs


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.own, self.other, self.mlp = mlp(), Attention(), Attention(), mlp()

    def forward(self, x: Tensor, source: Tensor) -> Tensor:
        x = x + self.own(x)
        x = x + self.other(x, self.encoder(source))
        said: Tensor = x + self.mlp(x)
        return said


def test_another_sequence_is_known_by_where_it_comes_from() -> None:
    torch.manual_seed(0)
    batch = torch.randn(2, 6, D), torch.randn(2, 7, D)
    assert off(Decoder(), batch, cross=False) == ["own"]
    with pytest.warns(DelayWarning, match="'encoder' will not learn while attention is off"):
        assert off(Decoder(), batch) == ["own", "other"]


class WithClass(Lm):
    """Says the class of a sequence in the first row of what it says of tokens."""

    def __init__(self) -> None:
        super().__init__(Block(), Block())
        self.first = nn.Parameter(torch.randn(1, 1, D))

    def forward(self, t: Tensor) -> Tensor:
        x = torch.cat([self.first.expand(len(t), 1, D), self.embed(t)], 1)
        for block in self.blocks:
            x = block(x)
        said: Tensor = self.head(x)
        return said


def test_rows_that_only_attention_reaches_are_told_of() -> None:
    torch.manual_seed(0)
    with pytest.warns(DelayWarning, match="some rows of an output, such as a class token's, are the same for any input"):
        delay = ll.delay_attention(WithClass())
    assert "Some rows of an output" in str(delay.check(tokens()))


def test_a_recurrence_in_what_is_off_is_told_of() -> None:
    class Branches(nn.Module):
        """An LSTM and a GRU, weighed for each token by a softmax."""

        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.gru, self.q = nn.LSTM(D, D, batch_first=True), nn.GRU(D, D, batch_first=True), nn.Linear(D, D)

        def forward(self, x: Tensor) -> Tensor:
            both = torch.stack([self.lstm(x)[0], self.gru(x)[0]], 2)
            weights = (both @ self.q(x)[..., None]).squeeze(-1).softmax(-1)
            return (weights[..., None] * both).sum(2)

    class Around(Block):
        def __init__(self) -> None:
            super().__init__(Branches())

    torch.manual_seed(0)
    with pytest.warns(DelayWarning, match=r"'blocks.0.attn' is off, and a recurrence is in it"):
        ll.delay_attention(Lm(Around()))


# What stays of a trial: nothing


def test_a_trial_draws_counts_and_remembers_nothing() -> None:
    class Remembering(Lm):
        def __init__(self) -> None:
            super().__init__(Block())
            self.generator = torch.Generator().manual_seed(0)
            self.table, self.last, self.seen = torch.zeros(3), deque([0], maxlen=4), Counter({"forwards": 0})
            self.nested = {"of": [torch.zeros(2)]}

        def forward(self, t: Tensor) -> Tensor:
            random.random()
            np.random.rand()
            torch.rand(1, generator=self.generator)
            self.table += 1
            self.last.append(1)
            self.seen["forwards"] += 1
            self.nested["of"][0] += 1
            self.nested["of"].append(torch.ones(1))
            return super().forward(t)

    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    model = Remembering()
    before = random.getstate(), np.random.get_state()[1].tolist(), model.generator.get_state()
    ll.delay_attention(model).check(tokens())
    assert random.getstate() == before[0]
    assert np.random.get_state()[1].tolist() == before[1]
    assert torch.equal(model.generator.get_state(), before[2])
    assert model.table.tolist() == [0, 0, 0]
    assert (list(model.last), dict(model.seen)) == ([0], {"forwards": 0})
    assert [each.tolist() for each in model.nested["of"]] == [[0.0, 0.0]]


def test_an_optimizer_that_steps_in_the_backward_does_not_in_a_trial() -> None:
    class Checkpointed(Lm):
        def forward(self, t: Tensor) -> Tensor:
            x = self.embed(t)
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=True) if torch.is_grad_enabled() else block(x)
            said: Tensor = self.head(x)
            return said

    torch.manual_seed(0)
    model = Checkpointed(Block())

    def step(parameter: Tensor) -> None:
        parameter.data.sub_(parameter.grad)  # type: ignore[arg-type]

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    before = copy.deepcopy(model.state_dict())
    delay = ll.delay_attention(model)
    delay.check(tokens())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    model(tokens()).sum().backward()
    assert not torch.equal(model.head.weight, before["head.weight"])


# Later


def test_closed_again_nothing_moves_on_gradients_of_zeros() -> None:
    torch.manual_seed(0)
    model = Lm(Block())
    delay = ll.delay_attention(model)
    delay.open()
    optimizer = AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    delay.watch(optimizer)

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        model(tokens()).square().mean().backward()
        optimizer.step()

    step()
    optimizer.zero_grad(set_to_none=False)
    delay.close()
    still = copy.deepcopy(model.blocks[0].norm.state_dict())
    learns = model.head.weight.detach().clone()
    for _ in range(3):
        step()
    assert all(torch.equal(value, still[name]) for name, value in model.blocks[0].norm.state_dict().items())
    assert not torch.equal(model.head.weight, learns)


def test_a_copy_that_nobody_will_open_says_so_once() -> None:
    torch.manual_seed(0)
    model = Lm(Block())
    delay = ll.delay_attention(model, until=1)
    average = copy.deepcopy(model)
    delay.step()
    assert delay.is_open
    with torch.no_grad(), pytest.warns(DelayWarning, match=r"delay.mirror\(copy\) opens a copy together with its model"):
        average(tokens())
    average(tokens())
