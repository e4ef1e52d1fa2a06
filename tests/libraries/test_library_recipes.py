"""The recipes of docs/trainers.md for libraries that this package does not need itself."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import nn
from transformers import PreTrainedTokenizerFast, Trainer, TrainingArguments

from lengthlab.errors import LabError
from recipes import STEPS, UNTIL, VOCABULARY, batches, block, changed, run
from small_lms import lm_of


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def tokenizer() -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {"<pad>": 0, "<s>": 1, "</s>": 2} | {str(number): number for number in range(3, 50)}
    made = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>")


def usual(folder: Path) -> dict[str, Any]:
    return {
        "output_dir": str(folder),
        "max_steps": STEPS,
        "per_device_train_batch_size": 2,
        "learning_rate": 1e-2,
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "save_strategy": "no",
        "logging_strategy": "no",
        "bf16": False,
    }


def opens_with(left: dict[str, Any], before: dict[str, torch.Tensor]) -> None:
    model: nn.Module = left["model"]
    assert left["delay"].opened_at == UNTIL
    assert changed(model, before, "attn")


def test_trl(tmp_path: Path) -> None:
    from datasets import Dataset
    from trl import SFTConfig

    rows = torch.randint(3, 50, (16, 9), generator=torch.Generator().manual_seed(1)).tolist()
    texts = Dataset.from_list([{"text": " ".join(map(str, row))} for row in rows])
    model = lm_of("Llama").train()
    before = copy.deepcopy(model.state_dict())
    given = {"model": model, "args": SFTConfig(**usual(tmp_path)), "dataset": texts, "tokenizer": tokenizer()}
    left = run("trl", **given)
    assert left["callback"].delay.opened_at == UNTIL
    assert changed(left["trainer"].model, before, "self_attn")


SIZES = {
    "litgpt": {
        "name": "small", "block_size": 16, "vocab_size": VOCABULARY, "padded_vocab_size": VOCABULARY, "n_layer": 2, "n_head": 2,
        "n_embd": 16, "intermediate_size": 16, "mlp_class_name": "LLaMAMLP", "norm_class_name": "RMSNorm", "bias": False,
        "rotary_percentage": 1.0,
    },
    "torchtune": {
        "vocab_size": VOCABULARY, "num_layers": 2, "num_heads": 2, "num_kv_heads": 2, "embed_dim": 16, "max_seq_len": 16,
        "intermediate_dim": 16,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("steps", [UNTIL - 1, STEPS])
def test_a_model_of_the_library_in_a_loop(name: str, steps: int) -> None:
    torch.manual_seed(0)
    left = run(name, sizes=SIZES[name], batches=batches(steps))
    torch.manual_seed(0)
    before = run(name, sizes=SIZES[name], batches=[])["model"].state_dict()
    assert left["delay"].is_open == (steps >= UNTIL)
    assert len(left["delay"].sites) == 2
    assert changed(left["model"], before, "mlp")
    assert changed(left["model"], before, "attn.") == (steps >= UNTIL)


NEEDED = """
base_model: small
datasets: [{path: rows.jsonl, type: completion}]
micro_batch_size: 2
gradient_accumulation_steps: 1
learning_rate: 0.01
"""
"""What axolotl asks of every configuration."""


def axolotl_config(text: str) -> Any:
    """As axolotl loads a file: read, plugins registered, and checked with what they add to its schema."""
    from axolotl.utils.config import prepare_plugins, validate_config
    from axolotl.utils.dict import DictDefault

    path = Path("config.yml")
    path.write_text(NEEDED + text, encoding="utf-8")
    config = DictDefault(yaml.safe_load(path.read_text(encoding="utf-8")))
    prepare_plugins(config)
    machine = {"bf16": False, "fp8": False, "tf32": False, "n_gpu": 0, "compute_capability": ""}
    return validate_config(config, capabilities=machine, env_capabilities={"torch_version": torch.__version__})


def llama_trainer(folder: Path) -> Trainer:
    rows = torch.randint(3, 50, (16, 9), generator=torch.Generator().manual_seed(1))
    data: Any = [{"input_ids": row, "labels": row} for row in rows]
    return Trainer(lm_of("Llama").train(), TrainingArguments(**usual(folder)), train_dataset=data)


@pytest.mark.parametrize("modules", [None, ["layers.1.self_attn"]])
def test_axolotl_loads_the_plugin_that_its_file_names_and_trains_with_it(tmp_path: Path, modules: list[str] | None) -> None:
    from axolotl.integrations.base import PluginManager

    config = axolotl_config(block("axolotl") + (f"delay_attention_modules: {modules}\n" if modules else ""))
    assert config.delay_attention_until == UNTIL
    trainer = llama_trainer(tmp_path)
    before = copy.deepcopy(trainer.model.state_dict())
    (callback,) = PluginManager.get_instance().add_callbacks_post_trainer(config, trainer)
    trainer.add_callback(callback)
    trainer.train()
    assert callback.delay.opened_at == UNTIL
    assert len(callback.delay.sites) == (1 if modules else 2)
    assert changed(trainer.model, before, "self_attn")


def test_axolotl_refuses_a_step_that_is_none() -> None:
    with pytest.raises(ValueError, match=r"delay_attention_until\n *Input should be a valid integer"):
        axolotl_config(block("axolotl").replace(f": {UNTIL}", ": soon"))


def test_axolotl_without_a_step_to_open_at_is_an_error(tmp_path: Path) -> None:
    from axolotl.integrations.base import PluginManager

    config = axolotl_config(block("axolotl").replace(f"delay_attention_until: {UNTIL}", ""))
    with pytest.raises(LabError, match="needs delay_attention_until: in the configuration"):
        PluginManager.get_instance().add_callbacks_post_trainer(config, llama_trainer(tmp_path))
