"""Every recurrence is its formula, written out here; its fast form is its walk; it carries its state, never looks ahead, and is
taken by every architecture that has one.

Shapes: B samples, T tokens, D width, H heads, C channels of a head. What is compared closely is compared in fp64, where a
rounding error cannot be taken for a mistake and a mistake not for a rounding error.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import lengthlab as ll
from lengthlab.errors import LabError
from lengthlab.inspection import find_subject
from lengthlab.inspection.checks import check
from lengthlab.inspection.state import numbers_in
from lengthlab.models import (
    MODELS,
    Bilinear,
    Deltaproduct,
    GatedDeltanet,
    Lstm,
    Mamba2,
    MLstm,
    Model,
    Part,
    Rnn,
    SLstm,
    chain,
    hybrid_block,
    lstm,
    sandwich,
)
from lengthlab.models.layout import Documents, Layout
from lengthlab.models.outline import outline
from lengthlab.models.recurrence import recurrence, torch_cell
from lengthlab.models.recurrence.delta import walk_delta
from lengthlab.registry import registered
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import delayed, end_to_end
from lengthlab.training.state import TrainState
from small_recurrences import CELLS, LINEAR, PARTS, WALKERS, WIDTH, built, same, stream
from small_runs import CPU, small_run

NAMES = ("lstm", "gru", "rnn", "slstm", "mlstm", "mamba2", "gated-deltanet", "deltaproduct", "bilinear")
every = pytest.mark.parametrize("name", PARTS)
AROUND_A_CHUNK = (1, 2, 21, 22, 63, 64, 65, 130)
"""Tokens: a chunk has 64, or 21 where each makes three steps."""


# Formulas, each written out for one sample, without a state to carry and without what keeps numbers in bounds


def heads_of(x_TD: Tensor, heads: int) -> Tensor:
    return x_TD.unflatten(-1, (heads, -1)).transpose(0, 1)


def convolved(conv: nn.Module, x_TD: Tensor) -> Tensor:
    window = len(conv.weight_WD)
    padded = F.pad(x_TD, (0, 0, window - 1, 0))
    rows = [(conv.weight_WD * padded[t : t + window]).sum(dim=0) + conv.bias for t in range(len(x_TD))]
    return F.silu(torch.stack(rows))


def rms(x: Tensor, norm: nn.Module) -> Tensor:
    return norm.weight * x / (x.square().mean(dim=-1, keepdim=True) + norm.eps).sqrt()


def rnn_by_hand(made: nn.Module, x_TD: Tensor) -> Tensor:
    w, u, b, c = made.cell.parameters()
    h, out = torch.zeros(WIDTH, dtype=x_TD.dtype), []
    for x in x_TD:
        h = torch.tanh(w @ x + b + u @ h + c)
        out.append(h)
    return torch.stack(out)


def lstm_by_hand(made: nn.Module, x_TD: Tensor) -> Tensor:
    """Layer after layer, gate by gate."""
    for layer in made.cell.all_weights:
        w, u, b, c = (each.chunk(4) for each in layer)
        h = cell = torch.zeros(WIDTH, dtype=x_TD.dtype)
        out = []
        for x in x_TD:
            i, f, g, o = (w[gate] @ x + b[gate] + u[gate] @ h + c[gate] for gate in range(4))
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(cell)
            out.append(h)
        x_TD = torch.stack(out)
    return x_TD


def gru_by_hand(made: nn.Module, x_TD: Tensor) -> Tensor:
    w, u, b, c = (each.chunk(3) for each in made.cell.parameters())
    h, out = torch.zeros(WIDTH, dtype=x_TD.dtype), []
    for x in x_TD:
        r, z = (torch.sigmoid(w[g] @ x + b[g] + u[g] @ h + c[g]) for g in (0, 1))
        h = (1 - z) * torch.tanh(w[2] @ x + b[2] + r * (u[2] @ h + c[2])) + z * h
        out.append(h)
    return torch.stack(out)


def slstm_by_hand(made: nn.Module, x_TD: Tensor) -> Tensor:
    """Head by head, with the gates as they are: exp(i) and the normalizer itself."""
    outs = []
    for head in range(made.heads):
        rows = slice(head * 4 * WIDTH // made.heads, (head + 1) * 4 * WIDTH // made.heads)
        h = c = n = torch.zeros(WIDTH // made.heads, dtype=x_TD.dtype)
        out = []
        for x in x_TD:
            z, i, f, o = (made.gates.weight[rows] @ x + made.gates.bias[rows] + h @ made.mixing_HCE[head]).chunk(4)
            c, n = f.sigmoid() * c + i.exp() * z.tanh(), f.sigmoid() * n + i.exp()
            h = o.sigmoid() * c / n
            out.append(h)
        outs.append(torch.stack(out))
    return torch.cat(outs, dim=-1)


def mlstm_by_hand(made: nn.Module, x_TD: Tensor) -> Tensor:
    """As attention would say it: token s weighs exp(i_s) times all forget gates after it."""
    q, k = (heads_of(each, made.heads) for each in made.qk(convolved(made.conv, x_TD)).chunk(2, dim=-1))
    v, (i, f) = heads_of(made.v(x_TD), made.heads), made.gates(x_TD).T.unflatten(0, (2, -1))
    said = torch.zeros_like(v)
    for head in range(made.heads):
        for t in range(len(x_TD)):
            weight = [
                i[head, s].exp() * f[head, s + 1 : t + 1].sigmoid().prod() * (q[head, t] @ k[head, s]) / q.shape[-1] ** 0.5
                for s in range(t + 1)
            ]
            total = sum(w * v[head, s] for s, w in enumerate(weight))
            said[head, t] = total / torch.clamp(sum(weight).abs(), min=1.0)
    centred = said - said.mean(dim=-1, keepdim=True)
    normal = centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * made.norm.weight + made.norm.bias
    return made.out(made.open(x_TD).sigmoid() * normal.transpose(0, 1).flatten(1))


def mamba2_by_hand(made: nn.Module, x_TD: Tensor) -> Tensor:
    """As a sum over all tokens before."""
    mixed = convolved(made.conv, made.mixed(x_TD))
    u, b, c = heads_of(mixed[:, : 2 * WIDTH], made.heads), mixed[:, 2 * WIDTH : -made.state], mixed[:, -made.state :]
    step = F.softplus(made.decay.step(x_TD)).T
    a = (-made.decay.log_rate_H.exp()[:, None] * step).exp()
    said = torch.zeros_like(u)
    for head in range(made.heads):
        for t in range(len(x_TD)):
            weight = [a[head, s + 1 : t + 1].prod() * step[head, s] * (c[t] @ b[s]) for s in range(t + 1)]
            said[head, t] = sum(w * u[head, s] for s, w in enumerate(weight)) + made.skip_H[head] * u[head, t]
    return made.out(rms(said.transpose(0, 1).flatten(1) * F.silu(made.gate(x_TD)), made.norm))


def delta_by_hand(made: nn.Module, x_TD: Tensor) -> Tensor:
    """With every matrix written out."""
    steps, heads, channels = made.steps, made.heads, WIDTH // made.heads
    mixed, beta = convolved(made.conv, made.qkv(x_TD)), made.strongest * made.beta(x_TD).sigmoid()
    said = torch.zeros_like(x_TD)
    for head in range(heads):
        cut = slice(head * channels, (head + 1) * channels)
        memory = torch.zeros(channels, channels, dtype=x_TD.dtype)
        for t, x in enumerate(x_TD):
            q, *rest = (each[cut] for each in mixed[t].split(WIDTH))
            if made.decay is not None:
                memory = torch.exp(-made.decay.log_rate_H[head].exp() * F.softplus(made.decay.step(x)[head])) * memory
            for j in range(steps):
                k, v, strength = rest[j] / rest[j].norm(), rest[steps + j], beta[t, j * heads + head]
                matrix = torch.eye(channels, dtype=x_TD.dtype) - strength * torch.outer(k, k)
                memory = matrix @ memory + strength * torch.outer(k, v)
            said[t, cut] = rms(memory.T @ (q / q.norm()), made.norm)
    return made.out(said * F.silu(made.gate(x_TD)))


def bilinear_by_hand(made: nn.Module, x_TD: Tensor) -> Tensor:
    """Matrices multiplied, and the state brought to its length at the end alone, since nothing is added to it."""
    size = made.size
    out = torch.zeros_like(x_TD)
    for block in range(WIDTH // size):
        product = torch.eye(size, dtype=x_TD.dtype)
        for t, x in enumerate(x_TD):
            product = F.linear(x, made.weight_ED, made.bias).view(-1, size, size)[block] @ product
            h = product @ made.first_HS[block]
            out[t, block * size : (block + 1) * size] = h / h.square().mean().sqrt()
    return out


BY_HAND = {
    **dict.fromkeys((name for name in PARTS if "lstm" in name and name in CELLS), lstm_by_hand),
    "rnn": rnn_by_hand,
    "gru": gru_by_hand,
    "slstm": slstm_by_hand,
    "mlstm": mlstm_by_hand,
    "mamba2": mamba2_by_hand,
    "bilinear": bilinear_by_hand,
    **dict.fromkeys((name for name in PARTS if "delta" in name), delta_by_hand),
}


@every
@torch.no_grad()
def test_a_recurrence_is_its_formula(name: str) -> None:
    made, x_BTD = built(name), stream(9, size=1)
    expected_TD = BY_HAND[name](made, x_BTD[0])
    assert same(made.walk(x_BTD, None)[0][0], expected_TD)
    assert same(made(x_BTD)[0], expected_TD)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["fp64", "fp32"])
@pytest.mark.parametrize("name", [name for name in PARTS if name not in WALKERS])
def test_the_fast_form_equals_the_walk_forward_and_backward(name: str, dtype: torch.dtype) -> None:
    made, x_BTD = built(name, dtype), stream(90, dtype=dtype).requires_grad_()
    start = tuple(each.detach() for each in made.walk(stream(5, dtype=dtype), None)[1])
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    leaves = [x_BTD, *made.parameters()]
    for state in (None, start):
        (slow_BTD, after_slow), (fast_BTD, after_fast) = made.walk(x_BTD, state), made.read(x_BTD, state)
        assert same(slow_BTD, fast_BTD, tolerance)
        assert all(same(one, other, tolerance) for one, other in zip(after_slow, after_fast, strict=True))
    pull_BTD = stream(90, dtype=dtype, seed=3)
    slow, fast = (torch.autograd.grad(out_BTD, leaves, pull_BTD) for out_BTD in (slow_BTD, fast_BTD))
    for one, other, leaf in zip(slow, fast, leaves, strict=True):
        assert one.shape == other.shape == leaf.shape
        assert one.abs().max() > 1e-6
        assert same(one / one.abs().max(), other / one.abs().max(), tolerance)


@every
@given(cuts=st.lists(st.sampled_from(AROUND_A_CHUNK), min_size=1, max_size=4))
@settings(max_examples=4)
@torch.no_grad()
def test_reading_in_pieces_equals_reading_at_once(name: str, cuts: list[int]) -> None:
    made, x_BTD = built(name), stream(sum(cuts))
    state, out = None, []
    for piece_BTD in x_BTD.split(cuts, dim=1):
        piece_BTD, state = made.read(piece_BTD, state)
        out.append(piece_BTD)
    whole_BTD, after = made.read(x_BTD, None)
    assert same(torch.cat(out, dim=1), whole_BTD)
    assert same(made(x_BTD), whole_BTD)
    assert all(same(one, other) for one, other in zip(state, after, strict=True))
    assert numbers_in(after) == numbers_in(made.read(x_BTD[:, :1], None)[1])


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_of_pytorchs_is_called_several_times_for_a_long_sequence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuDNN refuses 65,536 tokens in one call."""
    made, x_BTD = built(name), stream(30).requires_grad_()
    leaves, sizes = [x_BTD, *made.parameters()], []
    made.cell.register_forward_pre_hook(lambda cell, inputs: sizes.append(inputs[0].shape[1]))
    reads = [made.read(x_BTD, None)]
    monkeypatch.setattr(torch_cell, "LONGEST", 7)
    reads.append(made.read(x_BTD, None))
    (one_BTD, state), (other_BTD, after) = reads
    assert sizes == [30, 7, 7, 7, 7, 2]
    assert same(one_BTD, other_BTD)
    assert all(same(one, other) for one, other in zip(state, after, strict=True))
    for one, other in zip(*(torch.autograd.grad(out_BTD.sum(), leaves) for out_BTD, _ in reads), strict=True):
        assert same(one, other)


