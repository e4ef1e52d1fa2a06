"""WHAT is learned. One task a file; `TASKS` maps the names that users type to what makes them."""

from collections.abc import Callable

from lengthlab.tasks.modulo_recall import ModuloRecall as ModuloRecall
from lengthlab.tasks.modulo_recall import modulo as modulo
from lengthlab.tasks.modulo_recall import modulo_recall
from lengthlab.tasks.modulo_recall import recall as recall
from lengthlab.tasks.task import Answer as Answer
from lengthlab.tasks.task import Batch as Batch
from lengthlab.tasks.task import Task as Task

TASKS: dict[str, Callable[..., Task]] = {
    "modulo-recall": modulo_recall,
    "modulo": modulo,
    "recall": recall,
}
