"""`lengthlab delay`: what it says of a model is what is true of the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import JambaConfig, LlamaConfig, PreTrainedConfig

from command import Call
from lengthlab.inspection import DryRun, dry_run, find_subject
from lengthlab.inspection.flops import count_flops
from lengthlab.spec.source import load_reference
from small_lms import config_of

T, D, V = 16, 8, 20
HYBRID = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x, mask=None):
        q, k, v = self.inner(x).chunk(3, -1)
        return self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)), None

class Hybrid(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.lstm = nn.Embedding(20, 8), nn.LSTM(8, 8, batch_first=True)
        self.attention, self.head = Attention(), nn.Linear(8, 20)

    def mix(self, x):
        return x + self.lstm(x)[0]

    def forward(self, tokens):
        x = self.mix(self.table(tokens))
        return self.head(x + self.attention(x)[0])

class NoLstm(Hybrid):
    def mix(self, x):
        return x

class Tied(Hybrid):
    def __init__(self):
        super().__init__()
        self.mixed = nn.Linear(8, 8)
        self.attention.out.weight = self.mixed.weight

class UndecidedAttention(Attention):
    def forward(self, x, mask=None):
        if mask is None:
            return self.out(nn.functional.softmax(x, -1))
        return x, None

class HasUndecided(Hybrid):
    def __init__(self):
        super().__init__()
        self.attention = UndecidedAttention()

class WeighingAttention(Attention):
    def forward(self, x, mask=None):
        return super().forward(x)[0], torch.ones(1)

class NeedsWeights(Hybrid):
    def __init__(self):
        super().__init__()
        self.attention = WeighingAttention()

    def forward(self, tokens):
        x, weights = self.attention(self.mix(self.table(tokens)))
        return self.head(x) * weights.mean()

class Peeks(Hybrid):
    def mix(self, x):
        return super().mix(x) if x.sum().item() < 1e9 else x

class Quiet(Hybrid):
    def __init__(self):
        super().__init__()
        nn.init.zeros_(self.head.weight)

class TakesFloats(Hybrid):
    def forward(self, x):
        return self.head(x + self.attention(x * 0.5)[0])

class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(20, 8), nn.Linear(8, 20)
        self.layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=8, batch_first=True)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.layer(self.table(tokens), src_mask=mask, is_causal=True))

def ours(width=8):
    from lengthlab.models import hybrid_block
    return hybrid_block(width=width, blocks=1, heads=2, mlp=1)

def broken():
    raise ValueError("no such size")

ready = Hybrid()
a_number = 3
a_text = lambda: "model"
"""
PROJECTIONS = 2 * T * (D * 3 * D + D * D)
SCORES = 2 * 2 * T * T * D
LSTM = 2 * T * 2 * D * 4 * D
HEAD = 2 * T * D * V


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(HYBRID)
    return path


def saved(config: PreTrainedConfig, folder: Path) -> Path:
    config.save_pretrained(folder)
    return folder


def tried(file: Path, name: str, *modules: str) -> DryRun:
    return dry_run(find_subject(f"{file}:{name}"), modules, T)


def test_a_hybrid_by_hand_loses_its_attention_and_keeps_its_lstm(file: Path) -> None:
    found = tried(file, "Hybrid")
    (off,) = found.off
    assert (off.module, off.instead, off.parameters) == ("attention", "(zeros, None)", 4 * D * D + 4 * D)
    assert found.parameters_off == off.parameters
    assert found.parameters == sum(each.numel() for each in load(file, "Hybrid").parameters())
    assert found.compute is not None
    assert (found.compute.open, found.compute.closed) == (PROJECTIONS + SCORES + LSTM + HEAD, LSTM + HEAD)
    assert found.compute.saved == pytest.approx((PROJECTIONS + SCORES) / found.compute.open)
    assert (found.carries, found.notes, found.warnings) == (True, (), ())


def load(file: Path, name: str) -> nn.Module:
    made: Any = load_reference(f"{file}:{name}", Path())
    return made()  # type: ignore[no-any-return]


