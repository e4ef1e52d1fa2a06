"""lengthlab: train sequence models on short sequences, and find out how far beyond that length they still work."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from lengthlab import models as models
    from lengthlab import tasks as tasks
    from lengthlab.adam import Adam as Adam
    from lengthlab.errors import LabError as LabError
    from lengthlab.plan import read_plan as read_plan
    from lengthlab.run import Run as Run
    from lengthlab.schedule import Mastered as Mastered
    from lengthlab.schedule import Phase as Phase
    from lengthlab.schedule import Schedule as Schedule
    from lengthlab.schedule import delayed as delayed
    from lengthlab.schedule import end_to_end as end_to_end
    from lengthlab.schedule import epochs as epochs
    from lengthlab.switch import Stages as Stages
    from lengthlab.switch import delay as delay
    from lengthlab.switch import delay_attention as delay_attention
    from lengthlab.training import Result as Result
    from lengthlab.training import train as train
    from lengthlab.training import train_all as train_all

_ROOMS = {
    "tasks": "tasks",
    "models": "models",
    "Adam": "adam",
    "delay": "switch",
    "delay_attention": "switch",
    "Stages": "switch",
    "LabError": "errors",
    "read_plan": "plan",
    "Run": "run",
    "Mastered": "schedule",
    "Phase": "schedule",
    "Schedule": "schedule",
    "delayed": "schedule",
    "end_to_end": "schedule",
    "epochs": "schedule",
    "Result": "training",
    "train": "training",
    "train_all": "training",
}


def __getattr__(name: str) -> Any:
    """Names are looked up when first used, so that `lengthlab --help` need not wait for torch."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'lengthlab' has no attribute '{name}'")
    room = import_module(f"lengthlab.{_ROOMS[name]}")
    return room if _ROOMS[name] == name else getattr(room, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS])
