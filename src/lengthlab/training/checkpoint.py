"""A run in training as one file: weights, optimizer state and the step. Safetensors, no pickle; data needs no random state."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf
from pathlib import Path

import torch
from safetensors.torch import save

from lengthlab.errors import LabError, require
from lengthlab.store import Folder
from lengthlab.store.folder import CHECKPOINT, WEIGHTS
from lengthlab.training.state import TrainState
from lengthlab.training.tensor_file import Misfit, NoTensors, Shape, read_tensors


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
    bad = f"{path} is truncated or not a checkpoint: remove it to train this run from its start"
    try:
        note, tensors = read_tensors(path, _shapes(state), str(state.device))
        run_id, step, seconds = str(note["run"]), int(note["step"]), float(note["seconds"])
        precision = str(note["precision"])
        looks, spared = int(note.get("looks", 0)), [int(steps) for steps in note.get("spared", state.mastery.spared)]
        slipped = bool(note.get("slipped", False))
    except Misfit:
        raise LabError(f"{path} does not fit the model of run {state.run.id}: remove it to train from the start") from None
    except (NoTensors, KeyError, TypeError, ValueError, OverflowError):
        raise LabError(bad) from None
    if run_id != state.run.id:
        raise LabError(f"{path} belongs to run {run_id}, not to {state.run.id}: move it back where it came from")
    known = min(step, looks, *spared) >= 0 and step + sum(spared) <= state.run.steps
    require(known and len(spared) == len(state.mastery.spared) and 0 <= seconds < inf, bad)
    _load(state, tensors, path)
    state.refresh()
    state.step, state.mastery.looks, state.mastery.spared, state.mastery.slipped = step, looks, spared, slipped
    if not precision.endswith(state.precision):
        state.precision = f"{precision}, then {state.precision}"
    return seconds


def _shapes(state: TrainState) -> Callable[[str], Shape | None]:
    """What a checkpoint of this run has under a name."""
    weights = {name: tuple(value.shape) for name, value in state.network.state_dict().items()}
    parameters = {name: tuple(value.shape) for name, value in state.network.named_parameters()}

    def wanted(name: str) -> Shape | None:
        kind, _, rest = name.partition("/")
        if kind == "weights":
            return weights.get(rest)
        key, _, parameter = rest.partition("/")
        return () if key == "step" and parameter in parameters else parameters.get(parameter)

    return wanted


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
    shapes = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    try:
        network.load_state_dict(read_tensors(path, shapes.get)[1])
    except (Misfit, NoTensors, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        what = f"{path} is missing, truncated or of another model ({reason})"
        raise LabError(f"{what}: put it back, or move the folder away and train the run again") from None


def _detached(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies on the CPU; tied weights become two, because safetensors refuses shared memory."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
