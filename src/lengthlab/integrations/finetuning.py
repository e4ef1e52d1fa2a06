"""A language model fine-tuned on prompts and completions with Hugging Face's Trainer: whole, or by LoRA. Kill it whenever you
like: it goes on from its last checkpoint.

    checkpoints/     the Trainer's own; gone when training is over
    model/           what was learned: the model, or with LoRA its adapter, and the tokenizer

The loss is that of completions alone. Shapes: B rows, T tokens.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import PrinterCallback, Trainer, TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint

from lengthlab.errors import LabError, require, require_number, require_whole
from lengthlab.integrations.configs import quiet
from lengthlab.integrations.language_model import LanguageModel
from lengthlab.tasks.batch import IGNORE

CHECKPOINTS, MODEL = "checkpoints", "model"


@dataclass(frozen=True)
class Recipe:
    """How it is trained: `rank` of LoRA's matrices, or 0 for all weights; a cosine after a warm-up of this share of steps."""

    rank: int = 8
    epochs: float = 1.0
    batch: int = 32
    lr: float = 1e-4
    warm_up: float = 0.03
    save_every: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        require_whole(self.rank, "the rank of LoRA", 0, 4096)
        require_number(self.epochs, "epochs", above=0)
        require_whole(self.batch, "the batch", 1)
        require_number(self.lr, "the learning rate", above=0)
        require_whole(self.save_every, "steps from checkpoint to checkpoint", 1)

    @property
    def training(self) -> str:
        return f"LoRA, rank {self.rank}" if self.rank else "all weights"

    @property
    def content(self) -> dict[str, Any]:
        """All that decides what is learned."""
        return {name: value for name, value in asdict(self).items() if name not in ("save_every", "seed")}


class Rows(Dataset[dict[str, list[int]]]):
    """Prompts and completions as tokens; nothing is asked of a prompt."""

    def __init__(self, lm: LanguageModel, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = [_row(lm, row) for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> dict[str, list[int]]:
        return self.rows[place]


def finetune(
    lm: LanguageModel, rows: Sequence[Mapping[str, Any]], recipe: Recipe, folder: Path, device: torch.device
) -> LanguageModel:
    """The model after training, which goes on where it was in this folder; what is there already is read."""
    set_seed(recipe.seed)  # LoRA's matrices are drawn
    kept = folder / MODEL
    if kept.is_dir():
        return LanguageModel(lm.path, _read(lm, recipe, kept).to(device), lm.tokenizer)
    # All weights move by less than 16 bits can tell, so that they are kept in fp32; a GPU takes its steps in bf16 all the same.
    model = _with_lora(lm.model, recipe) if recipe.rank else lm.model.float()
    data = Rows(lm, rows)
    with quiet():
        arguments = _arguments(recipe, folder, len(data), device)
        trainer = Trainer(model, arguments, data_collator=_Collator(lm.pad), train_dataset=data)
        trainer.remove_callback(PrinterCallback)
        place = folder / CHECKPOINTS
        last: Any = get_last_checkpoint
        trainer.train(resume_from_checkpoint=last(str(place)) if place.is_dir() else None)
        _require_finite(model)
        _save(lm, model, kept)
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    return LanguageModel(lm.path, model.to(device), lm.tokenizer)


def steps_of(recipe: Recipe, rows: int) -> int:
    """
    >>> steps_of(Recipe(batch=32, epochs=1), 5_000)
    157
    """
    return max(1, int(recipe.epochs * -(-rows // recipe.batch)))


def _arguments(recipe: Recipe, folder: Path, rows: int, device: torch.device) -> TrainingArguments:
    steps = steps_of(recipe, rows)
    gpu = device.type == "cuda"
    return TrainingArguments(
        output_dir=str(folder / CHECKPOINTS),
        max_steps=steps,
        per_device_train_batch_size=recipe.batch,
        learning_rate=recipe.lr,
        lr_scheduler_type="cosine",
        warmup_steps=round(recipe.warm_up * steps),
        save_strategy="steps",
        save_steps=recipe.save_every,
        save_total_limit=2,
        logging_steps=max(1, steps // 20),
        bf16=gpu and torch.cuda.is_bf16_supported(),
        use_cpu=device.type == "cpu",
        seed=recipe.seed,
        data_seed=recipe.seed,
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=gpu,
    )


def _with_lora(model: Any, recipe: Recipe) -> Any:
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError:
        raise LabError("LoRA needs peft: pip install 'lengthlab[rules]', or train all weights with --full") from None
    config = LoraConfig(r=recipe.rank, lora_alpha=2 * recipe.rank, target_modules="all-linear", task_type="CAUSAL_LM")
    return get_peft_model(model, config)


def _read(lm: LanguageModel, recipe: Recipe, kept: Path) -> Any:
    """What was learned before; a LoRA's adapter goes onto the model."""
    if not recipe.rank:
        return type(lm.model).from_pretrained(kept, local_files_only=True)
    from peft import PeftModel

    return PeftModel.from_pretrained(lm.model, str(kept))


def _save(lm: LanguageModel, model: Any, place: Path) -> None:
    """All of it or nothing under this name."""
    half = place.with_name(f".{place.name}.partial")
    shutil.rmtree(half, ignore_errors=True)
    model.save_pretrained(half)
    lm.tokenizer.save_pretrained(half)
    os.replace(half, place)


def _require_finite(model: Any) -> None:
    broken = next((name for name, each in model.named_parameters() if not torch.isfinite(each).all()), None)
    require(broken is None, f"{broken} is not finite after training: a smaller learning rate may help")


def _row(lm: LanguageModel, row: Mapping[str, Any]) -> dict[str, list[int]]:
    prompt, completion = lm.prompt(row["prompt"]), lm.completion(row["completion"])
    return {"input_ids": [*prompt, *completion], "labels": [*[IGNORE] * len(prompt), *completion]}


@dataclass(frozen=True)
class _Collator:
    """Rows of a batch, padded on the right."""

    pad: int

    def __call__(self, rows: Sequence[Mapping[str, list[int]]]) -> dict[str, Tensor]:
        widest = max(len(row["input_ids"]) for row in rows)

        def padded(name: str, value: int) -> Tensor:
            return torch.tensor([[*row[name], *[value] * (widest - len(row[name]))] for row in rows])

        read_BT = torch.tensor([[1] * len(row["labels"]) + [0] * (widest - len(row["labels"])) for row in rows])
        return {"input_ids": padded("input_ids", self.pad), "labels": padded("labels", IGNORE), "attention_mask": read_BT}
