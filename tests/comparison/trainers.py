"""The job by what brings its own loop: lengthlab, Lightning and the Trainer of Hugging Face, as their documentation has it.

lengthlab draws its samples from the task, and is made to keep checkpoints by steps instead of by the clock. Nobody has to
install the others: each is imported where it is used.
"""

from __future__ import annotations

import csv
import json
import sys
from math import inf
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from comparison.job import (
    BATCH,
    EVERY,
    LOG,
    LR,
    STEPS,
    Tick,
    Tool,
    Weights,
    files_of_last,
    loss_of,
    network,
    numbered,
    samples,
    stateful_loader,
)


def lengthlab(folder: Path, tick: Tick) -> Weights:
    """The command `lengthlab train`, as it is but for when it keeps a checkpoint."""
    from lengthlab.cli import main
    from lengthlab.launch import in_process
    from lengthlab.training import recorder
    from small_runs import weights

    note = recorder.Recorder.note

    def counted(self: recorder.Recorder, phase: int, loss: float) -> None:
        tick()
        self._pause = 0.0 if self.state.step % EVERY == 0 else inf
        note(self, phase, loss)

    recorder.Recorder.note = counted  # type: ignore[method-assign]
    recorder.LOG_STEPS = LOG
    in_process.START_SECONDS = 1e9
    torch.set_num_threads(1)
    try:
        (folder.parent / "plan.toml").write_text(PLAN)
        words = ["train", str(folder.parent / "plan.toml"), "--store", str(folder / "store"), "--no-progress"]
        sys.argv[:] = ["lengthlab", *words]
        main()
    except SystemExit as end:
        if end.code:
            raise
    return weights(folder / "store", _our_run(folder))


PLAN = f"""
[[run]]
task = {{ name = "modulo-recall", modulus = 2, values = 4, keys = 12 }}
model = {{ name = "hybrid-block", width = 8, blocks = 1, heads = 2, mlp = 1, positions = "none", scores = "log-n" }}
schedule = {{ name = "end-to-end", joint = {STEPS}, last = 0, lr = {LR} }}
lengths = [1, 3]
batch = {BATCH}
evaluate = [3]
seed = 100
"""


def _our_run(folder: Path) -> Any:
    from lengthlab.spec.plan import read_plan

    (run,) = read_plan(folder.parent / "plan.toml", ())
    return run


def our_newest(folder: Path) -> list[Path]:
    from small_runs import checkpoint_steps

    return list(checkpoint_steps(folder / "store", _our_run(folder)).values())[:1]


def our_losses(folder: Path) -> dict[int, float]:
    from small_runs import learned

    return {step: loss for step, _, loss, _ in learned(folder / "store", _our_run(folder))}


def lightning(folder: Path, tick: Tick) -> Weights:
    """ModelCheckpoint with `save_last`, and `fit(ckpt_path="last")`; the two newest are kept beside `last.ckpt`."""
    import pytorch_lightning as pl
    from pytorch_lightning.callbacks import ModelCheckpoint
    from pytorch_lightning.loggers import CSVLogger

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = network()

        def training_step(self, batch: Any, number: int) -> Tensor:
            loss = loss_of(self.network, *batch)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=LR)

    class Ticks(pl.Callback):
        def on_train_batch_end(self, *_: Any) -> None:
            tick()

    pl.seed_everything(0, verbose=False)
    keep = ModelCheckpoint(
        folder / "checkpoints", every_n_train_steps=EVERY, monitor="step", mode="max", save_top_k=2, save_last=True
    )
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=STEPS,
        log_every_n_steps=LOG,
        logger=CSVLogger(folder, name="log"),
        callbacks=[Ticks(), keep],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    module = Module()
    trainer.fit(module, stateful_loader(), ckpt_path="last")
    return module.network.state_dict()


def lightning_losses(folder: Path) -> dict[int, float]:
    """Of all logs, one for each start; what a later one says of a step counts."""
    found = {}
    for log in numbered(folder / "log", "version_*"):
        if (log / "metrics.csv").exists():
            with (log / "metrics.csv").open() as rows:
                found |= {int(row["step"]): float(row["loss"]) for row in csv.DictReader(rows) if row.get("loss")}
    return found


def trainer(folder: Path, tick: Tick) -> Weights:
    """`save_strategy="steps"`, `save_total_limit=2`, and `train(resume_from_checkpoint=get_last_checkpoint(…))`."""
    from transformers import Trainer, TrainerCallback, TrainingArguments
    from transformers.trainer_utils import get_last_checkpoint

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network()

        def forward(self, input_ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
            return {"loss": loss_of(self.network, input_ids, labels)}

    class Ticks(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            tick()

    settings = TrainingArguments(
        str(folder / "out"),
        use_cpu=True,
        max_steps=STEPS,
        per_device_train_batch_size=BATCH,
        learning_rate=LR,
        lr_scheduler_type="constant",
        logging_steps=LOG,
        save_strategy="steps",
        save_steps=EVERY,
        save_total_limit=2,
        seed=0,
        data_seed=0,
        report_to="none",
        disable_tqdm=True,
    )
    rows = [{"input_ids": tokens_T, "labels": target_T} for tokens_T, target_T in zip(*samples(), strict=True)]
    model = Model()
    last = get_last_checkpoint(folder / "out") if (folder / "out").is_dir() else None
    Trainer(model, settings, train_dataset=rows, callbacks=[Ticks()]).train(resume_from_checkpoint=last)
    return model.network.state_dict()


def trainer_losses(folder: Path) -> dict[int, float]:
    last = numbered(folder / "out", "checkpoint-*")[-1]
    history = json.loads((last / "trainer_state.json").read_text())["log_history"]
    return {line["step"]: line["loss"] for line in history if "loss" in line}


TOOLS = {
    "lengthlab": Tool(
        "lengthlab",
        ("lengthlab.training.engine", "torch._dynamo"),
        lengthlab,
        our_newest,
        our_losses,
    ),
    "lightning": Tool(
        "pytorch-lightning",
        ("pytorch_lightning", "torchdata"),
        lightning,
        lambda folder: [folder / "checkpoints" / "last.ckpt"],
        lightning_losses,
    ),
    "trainer": Tool(
        "transformers",
        ("transformers.trainer", "accelerate"),
        trainer,
        lambda folder: files_of_last(folder, "out/checkpoint-*"),
        trainer_losses,
    ),
}
