"""Two processes under DDP, each with a callback: the first batch is checked in both, and the training does not notice."""

from __future__ import annotations

import os
import socket
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed, multiprocessing, nn
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments

from lengthlab.integrations.huggingface import DelayedAttentionCallback
from lengthlab.switch import Delay, delay_attention
from lengthlab.switch.check import DelayReport
from small_lms import VOCABULARY, lm_of

lightning = pytest.importorskip("pytorch_lightning")
from lengthlab.integrations.lightning import DelayedAttention  # noqa: E402

PROCESSES, STEPS, UNTIL = 2, 4, 2
ROWS = torch.randint(3, VOCABULARY, (16, 9), generator=torch.Generator().manual_seed(1))
pytestmark = pytest.mark.skipif(not distributed.is_gloo_available(), reason="needs gloo")


def counted(held: Delay, with_check: bool) -> list[DelayReport]:
    """The reports of its checks; without them, it has nothing to say."""
    reports: list[DelayReport] = []
    check = held.check

    def spied(batch: Any, model: nn.Module | None = None) -> Any:
        return reports.append(check(batch, model)) if with_check else None

    held.check = spied  # type: ignore[method-assign]
    return reports


def of_hugging_face(folder: Path, with_check: bool) -> dict[str, Any]:
    model = lm_of("Jamba", attention_dropout=0.3).train()
    held = delay_attention(model, until=UNTIL)
    reports = counted(held, with_check)
    args = TrainingArguments(
        str(folder), max_steps=STEPS, per_device_train_batch_size=2, report_to="none", disable_tqdm=True, save_strategy="no",
        use_cpu=True, ddp_backend="gloo", ddp_find_unused_parameters=True, logging_strategy="no", learning_rate=1e-2,
    )  # fmt: skip
    data: Any = [{"input_ids": row, "labels": row} for row in ROWS]
    trainer = Trainer(model, args, train_dataset=data, callbacks=[DelayedAttentionCallback(held)])
    trainer.train()
    return found(model, held, reports, type(trainer.model_wrapped).__name__)


class Holder(lightning.LightningModule):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.model, self.wrapper = lm_of("Jamba", attention_dropout=0.3), ""

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        self.wrapper = type(self.trainer.strategy.model).__name__
        loss: torch.Tensor = self.model(batch, labels=batch).loss
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def of_lightning(folder: Path, with_check: bool) -> dict[str, Any]:
    holder = Holder().train()
    held = delay_attention(holder, modules=["*.self_attn"], until=UNTIL)
    reports = counted(held, with_check)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=PROCESSES, strategy="ddp_find_unused_parameters_true", max_steps=STEPS, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder,
        callbacks=[DelayedAttention(held)],
    )  # fmt: skip
    torch.manual_seed(3)
    trainer.fit(holder, DataLoader(ROWS, batch_size=2))  # type: ignore[arg-type]
    return found(holder, held, reports, holder.wrapper)


def found(model: nn.Module, held: Delay, reports: list[DelayReport], wrapper: str) -> dict[str, Any]:
    weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    off = [report.off for report in reports]
    return {"weights": weights, "opened_at": held.opened_at, "off": off, "wrapper": wrapper}


WAYS = {"hugging face": of_hugging_face, "lightning": of_lightning}


def work(rank: int, folder: Path, port: int) -> None:
    """One of the processes, as `torchrun` starts it."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "here"}
    mine = {"RANK": str(rank), "LOCAL_RANK": str(rank), "GROUP_RANK": "0"}
    os.environ.update(where | mine | dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(PROCESSES)))
    distributed.init_process_group("gloo", rank=rank, world_size=PROCESSES)
    done = {(name, check): way(folder, check) for name, way in WAYS.items() for check in (True, False)}
    torch.save(done, folder / f"{rank}.pt")
    if distributed.is_initialized():
        distributed.destroy_process_group()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> list[dict[Any, Any]]:
    folder = tmp_path_factory.mktemp("processes")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(work, (folder, port), PROCESSES)
    return [torch.load(folder / f"{rank}.pt") for rank in range(PROCESSES)]


@pytest.mark.parametrize("way", WAYS)
def test_each_process_checks_its_first_batch_once_and_opens_at_the_step(done: list[dict[Any, Any]], way: str) -> None:
    for mine in (each[way, True] for each in done):
        assert mine["wrapper"] == "DistributedDataParallel"
        assert mine["opened_at"] == UNTIL
        ((off,),) = mine["off"]
        assert off.endswith("layers.1.self_attn")


@pytest.mark.parametrize("way", WAYS)
def test_the_weights_of_all_processes_are_those_without_the_check(done: list[dict[Any, Any]], way: str) -> None:
    wanted = done[0][way, False]["weights"]
    start = dict(lm_of("Jamba").named_parameters())
    own = "model." if way == "lightning" else ""  # what holds it there
    moved = [name for name, value in wanted.items() if not torch.equal(value, start[name.removeprefix(own)])]
    assert any("self_attn" in name for name in moved)
    for each in done:
        for check in (True, False):
            weights = each[way, check]["weights"]
            assert all(torch.equal(weights[name], value) for name, value in wanted.items())