@every
def test_what_is_only_read_is_read_piece_by_piece(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, x_BTD = built(name), stream(70)
    whole_BTD, sizes, read = made(x_BTD), [], made.read

    def recorded(x_BTD: Tensor, state: Any) -> Any:
        sizes.append(x_BTD.shape[1])
        return read(x_BTD, state)

    monkeypatch.setattr(recurrence, "PIECE", 32)
    monkeypatch.setattr(made, "read", recorded)
    with torch.no_grad():
        assert same(made(x_BTD), whole_BTD)
    assert sizes == [32, 32, 6]


@every
@given(length=st.integers(1, 140), seed=st.integers(0, 99))
@settings(max_examples=4)
@torch.no_grad()
def test_a_recurrence_of_any_length_never_looks_ahead(name: str, length: int, seed: int) -> None:
    made, x_BTD = built(name), stream(length, seed=seed)
    before_BTD, t = made(x_BTD), seed % length
    assert before_BTD.shape == x_BTD.shape
    changed_BTD = x_BTD.clone()
    changed_BTD[:, t] += 1
    after_BTD = made(changed_BTD)
    assert same(after_BTD[:, :t], before_BTD[:, :t])
    assert not same(after_BTD[:, t], before_BTD[:, t])


@every
@torch.no_grad()
def test_a_long_sequence_stays_finite(name: str) -> None:
    made, x_BTD = built(name, torch.float32), 3 * stream(2**12 + 1, size=1, dtype=torch.float32)
    out_BTD, state = made.read(x_BTD, None)
    assert out_BTD.isfinite().all()
    assert out_BTD[:, -100:].std() > 1e-3
    assert all(each.isfinite().all() for each in state)


@every
def test_every_document_of_a_row_is_read_for_itself(name: str) -> None:
    made, x_1ND, documents = built(name), stream(12, size=1), Documents([1, 4, 7])
    row_1ND = made(x_1ND, Layout(documents=documents))
    alone = [made(piece_BTD) for piece_BTD in x_1ND.split([1, 4, 7], dim=1)]
    assert same(row_1ND, torch.cat(alone, dim=1))
    each_way = (torch.autograd.grad(out.sum(), list(made.parameters())) for out in (row_1ND, torch.cat(alone, dim=1)))
    for one, other in zip(*each_way, strict=True):
        assert same(one, other)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["fp64", "fp32"])
