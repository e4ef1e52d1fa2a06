"""lengthlab: train sequence models on short sequences, and find out how far beyond that length they still work."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lengthlab import started as started  # reads the script that is running, before it can be edited

__version__ = "0.2.0"

if TYPE_CHECKING:
    from lengthlab import models as models
    from lengthlab import tasks as tasks
    from lengthlab.errors import LabError as LabError
    from lengthlab.gradual import Chance as Chance
    from lengthlab.gradual import Layers as Layers
    from lengthlab.gradual import Window as Window
    from lengthlab.integrations.checkpoints import close_again as close_again
    from lengthlab.launch import train as train
    from lengthlab.launch import train_all as train_all
    from lengthlab.registry import register as register
    from lengthlab.report.result_table import ResultTable as ResultTable
    from lengthlab.report.result_table import results as results
    from lengthlab.spec.grid import grid as grid
    from lengthlab.spec.optimizer import Adam as Adam
    from lengthlab.spec.optimizer import AdamW as AdamW
    from lengthlab.spec.plan import read_plan as read_plan
    from lengthlab.spec.rate import Cosine as Cosine
    from lengthlab.spec.rate import Linear as Linear
    from lengthlab.spec.rate import WarmUp as WarmUp
    from lengthlab.spec.run import Run as Run
    from lengthlab.spec.schedule import Mastered as Mastered
    from lengthlab.spec.schedule import Phase as Phase
    from lengthlab.spec.schedule import Schedule as Schedule
    from lengthlab.spec.schedule import delayed as delayed
    from lengthlab.spec.schedule import end_to_end as end_to_end
    from lengthlab.spec.schedule import epochs as epochs
    from lengthlab.spec.schedule import opening as opening
    from lengthlab.spec.slips import Slips as Slips
    from lengthlab.switch import Stages as Stages
    from lengthlab.switch import by_chance as by_chance
    from lengthlab.switch import by_layer as by_layer
    from lengthlab.switch import by_window as by_window
    from lengthlab.switch import delay as delay
    from lengthlab.switch import delay_attention as delay_attention
    from lengthlab.training import Result as Result

_ROOMS = {
    "tasks": "tasks",
    "models": "models",
    "Adam": "spec.optimizer",
    "AdamW": "spec.optimizer",
    "Cosine": "spec.rate",
    "Linear": "spec.rate",
    "WarmUp": "spec.rate",
    "delay": "switch",
    "delay_attention": "switch",
    "Stages": "switch",
    "close_again": "integrations.checkpoints",
    "by_chance": "switch",
    "by_layer": "switch",
    "by_window": "switch",
    "LabError": "errors",
    "register": "registry",
    "results": "report.result_table",
    "ResultTable": "report.result_table",
    "read_plan": "spec.plan",
    "grid": "spec.grid",
    "Run": "spec.run",
    "Mastered": "spec.schedule",
    "Slips": "spec.slips",
    "Phase": "spec.schedule",
    "Schedule": "spec.schedule",
    "delayed": "spec.schedule",
    "end_to_end": "spec.schedule",
    "epochs": "spec.schedule",
    "opening": "spec.schedule",
    "Layers": "gradual",
    "Chance": "gradual",
    "Window": "gradual",
    "Result": "training",
    "train": "launch",
    "train_all": "launch",
}


def __getattr__(name: str) -> Any:
    """Names are looked up when first used, so that `lengthlab --help` need not wait for torch."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'lengthlab' has no attribute '{name}'")
    room = import_module(f"lengthlab.{_ROOMS[name]}")
    return room if _ROOMS[name] == name else getattr(room, name)


def __dir__() -> list[str]:
    """What a user wants to see."""
    return sorted([*_ROOMS, "__version__"])