def test_nothing_left_that_carries_state_is_found_out_by_trying(file: Path) -> None:
    found = tried(file, "NoLstm")
    assert found.carries is False  # the LSTM is among its modules all the same
    assert "nothing carries information" in found.warnings[0]
    assert tried(file, "Quiet").carries is True  # though its head gives zeros at first


def test_shared_weights_are_named_and_not_counted_as_off(file: Path) -> None:
    found = tried(file, "Tied")
    assert found.off[0].shared == ("out.weight",)
    assert found.parameters_off == 3 * D * D + 4 * D
    assert "'attention' shares out.weight with parts that stay on" in found.warnings[0]


def test_a_module_that_cannot_be_skipped_is_a_warning_with_the_reason(call: Call, file: Path) -> None:
    found = tried(file, "HasUndecided", "attention")
    assert (found.off[0].instead, found.compute, found.carries) == ("cannot be skipped", None, None)
    assert "returns several values in a way that cannot be read from its source" in found.warnings[0]
    done = call("delay", f"{file}:HasUndecided", "--modules", "attention")
    assert (done.code, done.err) == (0, "")
    assert "Warning: cannot tell what 'attention' gives back" in done.out


def test_a_model_that_takes_no_token_ids_is_told_without_numbers(file: Path) -> None:
    found = tried(file, "TakesFloats")
    assert len(found.off) == 1
    assert (found.compute, found.carries) == (None, None)
    assert "compute is not counted: the model cannot be run on 16 token ids" in found.notes[0]
    assert "not tested" in found.notes[1]


def test_a_model_that_does_not_run_while_attention_is_off_is_warned_of(file: Path) -> None:
    found = tried(file, "NeedsWeights", "attention")
    assert (found.compute, found.carries) == (None, None)
    assert "with attention off the model does not run (AttributeError" in found.warnings[0]
    assert "instead=" in found.warnings[0]


def test_a_model_whose_way_depends_on_values_is_counted_in_earnest(file: Path) -> None:
    assert tried(file, "Peeks").compute == tried(file, "Hybrid").compute


def test_kernels_that_do_all_at_once_are_counted_too(file: Path) -> None:
    fast = torch.backends.mha.get_fastpath_enabled()
    found = tried(file, "Fused").compute
    assert found is not None
    assert (found.open, found.closed) == (PROJECTIONS + SCORES + 4 * T * D * D + HEAD, 4 * T * D * D + HEAD)
    assert torch.backends.mha.get_fastpath_enabled() == fast


def test_the_part_can_be_named(file: Path) -> None:
    found = tried(file, "Hybrid", "lstm")
    assert [(off.module, off.instead) for off in found.off] == [("lstm", "(zeros, None)")]
    assert found.carries is True  # by attention, which stays on


def test_a_model_of_ours_by_name_or_from_a_file(file: Path) -> None:
    found = tried(file, "ours")
    assert [off.instead for off in found.off] == ["zeros"]
    assert found.carries is True
    assert find_subject("hybrid-block").model is not None


def test_looking_draws_from_no_random_stream_of_the_user(file: Path) -> None:
    before = torch.random.get_rng_state()
    tried(file, "Hybrid")
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_hugging_face_hybrid_is_read_from_its_folder_or_its_file(call: Call, tmp_path: Path) -> None:
    folder = saved(config_of("Jamba"), tmp_path / "jamba")
    done = call("delay", folder, "--length", 8, "--json")
    assert (done.code, done.err) == (0, "")
    data = json.loads(done.out)
    assert [off["module"] for off in data["off"]] == ["model.layers.1.self_attn"]
    assert data["off"][0]["instead"] == "(zeros, None)"
    assert data["parameters_off"] == data["off"][0]["parameters"] == 32 * 32 * 2 + 32 * 16 * 2
    assert (data["carries"], data["warnings"], data["notes"]) == (True, [], [])
    assert 0 < data["compute"]["saved"] == 1 - data["compute"]["closed"] / data["compute"]["open"] < 1
    by_file = json.loads(call("delay", folder / "config.json", "--length", 8, "--json").out)
    assert by_file | {"model": ""} == data | {"model": ""}


