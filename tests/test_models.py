"""The architectures are what the paper says: causal, of any length, and equal to slow loops written here.

Shapes: B samples, T tokens, D width, H heads, C channels of a head, Q positions asked, V vocabulary. Networks are compared in
fp64, where a rounding error cannot be taken for a leak and a leak not for a rounding error.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lengthlab.errors import LabError
from lengthlab.models import (
    MODELS,
    Attention,
    LogN,
    Lstm,
    Mlp,
    Model,
    NoPositions,
    PlainScores,
    Rope,
    chain,
    named,
    parallel,
    repeat,
    residual,
)
from lengthlab.models.attention.rotation import rotate, rotation_table
from lengthlab.models.layout import Layout
from lengthlab.models.model import logits
from lengthlab.models.outline import outline
from lengthlab.spec.schedule import OFF, Covers
from lengthlab.switch import delay, find

VOCABULARY = 11
CHOICES = list(product(("rope", "none"), ("none", "log-n")))
CASES: list[tuple[str, dict[str, Any]]] = [("lstm", {})] + [
    (name, {"positions": positions, "scores": scores}) for name in MODELS if name != "lstm" for positions, scores in CHOICES
]
CASES += [(name, {"positions": "none", "scores": "log-n", "local": 3}) for name in ("transformer", "hybrid-block")]
IDS = [" ".join((name, *map(str, choices.values()))) for name, choices in CASES]
every_model = pytest.mark.parametrize(("name", "choices"), CASES, ids=IDS)
every_attention = pytest.mark.parametrize(("positions", "scores"), CHOICES)
quick = settings(max_examples=25)


def network_of(name: str, choices: dict[str, str]) -> nn.Module:
    """Small, in fp64, and with weights far enough from zero that every part has a say."""
    torch.manual_seed(0)
    sizes = {} if name == "lstm" else {"blocks": 2, "heads": 2, "mlp": 2}
    network = MODELS[name](width=8, **sizes, **choices).build(VOCABULARY).double()
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.5)
    return network


def tokens(size: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(VOCABULARY, (size, length), generator=torch.Generator().manual_seed(seed))


def same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=0, atol=1e-10)


@every_model
def test_no_model_looks_ahead(name: str, choices: dict[str, str]) -> None:
    network, tokens_BT = network_of(name, choices), tokens(2, 9)
    before_BTV = network(tokens_BT)
    for t in (0, 3, 7):
        changed_BT = tokens_BT.clone()
        changed_BT[:, t + 1 :] = (changed_BT[:, t + 1 :] + 1) % VOCABULARY
        after_BTV = network(changed_BT)
        assert same(after_BTV[:, : t + 1], before_BTV[:, : t + 1])
        assert not same(after_BTV[:, t + 1 :], before_BTV[:, t + 1 :])


@every_model
def test_every_token_so_far_has_a_say(name: str, choices: dict[str, str]) -> None:
    network, tokens_BT = network_of(name, choices), tokens(1, 6)
    for t in range(6):
        changed_BT = tokens_BT.clone()
        changed_BT[:, t] = (changed_BT[:, t] + 1) % VOCABULARY
        assert not same(network(changed_BT)[:, -1], network(tokens_BT)[:, -1])


@every_model
def test_padding_on_the_right_changes_no_answer(name: str, choices: dict[str, str]) -> None:
    network, tokens_BT = network_of(name, choices), tokens(3, 7)
    padded_BT = F.pad(tokens_BT, (0, 5))
    assert same(network(padded_BT)[:, :7], network(tokens_BT))


@every_model
def test_a_sample_is_answered_alike_alone_and_in_a_batch(name: str, choices: dict[str, str]) -> None:
    network, tokens_BT = network_of(name, choices), tokens(3, 5)
    alone_BTV = torch.cat([network(row_T[None]) for row_T in tokens_BT])
    assert same(alone_BTV, network(tokens_BT))


@every_model
@pytest.mark.parametrize(("size", "length"), [(1, 1), (2, 1), (1, 40), (5, 3)])
def test_any_batch_of_any_length_is_read(name: str, choices: dict[str, str], size: int, length: int) -> None:
    logits_BTV = network_of(name, choices)(tokens(size, length))
    assert logits_BTV.shape == (size, length, VOCABULARY)
    assert logits_BTV.isfinite().all()


AT_BQ = torch.tensor([[0, 5], [2, 2], [4, 1]])


def gathered(whole_BTV: Tensor) -> Tensor:
    return torch.stack([whole_TV[at_Q] for whole_TV, at_Q in zip(whole_BTV, AT_BQ, strict=True)])


def gradients(network: nn.Module, logits_BQV: Tensor) -> list[Tensor | None]:
    pull_BQV = torch.randn(logits_BQV.shape, dtype=logits_BQV.dtype, generator=torch.Generator().manual_seed(2))
    return list(torch.autograd.grad(logits_BQV, list(network.parameters()), pull_BQV, allow_unused=True))


def asks_alike(network: nn.Module) -> bool:
    """Whether what is asked at a few positions, and the gradient it sends back, is that of the whole."""
    asked_BQV, wanted_BQV = network(tokens(3, 6), Layout(query_BQ=AT_BQ)), gathered(network(tokens(3, 6)))
    pairs = zip(gradients(network, asked_BQV), gradients(network, wanted_BQV), strict=True)
    alike = all((one is None and other is None) or same(one, other) for one, other in pairs)
    return alike and same(asked_BQV, wanted_BQV) and same(logits(network, tokens(3, 6), Layout(query_BQ=AT_BQ)), wanted_BQV)


@every_model
def test_logits_asked_for_are_those_of_the_whole(name: str, choices: dict[str, str]) -> None:
    assert asks_alike(network_of(name, choices))


@pytest.mark.parametrize("part", ["attention", "attend", "mlp", "lstm", "norm"])
@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("lstm", "transformer")])
def test_logits_asked_for_are_those_of_the_whole_while_a_part_is_off(name: str, part: str) -> None:
    network = network_of(name, {"positions": "rope", "scores": "log-n"})
    delay(network, part)
    assert asks_alike(network)


class Running(nn.Linear):
    """Someone's module: causal, mixing tokens, and of a kind that usually does not."""

    def forward(self, x_BTD: Tensor) -> Tensor:
        return super().forward(x_BTD).cumsum(dim=1)


