"""WHAT is learned. One task a file; the names that users type are registered here."""

from lengthlab.registry import register
from lengthlab.tasks.batch import IGNORE as IGNORE
from lengthlab.tasks.batch import Batch as Batch
from lengthlab.tasks.mixture import Mixture as Mixture
from lengthlab.tasks.modulo_recall import ModuloRecall as ModuloRecall
from lengthlab.tasks.modulo_recall import modulo as modulo
from lengthlab.tasks.modulo_recall import recall as recall
from lengthlab.tasks.task import ALL as ALL
from lengthlab.tasks.task import Task as Task

register(Task, "modulo-recall", ModuloRecall)
register(Task, "modulo", modulo)
register(Task, "recall", recall)
register(Task, "mixture", Mixture)