def test_the_compute_of_attention_in_a_llama_is_what_arithmetic_says(tmp_path: Path) -> None:
    found = dry_run(find_subject(str(saved(config_of("Llama"), tmp_path))), length=T)
    assert found.compute is not None
    layer = 2 * T * (2 * 32 * 32 + 2 * 32 * 16) + 2 * 2 * T * T * 32
    assert found.compute.open - found.compute.closed == 2 * layer
    assert found.carries is False
    assert found.tried_on == "the model itself, its weights disturbed"


def test_shared_layers_count_once(tmp_path: Path) -> None:
    found = dry_run(find_subject(str(saved(config_of("Zamba2", chunk_size=8), tmp_path))), length=2)
    maps, shared = ([each.parameters for each in found.off if each.module.endswith(name)] for name in ("linear", "transformer"))
    assert len(maps) == len(shared) == 2
    assert found.parameters_off == sum(maps) + shared[0]
    assert shared[0] == shared[1]


def test_seven_billion_parameters_cost_nothing(call: Call, tmp_path: Path) -> None:
    done = call("delay", saved(LlamaConfig(hidden_size=8192, intermediate_size=32768, num_hidden_layers=6), tmp_path))
    assert (done.code, done.err) == (0, "")
    assert "6,966,845,440 parameters" in done.out
    assert "1,610,612,736  23.1% of the model" in done.out
    assert "tested on a copy with the same layers and small widths" in done.out


def test_a_large_hybrid_is_tested_narrow(tmp_path: Path) -> None:
    config = JambaConfig(num_hidden_layers=8)
    found = dry_run(find_subject(str(saved(config, tmp_path))), length=2)
    assert found.parameters > 10**10
    assert found.carries is True
    assert "narrow" not in "".join(found.notes)


def test_experts_that_are_not_asked_cost_nothing(tmp_path: Path) -> None:
    few, many = (
        count_flops(find_subject(str(saved(config_of("Jamba", num_experts=n), tmp_path / str(n)))).blueprint, 8) for n in (2, 8)
    )
    router = 2 * 8 * 32 * (8 - 2) * 2  # two layers have one
    assert many - few == router


def test_the_table_says_what_stands_still_what_is_saved_and_what_is_left(call: Call, file: Path) -> None:
    done = call("delay", f"{file}:Hybrid", "--length", T)
    assert (done.code, done.err) == (0, "")
    for words in ("(zeros, None)", "in all", "of the model", "of a forward's compute is saved", "16 tokens", "something else"):
        assert words in done.out
    assert "Warning" not in done.out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nobody/some-model", ("nothing is downloaded", "my_model.py:make")),
        ("atention-on-lstm", ("did you mean 'attention-on-lstm'?",)),
        ("{folder}", ("there is no", "config.json")),
        ("{folder}/missing.json", ("there is no", "missing.json")),
        ("{folder}/none.py:make", ("none.py:make' cannot be read", "No such file")),
        ("{folder}/mine.py:Hibrid", ("did you mean 'Hybrid'?",)),
        ("{folder}/mine.py:broken", ("cannot be made: ValueError: no such size",)),
        ("{folder}/mine.py:ready", ("made already", "name a function that makes it")),
        ("{folder}/mine.py:a_number", ("is an int", "name a function")),
        ("{folder}/mine.py:a_text", ("made a str", "none of these", "an nn.Module")),
        ("lstm", ("no softmax attention found",)),
    ],
)
def test_what_is_no_model_is_refused_in_one_line(call: Call, file: Path, name: str, words: tuple[str, ...]) -> None:
    call("delay", name.format(folder=file.parent)).refused(*words)


@pytest.mark.parametrize("text", ["{", '{"model_type": "no-such-thing"}', '{"model_type": "vit"}', "[]"])
def test_a_config_that_is_none_is_refused_in_one_line(call: Call, tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    call("delay", tmp_path).refused("configuration")


def test_a_part_that_is_not_there_is_refused(call: Call, file: Path) -> None:
    call("delay", f"{file}:Hybrid", "--modules", "atention").refused("no part of the model is named 'atention'", "attention")
