"""A run in training as one file: weights, optimizer state and the step. Safetensors, no pickle; data needs no random state.

There are two such files, written in turn. A run goes on from the one with more steps, and where the disk has damaged one, from
the other. A file that is whole and not of this run is nobody's damage, and is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path

import torch

from lengthlab.errors import LabError, require
from lengthlab.store import Folder
from lengthlab.store.folder import CHECKPOINT, CHECKPOINTS, WEIGHTS
from lengthlab.training.state import TrainState
from lengthlab.training.tensor_file import Damaged, Misfit, NoTensors, Shape, read_tensors, tensor_file

log = logging.getLogger("lengthlab")


@dataclass(frozen=True)
class Checkpoint:
    """What one of the two files says, on the CPU."""

    path: Path
    tensors: dict[str, torch.Tensor]
    step: int
    seconds: float
    precision: str
    looks: int
    spared: list[int]
    slipped: bool


def save_checkpoint(state: TrainState, folder: Folder, seconds: float, name: str = CHECKPOINT) -> None:
    """Replace one of the two checkpoints of a run; `seconds` is how long it has trained so far."""
    tensors = {f"weights/{name}": tensor for name, tensor in state.network.state_dict().items()}
    for parameter_name, parameter in state.network.named_parameters():
        for key, value in state.optimizer.state.get(parameter, {}).items():
            tensors[f"adam/{key}/{parameter_name}"] = value
    note = {"run": state.run.id, "step": state.step, "seconds": seconds, "precision": state.precision}
    note |= {"looks": state.mastery.looks, "spared": state.mastery.spared, "slipped": state.mastery.slipped}
    folder.write(name, tensor_file(_detached(tensors), note))


def load_checkpoint(state: TrainState, folder: Folder) -> tuple[float, int]:
    """Bring a fresh state to where its newest checkpoint is; how long it had trained by then, and which of the two files is the
    next to be written. No checkpoint: nothing, 0 and the first.
    """
    newest = _newest(state, folder)
    if newest is None:
        return 0.0, 0
    _load(state, newest)
    state.refresh()
    state.step, state.mastery.looks = newest.step, newest.looks
    state.mastery.spared, state.mastery.slipped = newest.spared, newest.slipped
    if not newest.precision.endswith(state.precision):
        state.precision = f"{newest.precision}, then {state.precision}"
    return newest.seconds, 1 - CHECKPOINTS.index(newest.path.name)


def _newest(state: TrainState, folder: Folder) -> Checkpoint | None:
    """The one of the two with more steps. A damaged one is removed: lines of the log that it had are made again, and were it to
    be read after all some other time, they would be missing.
    """
    found: list[Checkpoint] = []
    damaged: dict[Path, Damaged] = {}
    for path in (folder.path / name for name in CHECKPOINTS):
        try:
            found += [_read(state, path)] if path.exists() else []
        except Damaged as error:
            damaged[path] = error
    if not found:
        require(not damaged, _bad(*damaged))
        return None
    newest = max(found, key=lambda each: each.step)
    for path, why in damaged.items():
        folder.remove(path.name)
        where, kept = folder.address(path.name), newest.path.name
        log.warning("%s was damaged and is removed (%s): going on from step %d, in %s", where, why, newest.step, kept)
    return newest


def _read(state: TrainState, path: Path) -> Checkpoint:
    """`Damaged` where nobody can have written it so; what is whole and of no use here is refused."""
    try:
        note, tensors = read_tensors(path, _shapes(state))
        run_id, step, seconds = str(note["run"]), int(note["step"]), float(note["seconds"])
        precision = str(note["precision"])
        looks, spared = int(note.get("looks", 0)), [int(steps) for steps in note.get("spared", state.mastery.spared)]
        slipped = bool(note.get("slipped", False))
    except Damaged:
        raise
    except Misfit:
        raise LabError(f"{path} does not fit the model of run {state.run.id}: remove it to train from the start") from None
    except (NoTensors, KeyError, TypeError, ValueError, OverflowError):
        raise LabError(_bad(path)) from None
    if run_id != state.run.id:
        raise LabError(f"{path} belongs to run {run_id}, not to {state.run.id}: move it back where it came from")
    known = min(step, looks, *spared) >= 0 and step + sum(spared) <= state.run.steps
    require(known and len(spared) == len(state.mastery.spared) and 0 <= seconds < inf, _bad(path))
    return Checkpoint(path, tensors, step, seconds, precision, looks, spared, slipped)


def _bad(*paths: Path) -> str:
    """What is said of files that a run cannot go on from."""
    names = " and ".join(map(str, paths))
    one = f"{names} is truncated or not a checkpoint: remove it to train this run from its start"
    return one if len(paths) == 1 else f"{names} are truncated or no checkpoints: remove them to train this run from its start"


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


def _load(state: TrainState, checkpoint: Checkpoint) -> None:
    tensors = checkpoint.tensors
    weights = {name.removeprefix("weights/"): value for name, value in tensors.items() if name.startswith("weights/")}
    try:
        state.network.load_state_dict(weights)
    except RuntimeError:
        unfit = f"{checkpoint.path} does not fit the model of run {state.run.id}: remove it to train from the start"
        raise LabError(unfit) from None
    for name, parameter in state.network.named_parameters():
        keys = [key for key in ("step", "exp_avg", "exp_avg_sq") if f"adam/{key}/{name}" in tensors]
        if keys:
            state.optimizer.state[parameter] = {key: tensors[f"adam/{key}/{name}"].to(state.device) for key in keys}


def save_weights(state: TrainState, folder: Folder) -> None:
    """What was learned, under the names of the network's state dict."""
    folder.write(WEIGHTS, tensor_file(_detached(state.network.state_dict()), {"run": state.run.id, "step": state.step}))


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