@dataclass(frozen=True)
class Average:
    """Someone's part, which knows nothing of positions asked for."""

    bare: bool = False

    def build(self, width: int) -> nn.Module:
        return Running(width, width) if self.bare else nn.Sequential(Running(width, width))


BODIES = {
    "alone": lambda part: part,
    "before an mlp": lambda part: chain(part, Mlp(2)),
    "after attention": lambda part: chain(Attention(2), residual(Mlp(2)), part),
    "before attention": lambda part: chain(part, Attention(2), residual(Mlp(2))),
    "in a residual": lambda part: chain(residual(part), residual(Mlp(2))),
    "beside an mlp": lambda part: chain(parallel(part, Mlp(2)), Mlp(2)),
    "again and again": lambda part: repeat(3, chain(residual(Mlp(2)), part)),
    "around nothing": lambda part: chain(part, chain()),
}


@pytest.mark.parametrize("body", BODIES)
def test_logits_asked_for_are_those_of_the_whole_around_a_part_of_ones_own(body: str) -> None:
    torch.manual_seed(0)
    assert asks_alike(Model("mine", 8, BODIES[body](Average())).build(VOCABULARY).double())


def test_a_part_of_ones_own_that_extends_a_linear_map_is_not_taken_for_one() -> None:
    torch.manual_seed(0)
    assert asks_alike(Model("mine", 8, chain(Average(bare=True), Mlp(2))).build(VOCABULARY).double())


def test_a_module_that_knows_nothing_of_layouts_gives_logits_where_they_are_wanted() -> None:
    network = nn.Sequential(nn.Embedding(VOCABULARY, 4), nn.Linear(4, VOCABULARY))
    query_BQ = torch.tensor([[1], [3]])
    logits_BQV = logits(network, tokens(2, 4), Layout(query_BQ=query_BQ))
    assert same(logits_BQV, network(tokens(2, 4))[torch.arange(2)[:, None], query_BQ])


