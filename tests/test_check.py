"""`lengthlab check`: it finds what is broken, says where, and lets sound models pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import LlamaConfig

from command import Call
from lengthlab.inspection import Report, check, find_subject
from lengthlab.inspection.trials import STEPS
from small_lms import config_of

CAUSAL, BEGINNING, APART = "is causal", "reads a beginning alone as in the whole", "keeps the sequences of a batch apart"
LENGTH, STEP, TWICE = "works at any length", "gives the same step by step", "gives the same twice in eval mode"
WEIGHTS = "keeps its own initialisation"
MODELS = """
import os
from dataclasses import dataclass

import torch
from torch import nn

class Sound(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.lstm, self.head = nn.Embedding(20, 8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 20)

    def forward(self, tokens, state=None):
        x, state = self.lstm(self.table(tokens), state)
        return self.head(x), state

class NeedsState(Sound):
    def forward(self, tokens, hidden):
        return super().forward(tokens, hidden)

class Backwards(Sound):
    def forward(self, tokens):
        x = self.lstm(self.table(tokens).flip(1))[0].flip(1)
        return self.head(x)

class Peeks(Sound):
    def forward(self, tokens):
        x = self.lstm(self.table(tokens))[0]
        late = x[:, 5:6] if x.shape[1] > 9 else 0 * x[:, :1]
        return self.head(torch.cat([x[:, :3], x[:, 3:4] + late, x[:, 4:]], 1)[:, :x.shape[1]])

class KnowsTheEnd(Sound):
    def forward(self, tokens):
        return self.head(self.lstm(self.table(tokens))[0] / tokens.shape[1])

class WrongAxis(Sound):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 8)

    def forward(self, tokens):
        return self.head(self.lstm(self.table(tokens))[0])

class Short(Sound):
    def __init__(self):
        super().__init__()
        self.places = nn.Embedding(32, 8)

    def forward(self, tokens):
        return self.head(self.lstm(self.table(tokens) + self.places(torch.arange(tokens.shape[1])))[0])

class Table310(Short):
    def __init__(self):
        super().__init__()
        self.places = nn.Embedding(310, 8)

class SilentPeek(Sound):
    def __init__(self):
        super().__init__()
        self.around = nn.Conv1d(8, 8, 3, padding=1)
        nn.init.zeros_(self.around.weight)

    def forward(self, tokens):
        x = self.table(tokens)
        return self.head(self.lstm(x + self.around(x.transpose(1, 2)).transpose(1, 2))[0])

class Sized(Sound):
    def __init__(self, vocabulary: int, width: int = 8):
        nn.Module.__init__(self)
        self.table, self.lstm = nn.Embedding(vocabulary, width), nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return super().forward(tokens)[0]

class Leaky(Sound):
    def forward(self, tokens, state=None):
        x, new = super().forward(tokens, state)
        return x, state if state is not None else new

class Crashes(Sound):
    def forward(self, tokens, state=None):
        if state is not None:
            raise IndexError("no second step")
        return super().forward(tokens)

class Remembers(Sound):
    state = None

    def forward(self, tokens):
        x, self.state = self.lstm(self.table(tokens), self.state if tokens.shape[0] == 2 else None)
        self.state = tuple(each for each in self.state) if tokens.shape[0] == 2 else None
        return self.head(x)

class Dropping(Sound):
    def forward(self, tokens):
        return self.head(nn.functional.dropout(self.lstm(self.table(tokens))[0], 0.5))

class Reseeding(Sound):
    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "big"))
        nn.init.normal_(self.head.weight, generator=generator)

class SelfSeeding(Sound):
    def __init__(self):
        torch.manual_seed(0)
        super().__init__()

class Moving(Sound):
    def forward(self, tokens):
        with torch.no_grad():
            self.head.bias[0] = tokens.shape[1]
        return self.head(self.lstm(self.table(tokens))[0])

class LastOnly(Sound):
    def forward(self, tokens):
        return super().forward(tokens)[0][:, -1]

class NoTable(Sound):
    def __init__(self):
        super().__init__()
        del self.table
        self.lstm = nn.LSTM(2, 8, batch_first=True)

    def forward(self, tokens):
        return self.head(self.lstm(nn.functional.one_hot(tokens, 2).float())[0])

class Frozen(Sound):
    def __init__(self):
        super().__init__()
        self.table.weight.requires_grad_(False)

@dataclass(frozen=True)
class Mine:
    name: str = "mine"
    width: int = 8

    def build(self, vocabulary):
        return nn.Sequential(nn.Embedding(vocabulary, self.width), nn.Linear(self.width, vocabulary))

class NoData:
    name = "no-data"

    def build(self, vocabulary):
        return Mine().build(vocabulary)

def ours():
    from lengthlab.models import hybrid_block
    return hybrid_block(width=8, blocks=1, heads=2, mlp=1)

