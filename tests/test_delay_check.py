"""`delay.check(batch)`: right, or an error that names the module and what to do."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import lengthlab as ll
import toy_blocks as toys
from lengthlab.errors import LabError


def model_of(*kinds: type[nn.Module]) -> toys.Model:
    torch.manual_seed(0)
    return toys.Model(*(kind() for kind in kinds))


def test_a_right_delay_is_told_in_words() -> None:
    model = model_of(toys.Plain, toys.Plain)
    report = ll.delay_attention(model).check(toys.tokens())
    assert report.off == ("blocks.0.attn", "blocks.1.attn")
    assert report.left == report.unused == report.still == ()
    assert str(report).splitlines() == [
        "2 modules are off, were called, and give what fits: the input reaches every output.",
        "Learn once it is open, and have no gradient until then: 'blocks.0.norm', 'blocks.1.norm'.",
    ]


def test_a_check_leaves_no_trace() -> None:
    model = model_of(toys.Plain).train()
    delay = ll.delay_attention(model)
    state, forwards = torch.get_rng_state(), [vars(module).get("forward") for module in model.modules()]
    delay.check(toys.tokens())
    assert torch.equal(torch.get_rng_state(), state)
    assert [vars(module).get("forward") for module in model.modules()] == forwards
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_part_that_has_the_only_way_to_the_output_is_named() -> None:
    delay = ll.delay(model_of(toys.Plain), "table", instead=lambda tokens: torch.zeros(*tokens.shape, toys.WIDTH))
    with pytest.raises(LabError, match=r"with 'table' off, output 0 of the model is the same for any input"):
        delay.check(toys.tokens())


def test_a_stand_in_of_another_shape_is_an_error() -> None:
    class Halving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.Linear(toys.WIDTH, toys.WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            return self.map(x.mean(1, keepdim=True))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pool = Halving()

        def forward(self, x: Tensor) -> Tensor:
            return x + self.pool(x)

    delay = ll.delay(toys.Model(Block()), "blocks.0.pool")
    with pytest.raises(LabError, match=r"'blocks.0.pool' gives a tensor of shape \(2, 1, 16\).* \(2, 9, 16\).*instead="):
        delay.check(toys.tokens())


def test_a_site_that_is_never_called_is_an_error() -> None:
    delay = ll.delay(model_of(toys.ByMethod), "attn")
    with pytest.raises(LabError, match=r"'blocks.0.attn' should be off and was never called: the model calls a method of it"):
        delay.check(toys.tokens())


def test_attention_that_is_named_may_leave_other_attention_on_and_the_report_says_where() -> None:
    delay = ll.delay_attention(model_of(toys.Plain, toys.InFunction), modules="blocks.0.attn")
    assert delay.check(toys.tokens()).left == ("blocks.1",)


def test_attention_that_came_after_the_delay_was_made_is_found() -> None:
    model = model_of(toys.Plain)
    delay = ll.delay_attention(model)
    model.blocks.append(toys.InFunction())
    with pytest.raises(LabError, match=r"attention is still on in 'blocks.1' \(InFunction\)"):
        delay.check(toys.tokens())


def test_a_module_that_was_exchanged_is_found() -> None:
    model = model_of(toys.Plain)
    delay = ll.delay_attention(model)
    model.blocks[0].attn = toys.Attention()
    with pytest.raises(LabError, match=r"'blocks.0.attn' is not in the model that is checked"):
        delay.check(toys.tokens())


def test_values_that_others_take_from_a_part_that_is_off_are_missed() -> None:
    class Sharing(toys.Attention):
        def forward(self, x: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor]:
            bias = torch.eye(x.shape[1]) * 3 if bias is None and self.first else bias
            weights = torch.softmax(x @ x.transpose(1, 2) + (0 if bias is None else bias), -1)
            return self.out(weights @ x), bias

    class Layered(toys.Model):
        def forward(self, tokens: Tensor) -> Tensor:
            x, bias = self.table(tokens), None
            for block in self.blocks:
                mixed, bias = block(x, bias)
                x = x + mixed
            return self.head(x)

    torch.manual_seed(0)
    model = Layered(Sharing(), Sharing())
    model.blocks[0].first, model.blocks[1].first = True, False
    missed = r"with 'blocks.0' off the model gives other numbers .* table of relative positions"
    with pytest.raises(LabError, match=missed):
        ll.delay_attention(model, modules="blocks.0")
    with pytest.raises(LabError, match=missed):
        ll.delay(model, "blocks.0").check(toys.tokens())


def test_a_batch_that_the_model_does_not_take_is_told_as_such() -> None:
    delay = ll.delay_attention(model_of(toys.Plain))
    with pytest.raises(LabError, match=r"with everything on the model does not run on this batch \(.*\): try it on one"):
        delay.check(torch.randn(2, 3))
    with pytest.raises(
        LabError, match=r"a batch is a tensor, a tuple of the forward's arguments or a mapping of them, not a str"
    ):
        delay.check("tokens")


def test_an_open_delay_has_nothing_to_check() -> None:
    delay = ll.delay_attention(model_of(toys.Plain))
    delay.open()
    with pytest.raises(LabError, match="the delay is open"):
        delay.check(toys.tokens())


def test_a_model_inside_another_is_checked_through_it() -> None:
    class Holder(nn.Module):
        def __init__(self, model: nn.Module) -> None:
            super().__init__()
            self.gpt = model

        def forward(self, batch: Tensor) -> Tensor:
            return self.gpt(batch)

    model = model_of(toys.Plain)
    delay = ll.delay_attention(model)
    assert delay.check(toys.tokens(), Holder(model)).off == ("gpt.blocks.0.attn",)
