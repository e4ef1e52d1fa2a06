"""A program held against its task: on every short input, and on long ones that are drawn.

Shapes: B sequences, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import batched, islice
from typing import TYPE_CHECKING

import numpy as np

from lengthlab.errors import LabError, cut, explain, require
from lengthlab.theory.batches import say_all
from lengthlab.theory.program import Program

if TYPE_CHECKING:
    from lengthlab.tasks import Task

Prompts = Callable[[int], Iterable[Sequence[str]]]
"""Every input of a length: the words up to where the answer begins."""