def test_the_scan_of_an_lstm_over_a_row_is_the_walk_over_every_document(dtype: torch.dtype) -> None:
    made, x_1ND, lengths = built("lstm", dtype), stream(37, size=1, dtype=dtype).requires_grad_(), [1, 7, 9, 20]
    row_1ND = made(x_1ND, Layout(documents=Documents(lengths)))
    alone_1ND = torch.cat([made.walk(piece_BTD, None)[0] for piece_BTD in x_1ND.split(lengths, dim=1)], dim=1)
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    assert same(row_1ND, alone_1ND, tolerance)
    leaves, pull_1ND = [x_1ND, *made.parameters()], stream(37, size=1, dtype=dtype, seed=3)
    for one, other in zip(*(torch.autograd.grad(out, leaves, pull_1ND) for out in (row_1ND, alone_1ND)), strict=True):
        assert same(one, other, tolerance)


@every
def test_sixteen_bits_keep_the_state_in_thirty_two(name: str) -> None:
    made, x_BTD = built(name, torch.float32), stream(70, dtype=torch.float32)
    exact_BTD, _ = made.read(x_BTD, None)
    rounded_BTD, state = made.bfloat16().read(x_BTD.bfloat16(), None)
    assert rounded_BTD.dtype == torch.bfloat16
    assert (rounded_BTD.float() - exact_BTD).abs().mean() < 0.1 * exact_BTD.abs().mean()
    assert name in CELLS or state[-1].dtype == torch.float32
    rounded_BTD.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in made.parameters())