def default_parameters(name: str, vocabulary: int, width: int = 256, blocks: int = 4) -> int:
    """By hand. LSTM: 4 gates of two matrices and two biases. Block: 4 projections, an MLP 4 times as wide inside, 2 norms."""
    norm = 2 * width
    lstm = 4 * (2 * width * width + 2 * width)
    projections = 4 * (width * width + width)
    mlp = (width * 4 * width + 4 * width) + (4 * width * width + width)
    attention = blocks * (projections + mlp + 2 * norm)
    bodies = {
        "transformer": attention,
        "lstm": lstm,
        "attention-on-lstm": lstm + attention,
        "lstm-on-attention": attention + lstm,
        "parallel": lstm + attention,
        "hybrid-block": lstm + norm + attention,
        "sandwich": 2 * lstm + attention,
    }
    return vocabulary * width + bodies[name] + (width * vocabulary + vocabulary)


@pytest.mark.parametrize("name", MODELS)
def test_the_defaults_have_the_parameters_counted_by_hand(name: str) -> None:
    with torch.device("meta"):
        network = MODELS[name]().build(142)
    assert sum(parameter.numel() for parameter in network.parameters()) == default_parameters(name, 142)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "lstm"])
def test_the_defaults_are_four_post_norm_blocks_with_rope_and_plain_scores(name: str) -> None:
    default = MODELS[name]()
    assert default == MODELS[name](width=256, blocks=4, heads=8, mlp=4, positions=Rope(10_000.0), scores=PlainScores())
    with torch.device("meta"):
        network = default.build(142)
    assert len(find(network, "attend")) == 4


def test_log_n_adds_one_factor_for_each_head_of_each_block() -> None:
    sizes = {"width": 8, "blocks": 3, "heads": 4}
    plain, scaled = (
        sum(p.numel() for p in MODELS["transformer"](**sizes, scores=scores).build(5).parameters())
        for scores in ("none", "log-n")
    )
    assert scaled - plain == 3 * 4


