"""A run in training as one file: weights, optimizer state and the step. Safetensors, no pickle; data needs no random state."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save

from lengthlab.errors import LabError
from lengthlab.store import Folder
from lengthlab.store.folder import CHECKPOINT, WEIGHTS
from lengthlab.training.state import TrainState


def save_checkpoint(state: TrainState, folder: Folder, seconds: float) -> None:
    """Replace the checkpoint of a run; `seconds` is how long it has trained so far."""
    tensors = {f"weights/{name}": tensor for name, tensor in state.network.state_dict().items()}
    for name, parameter in state.network.named_parameters():
        for key, value in state.optimizer.state.get(parameter, {}).items():
            tensors[f"adam/{key}/{name}"] = value
    note = {"run": state.run.id, "step": state.step, "seconds": seconds, "precision": state.precision}
    note |= {"looks": state.mastery.looks, "spared": state.mastery.spared, "slipped": state.mastery.slipped}
    folder.write(CHECKPOINT, save(_detached(tensors), metadata={"lengthlab": json.dumps(note)}))


def load_checkpoint(state: TrainState, folder: Folder) -> float:
    """Bring a fresh state to where its checkpoint is; how long it had trained by then. No checkpoint: nothing, 0."""
    path = folder.path / CHECKPOINT
    if not path.exists():
        return 0.0
    try:
        with safe_open(path, framework="pt") as file:
            note = json.loads((file.metadata() or {})["lengthlab"])
        run_id, step, seconds = str(note["run"]), int(note["step"]), float(note["seconds"])
        precision = str(note["precision"])
        looks, spared = int(note.get("looks", 0)), [int(steps) for steps in note.get("spared", state.mastery.spared)]
        slipped = bool(note.get("slipped", False))
        tensors = load_file(path, device=str(state.device))
    except (SafetensorError, KeyError, TypeError, ValueError, OSError):
        raise LabError(f"{path} is truncated or not a checkpoint: remove it to train this run from its start") from None
    if run_id != state.run.id:
        raise LabError(f"{path} belongs to run {run_id}, not to {state.run.id}: move it back where it came from")
    _load(state, tensors, path)
    state.refresh()
    state.step, state.mastery.looks, state.mastery.spared, state.mastery.slipped = step, looks, spared, slipped
    if not precision.endswith(state.precision):
        state.precision = f"{precision}, then {state.precision}"
    return seconds


def _load(state: TrainState, tensors: dict[str, torch.Tensor], path: Path) -> None:
    weights = {name.removeprefix("weights/"): value for name, value in tensors.items() if name.startswith("weights/")}
    try:
        state.network.load_state_dict(weights)
    except RuntimeError:
        raise LabError(f"{path} does not fit the model of run {state.run.id}: remove it to train from the start") from None
    for name, parameter in state.network.named_parameters():
        keys = [key for key in ("step", "exp_avg", "exp_avg_sq") if f"adam/{key}/{name}" in tensors]
        if keys:
            state.optimizer.state[parameter] = {key: tensors[f"adam/{key}/{name}"] for key in keys}


def save_weights(state: TrainState, folder: Folder) -> None:
    """What was learned, under the names of the network's state dict."""
    note = {"run": state.run.id, "step": state.step}
    folder.write(WEIGHTS, save(_detached(state.network.state_dict()), metadata={"lengthlab": json.dumps(note)}))


def load_weights(network: torch.nn.Module, folder: Folder) -> None:
    path = folder.path / WEIGHTS
    try:
        network.load_state_dict(load_file(path))
    except (SafetensorError, OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        what = f"{path} is missing, truncated or of another model ({reason})"
        raise LabError(f"{what}: put it back, or move the folder away and train the run again") from None


def _detached(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies on the CPU; tied weights become two, because safetensors refuses shared memory."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