def test_exponential_gates_do_not_overflow() -> None:
    for name in ("slstm", "mlstm"):
        made = built(name, torch.float32)
        with torch.no_grad():
            made.gates.weight.mul_(100)
        x_BTD = stream(130, dtype=torch.float32).requires_grad_()
        out_BTD = made(x_BTD)
        out_BTD.sum().backward()
        assert out_BTD.isfinite().all()
        assert x_BTD.grad.isfinite().all()
        assert same(out_BTD, made.walk(x_BTD, None)[0], 1e-3)


@pytest.mark.parametrize("name", [*LINEAR, *WALKERS])
def test_no_step_depends_on_values_so_that_steps_can_be_captured(name: str) -> None:
    with torch.device("meta"):  # shapes without numbers: whoever asked for one would fail
        made, x_BTD = PARTS[name].build(WIDTH), torch.empty(2, 22 if name in WALKERS else 66, WIDTH)
        out_BTD = made(x_BTD)
        out_BTD.sum().backward()
    assert out_BTD.shape == x_BTD.shape
    assert all(parameter.grad.shape == parameter.shape for parameter in made.parameters())


@pytest.mark.parametrize(("beta", "left"), [(0.5, 0.5), (1.0, 0.0), (2.0, -1.0)])
def test_a_strength_of_two_turns_what_a_key_holds_into_its_opposite(beta: float, left: float) -> None:
    k_BHUK, s_BHKV = torch.tensor([1.0, 0.0]).view(1, 1, 1, 2), torch.tensor([[3.0], [5.0]]).view(1, 1, 2, 1)
    nothing = torch.zeros(1, 1, 1, 1)
    _, after = walk_delta(k_BHUK, k_BHUK, nothing, torch.full((1, 1, 1), beta), torch.zeros(1, 1, 1), s_BHKV)
    assert after.flatten().tolist() == [3.0 * left, 5.0]