def stream(length: int = 5, width: int = 8) -> Tensor:
    return torch.randn(2, length, width, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_parallel_is_the_sum_of_its_parts() -> None:
    made, x_BTD = parallel(Lstm(), named("other", Mlp()), named("third", Lstm())).build(8).double(), stream()
    lstm, other, third = (made.get_submodule(name) for name in ("lstm", "other", "third"))
    assert same(made(x_BTD), lstm(x_BTD) + other(x_BTD) + third(x_BTD))


def test_chain_is_one_part_after_the_other() -> None:
    made, x_BTD = chain(Lstm(), named("other", Mlp())).build(8).double(), stream()
    assert same(made(x_BTD), made.get_submodule("other")(made.get_submodule("lstm")(x_BTD)))


def test_residual_adds_first_and_normalises_after() -> None:
    made, x_BTD = residual(Mlp()).build(8).double(), stream()
    nn.init.normal_(made.norm.weight)
    sum_BTD = x_BTD + made.get_submodule("mlp")(x_BTD)
    centred_BTD = sum_BTD - sum_BTD.mean(dim=-1, keepdim=True)
    spread_BT1 = (centred_BTD.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    assert same(made(x_BTD), centred_BTD / spread_BT1 * made.norm.weight + made.norm.bias)


def test_repeat_gives_each_its_own_weights() -> None:
    made, x_BTD = repeat(3, Mlp()).build(8).double(), stream()
    first, second, third = made.children()
    assert same(made(x_BTD), third(second(first(x_BTD))))
    assert len({parameter.data_ptr() for parameter in made.parameters()}) == 3 * 4
    assert not same(first[0].weight, second[0].weight)


def test_parts_of_one_kind_are_told_apart_by_number() -> None:
    made = chain(Lstm(), Lstm(), named("lstm", Lstm())).build(4)
    assert [name for name, _ in made.named_children()] == ["lstm", "lstm-2", "lstm-3"]


def test_no_part_is_lost_to_another_of_its_name() -> None:
    made = chain(named("lstm-2", Lstm()), Lstm(), Lstm()).build(4)
    assert len(made) == 3


def test_a_part_named_norm_is_refused_in_a_residual_where_it_would_be_lost() -> None:
    with pytest.raises(LabError, match="norm"):
        residual(named("norm", Lstm())).build(8)


@pytest.mark.parametrize("name", ["forward", "training", "type"])
def test_a_name_that_every_module_has_already_is_refused(name: str) -> None:
    with pytest.raises(LabError, match=name):
        chain(named(name, Lstm())).build(8)


@pytest.mark.parametrize("name", ["", "a.b", "a b", "-"])
def test_a_name_that_no_schedule_could_speak_of_is_refused(name: str) -> None:
    with pytest.raises(LabError, match="the name of a part is made of letters, digits, - and _"):
        named(name, Lstm())


def turned(x_C: Tensor, t: int, base: float = 10_000.0) -> Tensor:
    """RoPE by complex numbers: channels i and i + C/2 are one number, which turns by t * base^(-2i/C)."""
    half = x_C.shape[0] // 2
    turn_F = torch.tensor([cmath.exp(1j * t * base ** (-2 * i / x_C.shape[0])) for i in range(half)], dtype=torch.complex128)
    z_F = torch.complex(x_C[:half], x_C[half:]) * turn_F
    return torch.cat((z_F.real, z_F.imag))


def slow_attention(made: nn.Module, x_BTD: Tensor, heads: int, positions: str, scores: str) -> Tensor:
    """Attention by loops over samples, heads, queries and keys."""
    width = x_BTD.shape[2]
    c = width // heads
    rows = []
    for x_TD in x_BTD:
        q_TD = x_TD @ made.q.weight.T + made.q.bias
        k_TD, v_TD = (x_TD @ made.kv.weight[half].T + made.kv.bias[half] for half in (slice(width), slice(width, None)))
        for i in range(len(x_TD)):
            said = []
            for h in range(heads):
                cut = slice(h * c, (h + 1) * c)
                q_C, k_iC = q_TD[i, cut], [k_TD[j, cut] for j in range(i + 1)]
                if positions == "rope":
                    q_C, k_iC = turned(q_C, i), [turned(k_C, j) for j, k_C in enumerate(k_iC)]
                if scores == "log-n":
                    q_C = q_C * made.scores.scale_H[h] * math.log(i + 1)
                power = [((q_C * k_C).sum() / math.sqrt(c)).exp() for k_C in k_iC]
                said.append(sum(p * v_TD[j, cut] for j, p in enumerate(power)) / sum(power))
            rows.append(torch.cat(said) @ made.out.weight.T + made.out.bias)
    return torch.stack(rows).view_as(x_BTD)


@every_attention
def test_attention_equals_slow_loops_forward_and_backward(positions: str, scores: str) -> None:
    torch.manual_seed(0)
    made = Attention(2, positions, scores).build(8).double()
    if scores == "log-n":
        nn.init.uniform_(made.scores.scale_H, 0.2, 2.0)  # heads that differ, so that a swap of heads would show
    x_BTD = (2 * stream()).requires_grad_()
    pull_BTD = torch.randn_like(x_BTD)
    fast_BTD, slow_BTD = made(x_BTD), slow_attention(made, x_BTD, 2, positions, scores)
    assert same(fast_BTD, slow_BTD)
    leaves = [x_BTD, *made.parameters()]
    grads = zip(torch.autograd.grad(fast_BTD, leaves, pull_BTD), torch.autograd.grad(slow_BTD, leaves, pull_BTD), strict=True)
    assert all(same(fast, slow) and fast.abs().max() > 1e-6 for fast, slow in grads)


@given(st.integers(0, 2**31 - 1), st.sampled_from([2, 6, 8]), st.sampled_from([100.0, 10_000.0]))
@quick
def test_rope_scores_depend_on_distance_alone(seed: int, channels: int, base: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    q_C, k_C = torch.randn(2, channels, dtype=torch.float64, generator=generator)
    cos_TC, sin_TC = rotation_table(12, channels, base, torch.device("cpu"), torch.float64)
    q_TC, k_TC = (rotate(v_C.expand(12, -1), cos_TC, sin_TC) for v_C in (q_C, k_C))
    score_TT = q_TC @ k_TC.T
    for distance in range(12):
        diagonal = score_TT.diagonal(-distance)
        assert same(diagonal, diagonal[:1].expand_as(diagonal))
    assert not same(score_TT[-1, :1], score_TT[-1, -1:])


def test_attention_without_positions_sees_a_set_and_with_rope_an_order() -> None:
    torch.manual_seed(0)
    x_BTD = stream(6)
    shuffled_BTD = torch.cat((x_BTD[:, [3, 1, 4, 0, 2]], x_BTD[:, 5:]), dim=1)
    for positions, order_matters in (("none", False), ("rope", True)):
        made = Attention(2, positions).build(8).double()
        assert same(made(x_BTD)[:, -1], made(shuffled_BTD)[:, -1]) is not order_matters


@pytest.mark.parametrize("covers", list(OFF))
def test_a_look_back_is_off_with_attention_whatever_that_covers(covers: Covers) -> None:
    network = network_of("hybrid-block", {"positions": "none", "local": 1})
    switch = delay(network, list(OFF[covers]))
    closed = network(tokens(2, 5))
    nn.init.normal_(network.body.attention.residual.attend.out.weight)  # type: ignore[union-attr, arg-type]
    assert same(network(tokens(2, 5)), closed)
    switch.open()
    opened = network(tokens(2, 5))
    nn.init.normal_(network.body.attention.residual.attend.out.weight)  # type: ignore[union-attr, arg-type]
    assert not same(network(tokens(2, 5)), opened)


def test_a_look_back_tells_attention_without_positions_which_token_stood_before() -> None:
    tokens_1T = torch.tensor([[1, 2, 3, 4, 5, 6, 7]])
    swapped_1T = torch.tensor([[1, 3, 2, 4, 5, 6, 7]])

    def says(local: int) -> bool:
        torch.manual_seed(0)
        network = MODELS["transformer"](width=8, blocks=1, heads=2, positions="none", local=local).build(VOCABULARY).double()
        return same(network(tokens_1T)[:, -1], network(swapped_1T)[:, -1])

    assert says(0)
    assert not says(2)


def test_a_table_of_angles_made_in_inference_mode_serves_training() -> None:
    made = Attention(2).build(8).double()
    x_BTD = stream(length=23)  # a length no other test uses, since tables are kept by length
    with torch.inference_mode():
        made(x_BTD)
    made(x_BTD).sum().backward()
    assert made.kv.weight.grad is not None


def test_the_lstm_equals_a_loop_over_tokens() -> None:
    made, x_BTD = Lstm(layers=2).build(8).double(), stream()
    (lstm,) = (module for module in made.modules() if isinstance(module, nn.LSTM))
    for layer in range(2):
        cell = [getattr(lstm, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        x_BTD = loop_lstm(x_BTD, *cell)
    assert same(made(stream()), x_BTD)


def loop_lstm(x_BTD: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor) -> Tensor:
    """One layer: input, forget, cell and output gates, in that order."""
    h_BD = c_BD = torch.zeros_like(x_BTD[:, 0])
    out = []
    for x_BD in x_BTD.unbind(1):
        i_BD, f_BD, g_BD, o_BD = (x_BD @ w_x.T + b_x + h_BD @ w_h.T + b_h).chunk(4, dim=1)
        c_BD = f_BD.sigmoid() * c_BD + i_BD.sigmoid() * g_BD.tanh()
        h_BD = o_BD.sigmoid() * c_BD.tanh()
        out.append(h_BD)
    return torch.stack(out, dim=1)


def test_attention_takes_parts_and_names_alike() -> None:
    assert Attention(4, "rope", "log-n") == Attention(4, Rope(), LogN())
    assert Attention(4, "none", "none") == Attention(4, NoPositions(), PlainScores())
    assert Attention(4, Rope(base=500.0)).positions == Rope(base=500.0)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Attention(positions="rop"), "unknown positions 'rop'; did you mean 'rope'?"),
        (lambda: Attention(scores="logn"), "unknown scores 'logn'; did you mean 'log-n'?"),
        (lambda: Attention(heads=0), "model.heads must be at least 1, not 0"),
        (lambda: Attention(heads=3).build(8), "model.heads = 3 does not divide model.width = 8"),
        (lambda: MODELS["sandwich"](width=8, heads=3).build(5), "model.heads = 3 does not divide model.width = 8"),
        (lambda: MODELS["sandwich"](width=9, heads=3).build(5), "a head needs an even width, not 3"),
        (lambda: MODELS["transformer"](blocks=0), "model.blocks must be at least 1, not 0"),
        (lambda: MODELS["transformer"](local=-1), "model.local must be at least 0, not -1"),
        (lambda: MODELS["transformer"](mlp=0), "model.mlp must be at least 1, not 0"),
        (lambda: MODELS["lstm"](width=0), "model.width must be at least 1, not 0"),
        (lambda: Lstm(layers=0), "lstm.layers must be at least 1, not 0"),
        (lambda: LogN(first=0.0), "scores.first must be above 0, not 0.0"),
    ],
)
def test_sizes_that_make_no_model_are_refused(make: object, told: str) -> None:
    with pytest.raises(LabError) as caught:
        make()  # type: ignore[operator]
    assert told in str(caught.value)


@every_model
def test_the_outline_adds_up_to_the_parameters(name: str, choices: dict[str, str]) -> None:
    sizes = {} if name == "lstm" else {"blocks": 3, "heads": 2}
    model = MODELS[name](width=8, **sizes, **choices)
    lines = outline(model, VOCABULARY)
    network = model.build(VOCABULARY)
    assert sum(line.parameters for line in lines if line.depth == 0) == sum(p.numel() for p in network.parameters())
    for line in lines:
        module = network.get_submodule(line.path)
        assert line.parameters == sum(p.numel() for p in module.parameters())
        assert not line.off


@pytest.mark.parametrize("part", ["attention", "attend"])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "lstm"])
def test_the_outline_marks_what_is_off_and_all_in_it(name: str, part: str) -> None:
    model = MODELS[name](width=8, blocks=2, heads=2)
    off = [site.name for site in find(model.build(VOCABULARY), part)]
    marked = {line.path: line.off for line in outline(model, VOCABULARY, off)}
    assert {path for path, is_off in marked.items() if is_off} == {path for path in marked if part in path.split(".")}
    assert not marked["embedding"]
    assert any(marked.values())


