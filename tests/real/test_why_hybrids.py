"""The two pathways of Hugging Face's hybrids, cut: each changes what is said from the boundary on, and nothing before it."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from transformers import LlamaConfig, LlamaForCausalLM

from lengthlab.cli import cli
from lengthlab.errors import LabError
from lengthlab.inspection.why.cuts import attention_cut, state_cut
from lengthlab.inspection.why.parts import parts_of
from lengthlab.models.causal_lm import CausalLmNetwork
from small_lms import VOCABULARY, lm_of

BOUNDARY, TOKENS = 6, 9


@pytest.mark.parametrize("name", ["Jamba", "Qwen3Next"])
def test_a_cut_is_felt_from_the_boundary_on(name: str) -> None:
    torch.manual_seed(0)
    network = CausalLmNetwork(lm_of(name)).eval()
    parts = parts_of(network)
    assert parts.recurrences
    generator = torch.Generator().manual_seed(1)
    tokens_BT = torch.randint(VOCABULARY, (2, TOKENS), generator=generator)
    cuts: list[AbstractContextManager[None]] = [
        attention_cut(parts, BOUNDARY, shared_first=False, tokens=TOKENS),
        state_cut(parts, BOUNDARY, another=True),
        state_cut(parts, BOUNDARY, another=False),
    ]
    with torch.no_grad():
        whole_BTV = network(tokens_BT)
        for cut in cuts:
            with cut:
                cut_BTV = network(tokens_BT)
            assert torch.allclose(cut_BTV[:, :BOUNDARY], whole_BTV[:, :BOUNDARY], atol=1e-5)
            assert (cut_BTV[:, BOUNDARY:] - whole_BTV[:, BOUNDARY:]).abs().amax() > 1e-4
        assert torch.equal(network(tokens_BT), whole_BTV)


def test_a_trained_language_model_is_looked_into_without_a_run(tmp_path: Path) -> None:
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(**sizes, vocab_size=60)).save_pretrained(tmp_path / "lm")
    asked = ["why", "--model", str(tmp_path / "lm"), "--task", "recall", "--set", "keys=8", "--lengths", "4,6", "--json"]
    shown = CliRunner().invoke(cli, asked, catch_exceptions=False)
    assert shown.exit_code == 0
    found = json.loads(shown.stdout)
    assert [sorted(row["cut"]) for row in found["pathways"]] == [["attention"], ["attention"]]
    assert any("stood in for" in note for note in found["notes"])
    without = CliRunner().invoke(cli, asked[:5])
    assert isinstance(without.exception, LabError)
