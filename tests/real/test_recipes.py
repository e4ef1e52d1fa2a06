"""What docs/trainers.md shows works, on a small model each. Those of other libraries: tests/libraries."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import TrainingArguments

from lengthlab.switch import Delay, DelayWarning, delay_attention
from recipes import STEPS, UNTIL, Gpt, batches, blocks, changed, run
from small_lms import VOCABULARY, lm_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:The 'train_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated"),
    pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
ELSEWHERE = {"trl", "torchtune", "litgpt", "axolotl"}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def optimizers(model: nn.Module) -> list[torch.optim.Optimizer]:
    parameters = list(model.parameters())
    return [torch.optim.SGD(parameters[:1], lr=0.1), torch.optim.AdamW(parameters[1:], lr=0.1, weight_decay=0.1)]


def test_every_block_of_the_page_is_run() -> None:
    here = {"loop", "loop-again", "trainer", "lightning", "accelerate", "hugging-face-again", "average"}
    assert blocks() == here | ELSEWHERE


@pytest.mark.parametrize("steps", [UNTIL - 1, STEPS])
def test_a_loop_of_ones_own(steps: int) -> None:
    model = Gpt()
    before = copy.deepcopy(model.state_dict())
    left = run("loop", model=model, optimizers=optimizers(model), batches=batches(steps))
    assert left["delay"].is_open == (steps >= UNTIL)
    assert changed(model, before, "recurrence")
    assert changed(model, before, "attention") == (steps >= UNTIL)
    if steps < UNTIL:
        again = run("loop-again", model=Gpt())
        assert (again["delay"].steps, again["delay"].is_open) == (steps, False)


def arguments(folder: Path) -> TrainingArguments:
    return TrainingArguments(
        str(folder), max_steps=STEPS, per_device_train_batch_size=2, report_to="none", disable_tqdm=True, use_cpu=True,
        save_steps=UNTIL - 1, logging_strategy="no",
    )  # fmt: skip


def rows() -> list[dict[str, Any]]:
    tokens = torch.randint(3, VOCABULARY, (16, 9), generator=torch.Generator().manual_seed(1))
    return [{"input_ids": row, "labels": row} for row in tokens]


def test_the_trainer_of_hugging_face_and_its_checkpoint(tmp_path: Path) -> None:
    model = lm_of("Llama").train()
    left = run("trainer", model=model, args=arguments(tmp_path), dataset=rows())
    (callback,) = [each for each in left["trainer"].callback_handler.callbacks if hasattr(each, "delay")]
    assert callback.delay.opened_at == UNTIL
    again = run("hugging-face-again", folder=tmp_path / f"checkpoint-{UNTIL - 1}")["delay"]
    assert (again.steps, again.is_open, again.until) == (UNTIL - 1, False, UNTIL)


def test_lightning(tmp_path: Path) -> None:
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    options = {"accelerator": "cpu", "max_steps": UNTIL - 1, **quiet}
    data = DataLoader([(tokens[0], targets[0]) for tokens, targets in batches()], batch_size=1)
    left = run("lightning", make_model=Gpt, options=options, batches=data)
    left["trainer"].save_checkpoint(tmp_path / "run.ckpt")
    with pytest.warns(DelayWarning, match=r"saved with gpt.attention off after 2 steps"):
        left["Mine"].load_from_checkpoint(tmp_path / "run.ckpt")


def test_accelerate(tmp_path: Path) -> None:
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    data = DataLoader([(tokens[0], targets[0]) for tokens, targets in batches()], batch_size=1)
    left = run("accelerate", model=model, optimizer=optimizer, batches=data, options={"cpu": True})
    assert left["delay"].opened_at == UNTIL
    fresh = delay_attention(Gpt(), until=UNTIL)
    fresh.load_state_dict(torch.load(tmp_path / "checkpoint" / "custom_checkpoint_0.pkl"))
    assert (fresh.steps, fresh.is_open) == (STEPS, True)


def test_an_average() -> None:
    model = Gpt()
    left = run("average", model=model, optimizer=torch.optim.AdamW(model.parameters()))
    held, tokens = left["delay"], batches()[0][0]
    assert isinstance(held, Delay)
    closed = left["average"](tokens)
    held.open()
    assert not torch.equal(left["average"](tokens), closed)
    assert torch.equal(left["average"](tokens), model(tokens))