@dataclass(frozen=True)
class Backwards:
    """A user's own positions: none at all, told from the other end."""

    def build(self, channels: int) -> nn.Module:
        return NoPositions().build(channels)


def test_the_outline_of_attention_with_positions_of_ones_own_can_be_read() -> None:
    model = Model("mine", 8, chain(Attention(2, Backwards())))
    lines = outline(model, VOCABULARY)
    assert "backwards" in lines[1].text.lower()


def test_an_eighth_architecture_trains() -> None:
    torch.manual_seed(0)
    block = chain(residual(parallel(Lstm(), named("look", Attention(2, "none", "log-n")))), residual(Mlp(2)))
    network = Model("eighth", 8, repeat(2, block)).build(VOCABULARY)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    before = [parameter.detach().clone() for parameter in network.parameters()]
    tokens_BT = tokens(4, 6)
    losses = []
    for _ in range(2):
        loss = F.cross_entropy(network(tokens_BT[:, :-1]).flatten(0, 1), tokens_BT[:, 1:].flatten())
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[1] < losses[0]
    assert all(not torch.equal(old, new) for old, new in zip(before, network.parameters(), strict=True))


def test_a_name_is_kept_inside_a_repeat_and_as_a_whole_body() -> None:
    repeated = Model("repeated", 8, repeat(2, named("reader", Lstm()))).build(20)
    assert [site.name for site in find(repeated, "reader")] == ["body.0.reader", "body.1.reader"]
    whole = Model("whole", 8, named("reader", Lstm())).build(20)
    assert [site.name for site in find(whole, "reader")] == ["body.reader"]
    assert sum(line.parameters for line in outline(Model("m", 8, repeat(2, named("r", Lstm()))), 20) if line.depth == 0) == sum(
        parameter.numel() for parameter in repeated.parameters()
    )


def test_an_outline_has_every_parameter_and_draws_nothing() -> None:
    model = Model("placed", 8, Lstm(), position_ids=100)
    before = torch.random.get_rng_state()
    lines = outline(model, 20)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert [line.text for line in lines] == ["embedding", "positions", "lstm", "head"]
    assert sum(line.parameters for line in lines) == sum(each.numel() for each in model.build(20).parameters())