def test_only_negative_eigenvalues_let_strengths_go_to_two() -> None:
    strongest = [GatedDeltanet(negative_eigenvalues=given).build(8).strongest for given in (False, True)]
    assert strongest == [Deltaproduct(negative_eigenvalues=given).build(8).strongest for given in (False, True)] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("part", "steps", "learns"),
    [
        (Rnn(), 250, True),
        (Bilinear(size=4), 80, True),
        (GatedDeltanet(heads=2, negative_eigenvalues=True), 80, True),
        (GatedDeltanet(heads=2), 80, False),
        (Mamba2(heads=2, state=4), 80, False),
    ],
    ids=["rnn", "bilinear", "gated-deltanet, negative", "gated-deltanet", "mamba2"],
)
def test_parity_is_learned_by_those_that_can_turn_a_sign(part: Any, steps: int, learns: bool) -> None:
    torch.manual_seed(0)
    network = Model("alone", 16, chain(part)).build(vocabulary=2)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(steps):
        bits_BT = torch.randint(2, (16, 10))
        loss = F.cross_entropy(network(bits_BT).flatten(0, 1), (bits_BT.cumsum(dim=1) % 2).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        bits_BT = torch.randint(2, (200, 20))
        right_T = (network(bits_BT).argmax(dim=-1) == bits_BT.cumsum(dim=1) % 2).double().mean(dim=0)
    assert right_T[:10].min() > 0.95 if learns else right_T[-1] < 0.7


# Architectures, runs and files


@pytest.mark.parametrize("name", NAMES)
def test_every_named_architecture_takes_every_recurrence_by_name(name: str) -> None:
    for model in (name_of for name_of in MODELS if name_of != "transformer"):
        sizes = {} if model == "lstm" else {"blocks": 1, "heads": 2, "mlp": 1}
        made = MODELS[model](width=16, recurrence=name, **sizes)
        assert made == MODELS[model](width=16, recurrence=registered(Part)[name](), **sizes)
        network = made.build(5)
        assert network(torch.zeros(1, 3, dtype=torch.long)).shape == (1, 3, 5)
        lines = outline(made, 5)
        assert any(name in line.text for line in lines)
        assert sum(line.parameters for line in lines if line.depth == 0) == sum(p.numel() for p in network.parameters())


PLAN = """
[[run]]
task = { name = "modulo-recall", modulus = 2, values = 4, keys = 12 }
model = { name = "sandwich", width = 16, blocks = 1, heads = 2, recurrence = RECURRENCE }
schedule = { name = "end-to-end", joint = 10 }
lengths = [1, 3]
"""


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ('"gated-deltanet"', GatedDeltanet()),
        ('{ name = "gated-deltanet", negative_eigenvalues = true }', GatedDeltanet(negative_eigenvalues=True)),
        ('{ name = "deltaproduct", steps = 3, gated = true }', Deltaproduct(steps=3, gated=True)),
        ('{ name = "bilinear", size = 4 }', Bilinear(size=4)),
        ("{ layers = 2 }", Lstm(layers=2)),
    ],
)
def test_a_file_names_a_recurrence_and_a_run_remembers_it(tmp_path: Path, written: str, part: Any) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.replace("RECURRENCE", written))
    (run,) = read_plan(tmp_path / "plan.toml")
    assert run.model == sandwich(16, recurrence=part, blocks=1, heads=2)
    assert Run.from_json(run.to_json()) == run


