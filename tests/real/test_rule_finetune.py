"""A language model that is pretrained here, then taught a rule as a user would; a kill in between changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from command import Call
from lengthlab.integrations import square_lm
from lengthlab.integrations.finetuning import Recipe, finetune
from lengthlab.integrations.language_model import read_language_model
from lengthlab.integrations.rule_answers import ask
from lengthlab.report import plane as drawn
from lengthlab.rules import plane, rows
from rule_lms import save_small_lm

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
WORDS = ("--task", "coin-flips", "--form", "scratchpad", "--lengths", "1-2", "--samples", "24", "--test", "2,3",
         "--test-samples", "4", "--batch", "8", "--device", "cpu", "--save-every", "3")  # fmt: skip


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Llama that has read the prompts and scratchpads of another rule for some steps."""
    folder = tmp_path_factory.mktemp("pretrained")
    lm = read_language_model(save_small_lm(folder / "raw"))
    text = list(rows("digit-sum", "scratchpad", (1, 2), 60))
    finetune(lm, text, Recipe(0, 6, 16, 4e-3), folder / "work", torch.device("cpu"))
    return folder / "work" / "model"


def test_a_rule_is_learned(pretrained: Path, tmp_path: Path) -> None:
    lm = read_language_model(pretrained)
    before = [answer.exact for answer in ask(lm, "coin-flips", "scratchpad", 2, 20)]
    text = list(rows("coin-flips", "scratchpad", (1, 2), 60))
    learned = finetune(lm, text, Recipe(0, 14, 16, 4e-3), tmp_path, torch.device("cpu"))
    answers = ask(learned, "coin-flips", "scratchpad", 2, 20)
    assert not any(before)
    assert sum(answer.answer for answer in answers) >= 17
    assert sum(answer.turns_off == 0 for answer in answers) >= 17


def test_all_weights_of_a_model_that_is_kept_in_sixteen_bits_are_trained(pretrained: Path, tmp_path: Path) -> None:
    """At a rate whose steps sixteen bits cannot tell: kept in bf16, most weights would not move at all."""
    halved = tmp_path / "halved"
    shutil.copytree(pretrained, halved)
    model = AutoModelForCausalLM.from_pretrained(pretrained, dtype=torch.bfloat16)
    model.save_pretrained(halved)
    text = list(rows("coin-flips", "scratchpad", (1, 2), 40))
    learned = finetune(read_language_model(halved), text, Recipe(0, 2, 16, 1e-5), tmp_path / "work", torch.device("cpu"))
    before = {name: weight.float() for name, weight in model.named_parameters() if weight.dim() > 1 and "embed" not in name}
    after = dict(learned.model.named_parameters())
    assert all(after[name].dtype == torch.float32 for name in before)
    still = [(weight == after[name]).float().mean().item() for name, weight in before.items()]
    assert max(still) < 0.2


def start(store: Path, *words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lengthlab", "rules", *map(str, words), "--store", str(store)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def result_in(store: Path) -> tuple[Path, dict[str, object]]:
    (path,) = store.glob("*/result.json")
    return path.parent, json.loads(path.read_text())


def test_a_kill_changes_nothing_and_a_report_shows_what_came_out(pretrained: Path, tmp_path: Path) -> None:
    words = ("finetune", "--model", pretrained, *WORDS, "--full", "--lr", "3e-3", "--epochs", "2")
    whole = start(tmp_path / "whole", *words)
    killed = start(tmp_path / "killed", *words)
    while not list((tmp_path / "killed").glob("*/checkpoints/checkpoint-*/trainer_state.json")):
        assert killed.poll() is None, killed.communicate()[1]
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    out, err = whole.communicate()
    assert whole.returncode == 0, err
    assert "n = 3" in out
    again = start(tmp_path / "killed", *words)
    assert again.communicate()
    assert again.returncode == 0
    (one, told), (other, same) = result_in(tmp_path / "whole"), result_in(tmp_path / "killed")
    weights, resumed = (load_file(folder / "model" / "model.safetensors") for folder in (one, other))
    assert all(torch.equal(weights[name], resumed[name]) for name in weights)
    assert told["counts"] == same["counts"]
    assert set(told["turns"]) == {"2", "3"}  # type: ignore[call-overload]
    assert not (one / "checkpoints").exists()
    shown = subprocess.run(
        [sys.executable, "-m", "lengthlab", "report", tmp_path / "whole"], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert "trace" in shown.stdout


def test_an_adapter_is_small_and_goes_onto_the_model_again(pretrained: Path, tmp_path: Path) -> None:
    words = ("finetune", "--model", pretrained, *WORDS, "--rank", "4", "--lr", "1e-2", "--epochs", "1")
    first = start(tmp_path, *words)
    out, err = first.communicate()
    assert first.returncode == 0, err
    folder, told = result_in(tmp_path)
    assert (folder / "model" / "adapter_model.safetensors").stat().st_size < (pretrained / "model.safetensors").stat().st_size
    for file in (folder / "answers").iterdir():
        file.unlink()
    assert start(tmp_path, *words).communicate()[0] == out  # asked again, with what was kept
    assert result_in(tmp_path)[1]["counts"] == told["counts"]
    assert told["training"] == "LoRA, rank 4"


def test_the_plane_of_a_language_model_is_drawn(
    pretrained: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of numbers below 20: asking 10,000 pairs takes minutes."""
    for module in (plane, square_lm, drawn):
        monkeypatch.setattr(module, "SIDE", 20)
    monkeypatch.setattr(plane, "SUM_AB", np.add.outer(np.arange(20), np.arange(20)))
    words = ("--epochs", "0.5", "--lr", "3e-3", "--half", "2", "--centre", "10,10", "--device", "cpu", "--store", tmp_path)
    done = call("rules", "square", "--model", pretrained, *words, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    told = json.loads((tmp_path / "out" / "plane.json").read_text())["planes"]
    assert [each["split"] for each in told] == ["square", "random"]
    assert all(0 <= each["held_out_right"] <= 25 for each in told)
    assert (tmp_path / "out" / "square.svg").exists()
    models = list(tmp_path.glob("square-*/model"))
    assert len(models) == 2
    assert AutoModelForCausalLM.from_pretrained(models[0])
    assert AutoTokenizer.from_pretrained(models[0])
