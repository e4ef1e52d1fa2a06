"""A run in training as one file: weights, Adam's memory and the step. Safetensors, no pickle; data needs no random state."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save

from lengthlab.errors import LabError
from lengthlab.store import Folder
from lengthlab.training.trainee import Trainee

NAME = "checkpoint.safetensors"
WEIGHTS = "weights.safetensors"


def save_checkpoint(trainee: Trainee, folder: Folder, seconds: float) -> None:
    """Replace the checkpoint of a run; `seconds` is how long it has trained so far."""
    tensors = {f"weights/{name}": tensor for name, tensor in trainee.network.state_dict().items()}
    for name, parameter in trainee.network.named_parameters():
        for key, value in trainee.optimizer.state.get(parameter, {}).items():
            tensors[f"adam/{key}/{name}"] = value
    note = {"run": trainee.run.id, "step": trainee.step, "seconds": seconds, "precision": trainee.precision}
    note |= {"looks": trainee.mastery.looks, "spared": trainee.mastery.spared}
    folder.write(NAME, save(_detached(tensors), metadata={"lengthlab": json.dumps(note)}))


def load_checkpoint(trainee: Trainee, folder: Folder) -> float:
    """Bring a fresh trainee to where its checkpoint is; how long it had trained by then. No checkpoint: nothing, 0."""
    path = folder.path / NAME
    if not path.exists():
        return 0.0
    try:
        with safe_open(path, framework="pt") as file:
            note = json.loads((file.metadata() or {})["lengthlab"])
        run_id, step, seconds = str(note["run"]), int(note["step"]), float(note["seconds"])
        precision = str(note["precision"])
        looks, spared = int(note.get("looks", 0)), [int(steps) for steps in note.get("spared", trainee.mastery.spared)]
        tensors = load_file(path, device=str(trainee.device))
    except (SafetensorError, KeyError, TypeError, ValueError, OSError):
        raise LabError(f"{path} is truncated or not a checkpoint: remove it to train this run from its start") from None
    if run_id != trainee.run.id:
        raise LabError(f"{path} belongs to run {run_id}, not to {trainee.run.id}: move it back where it came from")
    _load(trainee, tensors, path)
    trainee.refresh()
    trainee.step, trainee.mastery.looks, trainee.mastery.spared = step, looks, spared
    if not precision.endswith(trainee.precision):
        trainee.precision = f"{precision}, then {trainee.precision}"
    return seconds


def _load(trainee: Trainee, tensors: dict[str, torch.Tensor], path: Path) -> None:
    weights = {name.removeprefix("weights/"): value for name, value in tensors.items() if name.startswith("weights/")}
    try:
        trainee.network.load_state_dict(weights)
    except RuntimeError:
        raise LabError(f"{path} does not fit the model of run {trainee.run.id}: remove it to train from the start") from None
    for name, parameter in trainee.network.named_parameters():
        keys = [key for key in ("step", "exp_avg", "exp_avg_sq") if f"adam/{key}/{name}" in tensors]
        if keys:
            trainee.optimizer.state[parameter] = {key: tensors[f"adam/{key}/{name}"] for key in keys}


def save_weights(trainee: Trainee, folder: Folder) -> None:
    """What was learned, under the names of the network's state dict."""
    note = {"run": trainee.run.id, "step": trainee.step}
    folder.write(WEIGHTS, save(_detached(trainee.network.state_dict()), metadata={"lengthlab": json.dumps(note)}))


def load_weights(network: torch.nn.Module, folder: Folder) -> None:
    path = folder.path / WEIGHTS
    try:
        network.load_state_dict(load_file(path))
    except (SafetensorError, OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise LabError(f"{path} is missing, truncated or of another model ({reason})") from None


def _detached(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies on the CPU; tied weights become two, because safetensors refuses shared memory."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
