"""Decoders of neighbouring papers, and positions at the embedding: by hand, in rows, beside other runs, killed, measured."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab import models
from lengthlab.errors import LabError
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.models import Model, PositionIds, Rope, gpt2, hybrid_block, llama, t5_decoder
from lengthlab.models.attention.rotation import rotation
from lengthlab.models.layout import Documents, Layout
from lengthlab.models.outline import outline
from lengthlab.models.position_table import PositionTable
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import delayed, end_to_end
from lengthlab.store import Store
from lengthlab.tasks import Addition, Minesweeper, ModuloRecall, Task
from lengthlab.training import train
from lengthlab.training.engine import Engine
from lengthlab.training.precision import FP32
from lengthlab.training.state import TrainState
from small_runs import counts, identical, learned, train_until_killed, weights

CPU = torch.device("cpu")
SIZES: dict[str, Any] = {"width": 8, "blocks": 1, "heads": 2, "mlp": 2}
SUMS = Addition(positions="coupled", ids=24)


def run_of(model: Any, task: Task = SUMS, **changes: Any) -> Run:
    rest: dict[str, Any] = {"schedule": end_to_end(24, lr=1e-2), "lengths": (1, 3), "batch": 6, "evaluate": (2,)}
    return Run(task=task, model=model, **rest | changes)


RUNS: dict[str, Run] = {
    "gpt2, random start": run_of(gpt2(**SIZES, position_ids=40), Addition()),
    "gpt2, padded": run_of(gpt2(**SIZES, position_ids=40), Addition(), batch=2),
    "gpt2, no positions": run_of(gpt2(**SIZES, position_ids=0), Addition()),
    "llama": run_of(llama(**SIZES), Addition()),
    "t5, coupled": run_of(t5_decoder(**SIZES, position_ids=24)),
    "t5, two ids": run_of(t5_decoder(**SIZES, position_ids=9, tables=2), Minesweeper(positions="coupled", ids=9)),
}


# What they are made of


def rms(x: Tensor, norm: Any) -> Tensor:
    scaled: Tensor = x / (x.pow(2).mean(dim=-1, keepdim=True) + 1e-6).sqrt() * norm.weight
    return scaled


def attended(x_BTD: Tensor, attend: Any) -> Tensor:
    """One head after the other, one query after the other."""
    heads, out_BTD = attend.heads, torch.zeros_like(x_BTD)
    q, (k, v) = x_BTD @ attend.q.weight.T, (x_BTD @ attend.kv.weight.T).chunk(2, dim=-1)
    channels = q.shape[-1] // heads
    for h in range(heads):
        of = slice(h * channels, (h + 1) * channels)
        for t in range(x_BTD.shape[1]):
            scores_BS = torch.einsum("bc,bsc->bs", q[:, t, of], k[:, : t + 1, of]) / channels**0.5
            out_BTD[:, t, of] = torch.einsum("bs,bsc->bc", scores_BS.softmax(dim=-1), v[:, : t + 1, of])
    mixed: Tensor = out_BTD @ attend.out.weight.T
    return mixed


def test_the_block_of_position_coupling_has_norms_before_and_after_each_sublayer_and_no_biases() -> None:
    torch.manual_seed(0)
    network = t5_decoder(width=8, blocks=1, heads=2, mlp=2, position_ids=9).build(12).double()
    names = dict(network.named_parameters())
    assert [name for name in names if "bias" in name] == ["head.bias"]
    for name, parameter in names.items():
        if "norm" in name:
            nn.init.uniform_(parameter, 0.5, 1.5)
    tokens_BT, position_BT = torch.randint(12, (2, 6)), torch.randint(9, (2, 6))
    x_BTD = network.embedding.weight[tokens_BT] + names["positions.weight_LD"][position_BT]
    body: Any = network.body.get_submodule("attention")
    first, second = body.get_submodule("repeat.0").children()
    for sublayer, f in ((first, attended), (second, gated)):
        inner: Any = sublayer.part
        module, after = inner.children()
        x_BTD = x_BTD + rms(f(rms(x_BTD, sublayer.norm), module), after)
    expected = network.head(rms(x_BTD, list(body.children())[-1]))
    torch.testing.assert_close(network(tokens_BT, Layout(position_BT)), expected)


def gated(x_BTD: Tensor, feed: Any) -> Tensor:
    gate, up = x_BTD @ feed.gate.weight.T, x_BTD @ feed.up.weight.T
    opened = gate * 0.5 * (1 + torch.erf(gate / 2**0.5))
    out: Tensor = (opened * up) @ feed.down.weight.T
    return out


@pytest.mark.parametrize(("make", "parts"), [(gpt2, "gelu"), (llama, "rms-norm silu"), (t5_decoder, "rms-norm gelu")])
def test_a_decoder_is_as_deep_and_wide_as_it_is_asked_to_be(make: Callable[..., Model], parts: str) -> None:
    for blocks in (1, 12):
        model = make(width=16, blocks=blocks, heads=4, mlp=3)
        lines = " ".join(line.text for line in outline(model, 20))
        assert all(part in lines for part in parts.split()), lines
        network = model.build(20)
        assert sum(name.endswith("attend.q.weight") for name, _ in network.named_parameters()) == blocks
        assert network(torch.randint(20, (2, 5))).shape == (2, 5, 20)


def test_scaled_rotary_positions_are_those_of_tokens_that_lie_closer() -> None:
    place = torch.arange(40)[None]
    for scaled, plain in zip(
        rotation(32 * place, 8, 500.0, torch.float64, 32.0), rotation(place, 8, 500.0, torch.float64), strict=True
    ):
        torch.testing.assert_close(scaled, plain)
    torch.manual_seed(0)
    q_BHTC, k_BHTC = torch.randn(2, 1, 2, 33, 8).double().unbind(0)
    by_index = Rope(500.0, factor=4.0).build(8)(q_BHTC, k_BHTC)
    by_ids = Rope(500.0, factor=4.0).build(8)(q_BHTC, k_BHTC, Layout(torch.arange(33)[None]))
    unscaled = Rope(500.0).build(8)(q_BHTC, k_BHTC)
    torch.testing.assert_close(by_index, by_ids)
    torch.testing.assert_close(by_index[1][:, :, 4:5], Rope(500.0).build(8)(q_BHTC[:, :, 3:5], k_BHTC[:, :, 3:5])[1][:, :, 1:])
    assert not torch.allclose(by_index[1], unscaled[1])


# Positions at the embedding


def ids_seen(table: PositionTable, tokens_BT: Tensor, layout: Layout) -> Tensor:
    """The ids whose vectors it gives: each vector is its own number."""
    with torch.no_grad():
        table.weight_LD.copy_(torch.arange(len(table.weight_LD))[:, None].expand_as(table.weight_LD))
        ids: Tensor = table(tokens_BT, layout)[..., 0].long()
    return ids


def test_sequences_start_anywhere_in_training_and_at_0_when_measured() -> None:
    table = PositionIds(20, random_start=True).build(4)
    tokens_BT = torch.ones(300, 5, dtype=torch.long)
    seen_BT = ids_seen(table, tokens_BT, Layout())
    assert torch.equal(seen_BT - seen_BT[:, :1], torch.arange(5).expand(300, 5))
    assert set(seen_BT[:, 0].tolist()) == set(range(16))
    assert not torch.equal(ids_seen(table, tokens_BT, Layout()), seen_BT)
    table.eval()
    assert ids_seen(table, tokens_BT, Layout()).squeeze(0).unique(dim=0).flatten().tolist() == [0, 1, 2, 3, 4]
    own_BT = torch.randint(20, (300, 5))
    assert torch.equal(ids_seen(table.train(), tokens_BT, Layout(own_BT)), own_BT)


def test_every_document_of_a_row_starts_where_it_has_room() -> None:
    table = PositionIds(12, random_start=True).build(4)
    lengths = [2] * 200 + [11] * 200
    documents = Documents(lengths)
    row = ids_seen(table, torch.ones(1, sum(lengths), dtype=torch.long), Layout(documents=documents))[0]
    begins = row.split(lengths)
    assert all(torch.equal(ids - ids[0], torch.arange(len(ids))) for ids in begins)
    assert {int(ids[0]) for ids in begins[:200]} == set(range(11))
    assert {int(ids[0]) for ids in begins[200:]} == {0, 1}


def test_the_vectors_of_two_ids_are_added_from_one_table_or_from_two() -> None:
    position_BTK = torch.tensor([[[1, 2], [3, 0]]])
    tokens_BT = torch.ones(1, 2, dtype=torch.long)
    shared, apart = PositionIds(4).build(8), PositionIds(4, tables=2).build(8)
    one, two = shared.weight_LD, apart.weight_LD
    torch.testing.assert_close(shared(tokens_BT, Layout(position_BTK))[0], torch.stack((one[1] + one[2], one[3] + one[0])))
    torch.testing.assert_close(apart(tokens_BT, Layout(position_BTK))[0], torch.stack((two[1] + two[6], two[3] + two[4])))
    with pytest.raises(LabError, match=r"2 tables of positions, and a token of the task 1 id$"):
        apart(tokens_BT, Layout(tokens_BT))
    with pytest.raises(LabError, match="2 tables of positions, and the task one id for each token"):
        apart(tokens_BT, Layout())
    with pytest.raises(LabError, match="position id 4 is too large for a table of 4"):
        apart(tokens_BT, Layout(position_BTK + 1))


def test_first_vectors_of_ids_are_orthogonal_and_as_long_as_others() -> None:
    torch.manual_seed(3)
    few_LD = t5_decoder(64, position_ids=40, orthogonal=True).build(12).positions.weight_LD
    assert torch.allclose(few_LD @ few_LD.T, 64 * torch.eye(40), atol=1e-3)
    many_LD = PositionIds(200, std=0.02, orthogonal=True).build(64).weight_LD
    assert many_LD.norm(dim=1).mean().item() == pytest.approx(0.02 * 8, rel=0.05)


def test_a_number_of_position_ids_means_what_it_always_meant() -> None:
    models = [Model("m", 8, hybrid_block(8, heads=2).body, ids) for ids in (7, PositionIds(7))]
    networks = []
    for model in models:
        torch.manual_seed(3)
        networks.append(model.build(11))
    assert identical(networks[0].state_dict(), networks[1].state_dict())
    assert "position_ids" not in str(run_of(hybrid_block(8, heads=2)).to_json())


def test_a_table_that_is_too_short_is_told_before_training(tmp_path: Path) -> None:
    told = (
        r"model 'gpt2': its positions end at 20 tokens, and length 9, .* has 31: raise model.position_ids, or measure less far"
    )
    with pytest.raises(LabError, match=rf"^{told}$"):
        train(run_of(gpt2(**SIZES, position_ids=20), Addition(), evaluate=(9,)), tmp_path)
    assert not list(tmp_path.iterdir())
    for wrong in ({"position_ids": -1}, {"heads": 3}, {"blocks": 0}):
        with pytest.raises(LabError, match=r"model\."):
            gpt2(**SIZES | wrong).build(5)
    with pytest.raises(LabError, match=r"position_ids\.tables must be at least 1"):
        t5_decoder(tables=0)


# Trained


@pytest.mark.parametrize("name", list(models.MODELS))
def test_every_architecture_of_the_paper_learns_from_coupled_positions(name: str) -> None:
    choices = {} if name == "lstm" else {"blocks": 1, "heads": 2, "positions": "none"}
    model = models.MODELS[name](8, position_ids=24, **choices)
    schedule = end_to_end(3, lr=1e-2) if name in ("lstm", "transformer") else delayed(2, joint=2, lr=1e-2)
    state = TrainState(run_of(model, schedule=schedule), CPU)
    table = state.network.get_parameter("positions.weight_LD").detach().clone()
    while state.step < state.run.steps:
        state.advance()
    moved = (state.network.get_parameter("positions.weight_LD") != table).any(dim=1)
    assert moved.sum() > 15  # every id that was drawn


def test_decoders_trained_together_learn_what_they_learn_alone(tmp_path: Path) -> None:
    failures: list[object] = []
    runs = [RUNS[name] for name in ("gpt2, random start", "gpt2, padded", "llama", "t5, two ids")]
    Engine(Store(tmp_path / "together"), CPU, FP32, lambda run, error: failures.append(error)).train(runs)
    assert not failures
    for run in runs:
        train(run, tmp_path / "alone", "cpu", "fp32")
        assert learned(tmp_path / "together", run) == learned(tmp_path / "alone", run)
        assert identical(weights(tmp_path / "together", run), weights(tmp_path / "alone", run))
        assert counts(tmp_path / "together", run) == counts(tmp_path / "alone", run)


@pytest.mark.parametrize("name", ["gpt2, random start", "t5, coupled", "t5, two ids"])
def test_a_decoder_that_was_killed_ends_as_if_it_had_not_been(name: str, tmp_path: Path) -> None:
    run = RUNS[name]
    train(run, tmp_path / "through", "cpu")
    train_until_killed(run, tmp_path / "killed", step=17, checkpoint_seconds=0.0)
    train(run, tmp_path / "killed", "cpu")
    assert learned(tmp_path / "killed", run) == learned(tmp_path / "through", run)
    assert identical(weights(tmp_path / "killed", run), weights(tmp_path / "through", run))


@pytest.mark.parametrize("name", RUNS)
def test_a_decoder_is_measured_the_same_on_one_core_and_on_two(name: str) -> None:
    run = RUNS[name]
    network = run.network()
    alone = accuracy(network, run.task, [4], samples=60)
    assert accuracy(network, run.task, [4], samples=60, copies=[copy.deepcopy(network)]) == alone


def test_a_decoder_is_chosen_in_a_file_as_in_python(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("""
[[run]]
task = { name = "addition", positions = "coupled", ids = 48 }
model = { name = "t5-decoder", width = 16, blocks = 1, heads = 2, position_ids = 48 }
schedule = { name = "end-to-end", joint = 5 }