def llama():
    from transformers import AutoModelForCausalLM, LlamaConfig
    config = LlamaConfig(vocab_size=30, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    return AutoModelForCausalLM.from_config(config).bfloat16()
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "mine.py"
    path.write_text(MODELS)
    return path


def checked(file: Path, name: str, longest: int | None = None) -> Report:
    return check(find_subject(f"{file}:{name}"), longest)


def failed(report: Report) -> dict[str, str]:
    return {each.what: each.evidence for each in report.checks if each.verdict == "does not hold"}


def not_checked(report: Report) -> set[str]:
    return {each.what for each in report.checks if each.verdict == "not checked"}


@pytest.mark.parametrize("name", ["Sound", "NeedsState"])
def test_a_sound_model_with_a_state_passes_everything(file: Path, name: str) -> None:
    report = checked(file, name)
    assert (failed(report), not_checked(report), report.holds) == ({}, set(), True)
    assert report.state is not None
    assert (report.state.half, report.state.whole) == (16, 16)  # hidden and cell, 8 each
    assert report.parameters == report.trainable == 20 * 8 + 2 * (4 * 8 * 8 + 4 * 8) + 8 * 20 + 20


def test_a_model_of_ours_with_attention_gives_the_same_from_keys_and_values(file: Path) -> None:
    report = checked(file, "ours")
    assert (failed(report), not_checked(report), report.holds) == ({}, set(), True)
    assert report.state is not None
    grown = report.state.tokens - report.state.tokens // 2
    assert report.state.whole - report.state.half == grown * 2 * 8  # the width is 8


@pytest.mark.parametrize("name", ["Mine", "NoTable"])
def test_a_model_without_a_state_is_not_asked_for_steps(file: Path, name: str) -> None:
    report = checked(file, name)
    assert (failed(report), not_checked(report), report.state) == ({}, {STEP}, None)


def test_a_model_that_reads_backwards_is_not_causal(file: Path) -> None:
    report = checked(file, "Backwards")
    assert set(failed(report)) == {CAUSAL, BEGINNING}
    assert "of 24 tokens, another one at position 1 changes the output at position 0" in failed(report)[CAUSAL]
    assert not_checked(report) == {STEP}


def test_one_look_ahead_is_found_where_it_is(file: Path) -> None:
    evidence = failed(checked(file, "Peeks"))[CAUSAL]
    assert "another one at position 4 changes the output at position 3" in evidence


def test_a_model_that_knows_where_the_end_is_reads_a_beginning_otherwise(file: Path) -> None:
    report = checked(file, "KnowsTheEnd")
    assert set(failed(report)) == {BEGINNING}
    assert "1 tokens alone and as the beginning of 24 differ at position 0" in failed(report)[BEGINNING]


def test_batch_and_time_mixed_up_is_found(file: Path) -> None:
    assert "beside the others differs" in failed(checked(file, "WrongAxis"))[APART]


def test_a_longest_length_is_found_and_the_rest_is_checked_below_it(file: Path) -> None:
    report = checked(file, "Short")
    assert set(failed(report)) == {LENGTH}
    assert "fails at 64, 300, 512 of 1, 2, 7, 64, 300, 512 tokens; at 64: IndexError" in failed(report)[LENGTH]


def test_a_table_is_found_to_end_where_it_will_be_measured(file: Path) -> None:
    assert "fails at 512 of 1, 2, 7, 64, 300, 512 tokens" in failed(checked(file, "Table310"))[LENGTH]
    assert failed(checked(file, "Table310", longest=310)) == {}
    assert "fails at 311 of" in failed(checked(file, "Table310", longest=311))[LENGTH]


def test_a_model_is_not_tried_further_than_it_will_be_measured(file: Path) -> None:
    report = checked(file, "Short", longest=32)
    assert failed(report) == {}
    assert report.checks[0].evidence == "1, 2, 7, 32 tokens"


def test_a_look_ahead_through_weights_of_zero_is_found(file: Path) -> None:
    assert "another one at position 1 changes the output at position 0" in failed(checked(file, "SilentPeek"))[CAUSAL]


def test_what_a_model_is_made_with_can_be_chosen(call: Call, file: Path) -> None:
    small, large = (call("check", f"{file}:Sized", "--set", f"width={width}").out for width in (4, 8))
    assert small.splitlines()[0] != large.splitlines()[0]
    call("check", f"{file}:Sized", "--set", "widht=4").refused("widht", "did you mean 'width'?")


@pytest.mark.parametrize("words", [("delay", "attention-on-lstm"), ("check", "lstm")])
def test_a_length_that_has_no_room_is_refused_with_the_memory_it_would_need(call: Call, words: tuple[str, ...]) -> None:
    call(*words, "--length", 10**12).refused("to read 1000000000000 tokens", "would need at least", "PB of memory, and cpu has")


def test_a_model_that_has_no_room_is_refused_with_the_memory_it_would_need(call: Call) -> None:
    call("check", "lstm", "--set", "width=1000000").refused("8,000,", "parameters, would need at least 32 TB of memory")
    call("check", "lstm", "--set", "width=1000000000").refused("would need at least 16 EB of memory")


def test_a_state_that_is_not_carried_is_found_at_the_step(file: Path) -> None:
    report = checked(file, "Leaky")
    assert set(failed(report)) == {STEP}
    assert "differ at position 2" in failed(report)[STEP]


def test_a_step_that_fails_is_told(file: Path) -> None:
    report = checked(file, "Crashes")
    assert failed(report) == {STEP: "it fails: IndexError: no second step (mine.py, line 84)"}
    assert report.state is None


@pytest.mark.parametrize("name", ["Dropping", "Remembers"])
def test_what_changes_from_call_to_call_is_found(file: Path, name: str) -> None:
    assert "two forwards of the same tokens differ" in failed(checked(file, name))[TWICE]


def test_weights_that_no_seed_determines_are_found(file: Path) -> None:
    assert failed(checked(file, "Reseeding")) == {
        WEIGHTS: "'head.weight' is not what its own constructor gives under the same seed"
    }


def test_weights_that_reading_changes_are_found(file: Path) -> None:
    assert failed(checked(file, "Moving"))[WEIGHTS] == "reading changes 'head.bias'"


def test_a_model_that_seeds_itself_is_told_so(file: Path) -> None:
    report = checked(file, "SelfSeeding")
    assert report.holds
    assert "every seed gives the same weights" in report.checks[-1].evidence


def test_a_model_that_a_run_cannot_keep_is_found(file: Path) -> None:
    assert "a run cannot build it" in failed(checked(file, "NoData"))[WEIGHTS]


def test_a_model_without_logits_for_every_token_is_told_the_shape(file: Path) -> None:
    report = checked(file, "LastOnly")
    assert "it gives back shape (2, 20); what is needed is logits of shape (B, T, V)" in failed(report)[LENGTH]
    assert not_checked(report) == {CAUSAL, BEGINNING, APART, STEP, TWICE}


@pytest.mark.parametrize("name", ["Llama", "Jamba", "Bamba", "GraniteMoeHybrid"])
def test_hugging_face_models_pass_with_their_caches(tmp_path: Path, name: str) -> None:
    config_of(name, mamba_chunk_size=16).save_pretrained(tmp_path)
    report = check(find_subject(str(tmp_path)))
    assert (failed(report), not_checked(report)) == ({}, set())
    assert report.state is not None
    keys_and_values = 2 * 2 * 8  # of one layer and token: 2 heads of 8
    layers = 2 if name == "Llama" else 1
    assert report.state.whole - report.state.half == layers * keys_and_values * STEPS // 2


def test_positions_in_a_table_end_where_it_ends(tmp_path: Path) -> None:
    config_of("GPT2").save_pretrained(tmp_path)
    assert "fails at 300" in failed(check(find_subject(str(tmp_path))))[LENGTH]


def test_a_hugging_face_model_from_a_file_is_checked_in_full_precision(file: Path) -> None:
    report = checked(file, "llama")
    assert (failed(report), not_checked(report)) == ({}, set())


def test_the_table_gives_each_verdict_with_its_evidence_and_the_tolerance(call: Call, file: Path) -> None:
    done = call("check", f"{file}:Sound")
    assert (done.code, done.err) == (0, "")
    assert "a state of 16 numbers per sequence, as large after 6 tokens as after 12" in done.out
    assert done.out.count("\n  holds") == 7
    assert "1e-06 of the largest logit" in done.out
    assert "no state that is handed on" in call("check", f"{file}:Mine").out
    assert "160 of them frozen" in call("check", f"{file}:Frozen").out


def test_what_does_not_hold_is_exit_code_1_and_json_says_the_same(call: Call, file: Path) -> None:
    done = call("check", f"{file}:Backwards", "--json")
    data = json.loads(done.out)
    assert (done.code, done.err, data["holds"]) == (1, "", False)
    verdicts = {each["what"]: each["verdict"] for each in data["checks"]}
    assert verdicts[CAUSAL] == "does not hold"
    assert (verdicts[STEP], verdicts[WEIGHTS]) == ("not checked", "holds")
    assert data["tolerance"] == {"same shapes": 1e-6, "other shapes": 1e-4}
    assert call("check", f"{file}:Backwards").code == 1


def test_a_config_too_large_to_build_is_refused(call: Call, tmp_path: Path) -> None:
    LlamaConfig().save_pretrained(tmp_path)
    call("check", tmp_path).refused("6,738,415,616 parameters", "too many", "make its config smaller")
