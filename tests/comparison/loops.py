"""The job in loops that one writes oneself: with accelerate, torchtitan's checkpoints and Ray Tune, as documented.

Nobody has to install them: each is imported where it is used.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch

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


class Progress:
    """How many steps were made, as an object that can be kept."""

    def __init__(self) -> None:
        self.step = 0

    def state_dict(self) -> dict[str, Any]:
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step = state["step"]


def accelerate(folder: Path, tick: Tick) -> Weights:
    """`save_state()` and `load_state()` with automatic names, two kept, and a loader that has a state."""
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration, ProjectConfiguration, set_seed

    set_seed(0)
    names = ProjectConfiguration(str(folder), automatic_checkpoint_naming=True, total_limit=2)
    loaders = DataLoaderConfiguration(use_stateful_dataloader=True)
    accelerator = Accelerator(cpu=True, project_config=names, dataloader_config=loaders)
    plain = network()
    model, optimizer, loader = accelerator.prepare(plain, torch.optim.Adam(plain.parameters(), lr=LR), stateful_loader())
    progress = Progress()
    accelerator.register_for_checkpointing(progress)
    if kept := numbered(folder / "checkpoints", "checkpoint_*"):
        accelerator.load_state()
        names.iteration = int(kept[-1].name.split("_")[-1]) + 1
    while progress.step < STEPS:
        for batch in loader:
            optimizer.zero_grad()
            accelerator.backward(loss_of(model, *batch))
            optimizer.step()
            progress.step += 1
            tick()
            if progress.step % EVERY == 0:
                accelerator.save_state()
            if progress.step == STEPS:
                break
    return plain.state_dict()


def torchtitan(folder: Path, tick: Tick, mode: str = "disabled") -> Weights:
    """Its CheckpointManager on torch.distributed.checkpoint, in a loop of ours: its own trainer wants a GPU.

    The last checkpoint is a whole one (`last_save_model_only=False`), so that a finished run can be started again.
    """
    import torch.distributed as dist
    from torchtitan.components.checkpointer.dcp import CheckpointManager
    from torchtitan.components.optimizer import LRSchedulersContainer, OptimizersContainer, ParamGroupConfig

    (folder.parent / f"meeting-{os.getpid()}").unlink(missing_ok=True)
    dist.init_process_group("gloo", init_method=f"file://{folder.parent}/meeting-{os.getpid()}", rank=0, world_size=1)
    model, loader, progress = network(), stateful_loader(), Progress()
    adam = ParamGroupConfig(pattern=".*", optimizer_name="Adam", optimizer_kwargs={"lr": LR})
    optimizers = OptimizersContainer.Config(param_groups=[adam], implementation="for-loop").build(model_parts=[model])
    rates = LRSchedulersContainer.Config(warmup_steps=0, decay_ratio=0.0).build(optimizers=optimizers, training_steps=STEPS)
    settings = CheckpointManager.Config(
        enable=True, interval=EVERY, keep_latest_k=2, async_mode=mode, last_save_model_only=False
    )
    keeper = CheckpointManager(
        settings,
        dataloader=loader,
        model_parts=[model],
        optimizers=optimizers,
        lr_schedulers=rates,
        states={"train_state": progress},
        sd_adapter=None,
        base_folder=str(folder),
    )
    keeper.load(step=-1)
    while progress.step < STEPS:
        for batch in loader:
            optimizers.zero_grad()
            loss_of(model, *batch).backward()
            optimizers.step()
            progress.step += 1
            tick()
            keeper.save(progress.step, last_step=progress.step == STEPS)
            if progress.step == STEPS:
                break
    keeper.maybe_wait_for_saving()
    keeper.close()
    return model.state_dict()


def torchtitan_async(folder: Path, tick: Tick) -> Weights:
    return torchtitan(folder, tick, "async")


def _trial(settings: dict[str, Any]) -> None:
    """A function as Ray Tune wants it: it goes on from the checkpoint it is given, and reports with a new one."""
    import tempfile

    from ray import tune

    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    tokens_BT, target_BT = samples()
    first = 0
    if given := tune.get_checkpoint():
        with given.as_directory() as place:
            kept = torch.load(Path(place) / "state.pt")
        first = kept["step"]
        model.load_state_dict(kept["model"]), optimizer.load_state_dict(kept["optimizer"])
    for step in range(first + 1, STEPS + 1):
        rows = slice((step - 1) * BATCH, step * BATCH)
        loss = loss_of(model, tokens_BT[rows], target_BT[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with open(settings["ticks"], "ab", buffering=0) as ticks:
            ticks.write(b".")
        if step % EVERY == 0:
            with tempfile.TemporaryDirectory() as place:
                state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(state, Path(place) / "state.pt")
                tune.report({"loss": loss.item(), "step": step}, checkpoint=tune.Checkpoint.from_directory(place))
        elif step % LOG == 0:
            tune.report({"loss": loss.item(), "step": step})


def ray_tune(folder: Path, tick: Tick) -> Weights:
    """`Tuner.restore(…, resume_unfinished, resume_errored)` where `can_restore`; a snapshot of the experiment every second."""
    import ray
    from ray import tune

    os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "1"
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    place = folder / "experiment"
    if tune.Tuner.can_restore(str(place)):
        tuner = tune.Tuner.restore(str(place), _trial, resume_unfinished=True, resume_errored=True)
    else:
        keep = tune.CheckpointConfig(num_to_keep=2)
        where = tune.RunConfig(name="experiment", storage_path=str(folder), checkpoint_config=keep, verbose=0)
        tuner = tune.Tuner(_trial, param_space={"ticks": os.environ["TICKS"]}, run_config=where)
    (result,) = tuner.fit()
    if result.error:
        raise result.error
    with result.checkpoint.as_directory() as kept:
        return dict(torch.load(Path(kept) / "state.pt")["model"])


def ray_losses(folder: Path) -> dict[int, float]:
    (log,) = folder.glob("experiment/*/result.json")
    return {line["step"]: line["loss"] for line in map(json.loads, log.read_text().splitlines())}


TOOLS = {
    "accelerate": Tool(
        "accelerate", ("accelerate", "torchdata"), accelerate, lambda folder: files_of_last(folder, "checkpoints/checkpoint_*")
    ),
    "torchtitan": Tool(
        "torchtitan",
        ("torchtitan.components.checkpointer.dcp", "torchtitan.components.optimizer", "torchdata"),
        torchtitan,
        lambda folder: files_of_last(folder, "checkpoint/step-*"),
    ),
    "torchtitan-async": Tool(
        "torchtitan",
        ("torchtitan.components.checkpointer.dcp", "torchtitan.components.optimizer", "torchdata"),
        torchtitan_async,
        lambda folder: files_of_last(folder, "checkpoint/step-*"),
    ),
    "ray-tune": Tool(
        "ray", ("ray.tune",), ray_tune, lambda folder: files_of_last(folder, "experiment/*/checkpoint_*"), ray_losses
    ),
}