IDS = {
    "transformer": "b5a097bf935beed952b9",
    "lstm": "c30dab584117ffdff7b2",
    "attention-on-lstm": "164495bb515a24fdc316",
    "lstm-on-attention": "7e1070461eba677dedf4",
    "parallel": "2c18312594edc1c8596b",
    "hybrid-block": "70ccf763653dfef350c5",
    "sandwich": "436f6dc4c60debb25a9c",
}
"""As they were before there was any recurrence but the LSTM."""


@pytest.mark.parametrize("name", IDS)
def test_runs_with_an_lstm_keep_their_ids(name: str) -> None:
    assert ll.Run(ll.tasks.ModuloRecall(), MODELS[name](), end_to_end(5), lengths=(1, 2)).id == IDS[name]


@dataclass(frozen=True)
class Echo:
    """A recurrence of a user's own."""

    def build(self, width: int) -> nn.Module:
        return nn.Identity()


def test_a_recurrence_of_ones_own_is_registered_like_any_part() -> None:
    ll.register(Part, "echo", Echo)
    assert lstm(8, recurrence="echo") == Model("echo", 8, chain(Echo()))
    with pytest.raises(LabError, match="unknown part 'ech'; did you mean 'echo'"):
        hybrid_block(8, recurrence="ech")


@pytest.mark.parametrize("name", NAMES)
def test_every_recurrence_passes_the_checks_of_a_model(name: str) -> None:
    report = check(find_subject("lstm", ["width=16", f"recurrence={name}"]), longest=30)
    assert [each.verdict for each in report.checks] == ["holds"] * 7
    assert report.state is not None
    assert report.state.half == report.state.whole


@pytest.mark.parametrize("name", NAMES)
def test_a_hybrid_of_every_recurrence_trains_while_attention_waits(name: str) -> None:
    model = hybrid_block(8, recurrence=name, blocks=1, heads=2, mlp=1)
    state = TrainState(small_run(delayed(2, joint=2, lr=0.01), model=model), CPU)
    before = {name: tensor.clone() for name, tensor in state.network.state_dict().items()}
    for _ in range(3):
        state.advance()
    assert all(not torch.equal(before[name], tensor) for name, tensor in state.network.named_parameters())


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: SLstm(heads=0), "slstm.heads must be at least 1, not 0"),
        (lambda: SLstm(heads=3).build(8), "slstm.heads = 3 does not divide model.width = 8"),
        (lambda: MLstm(heads=3).build(8), "mlstm.heads = 3 does not divide model.width = 8"),
        (lambda: MLstm(conv=0), "mlstm.conv must be at least 1, not 0"),
        (lambda: Mamba2(state=0), "mamba2.state must be at least 1, not 0"),
        (lambda: Mamba2(heads=3).build(8), "mamba2.heads = 3 does not divide 2 times model.width = 8"),
        (lambda: GatedDeltanet(heads=3).build(8), "gated-deltanet.heads = 3 does not divide model.width = 8"),
        (lambda: Deltaproduct(steps=0), "deltaproduct.steps must be at least 1, not 0"),
        (lambda: Deltaproduct(heads=3).build(8), "deltaproduct.heads = 3 does not divide model.width = 8"),
        (lambda: Bilinear(size=1), "bilinear.size must be at least 2, not 1"),
        (lambda: Bilinear(size=3).build(8), "bilinear.size = 3 does not divide model.width = 8"),
    ],
)
def test_sizes_that_make_no_recurrence_are_refused(make: Any, told: str) -> None:
    with pytest.raises(LabError, match=told):
        make()