[[run]]
task = { name = "multi-addition", operands = 3 }
model = { name = "gpt2", width = 16, position_ids = 300 }
schedule = { name = "end-to-end", joint = 5 }

[[run]]
task = "minesweeper"
model = { name = "llama", width = 16, base = 500, factor = 64 }
schedule = { name = "end-to-end", joint = 5 }

[[run]]
task = { name = "minesweeper", positions = "coupled", ids = 30 }
model = { name = "hybrid-block", width = 16, positions = "none", position_ids = 30 }
schedule = { name = "end-to-end", joint = 5 }
""")
    runs = read_plan(tmp_path / "run.toml")
    assert runs[0].model == t5_decoder(16, heads=2, position_ids=48)
    assert runs[0].task == Addition(positions="coupled", ids=48)
    assert runs[1].model == gpt2(16, position_ids=300)
    assert runs[1].task == Addition(operands=3)
    assert runs[2].model == llama(16, base=500.0, factor=64.0)
    assert runs[3].model == hybrid_block(16, positions="none", position_ids=30)
    for run in runs:
        assert Run.from_json(run.to_json()) == run


def test_a_run_without_new_parts_has_the_content_it_always_had() -> None:
    run = Run(ModuloRecall(), hybrid_block(), end_to_end(5))
    text = str(run.to_json())
    assert not [word for word in ("factor': 1.0", "bias", "tables", "random_start") if word in text]


def test_the_loss_is_the_mean_over_answers_alone() -> None:
    state = TrainState(RUNS["t5, coupled"], CPU)
    data = state.step_data(0)
    logits_BQV = state.network(data.tokens_BT, data.laid_out(state.data.layout)).detach()
    expected = F.cross_entropy(logits_BQV.flatten(0, 1), data.target_BQ.flatten(), ignore_index=-100)
    assert float(state.backward(data)) == pytest.approx(float(expected))
