"""What is left of an answer that is wrong: which quotient of its group survives, and which answers are still given rightly.

Coarser groups may be left of a group: of S3 the sign, of Z6 the residues modulo 2 and 3. They are found from the table of the
group alone: every normal subgroup that one element generates makes one.

Shapes: G elements of a group, N samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from lengthlab.store.diagnosis import Remainder
from lengthlab.tasks import Task
from lengthlab.tasks.group import Group, group_of
from lengthlab.tasks.group_recall import GroupRecall
from lengthlab.tasks.modulo_recall import ModuloRecall

LARGEST = 120
"""Elements of a group whose subgroups are looked for."""
MOST_ANSWERS = 12
"""So many answers are told one by one."""
FEWEST = 5
"""Samples of an answer that tell anything."""


def group_behind(task: Task, question: str) -> Group | None:
    """The group that a question is about, if it is about one.

    >>> group_behind(ModuloRecall(modulus=6), "modulo").name, group_behind(ModuloRecall(), "recall") is None
    ('Z6', True)
    """
    if isinstance(task, ModuloRecall) and question == "modulo" and task.modulus <= LARGEST:
        return group_of(f"Z{task.modulus}")
    if isinstance(task, GroupRecall) and question == "product":
        group = group_of(task.group)
        return group if len(group.words) <= LARGEST else None
    return None


@lru_cache(maxsize=8)
def quotients(name: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """What is left of each element in every quotient that is neither the group nor a point, by name.

    >>> [(called, len(set(classes))) for called, classes in quotients("Z6")]
    [('modulo 2', 2), ('modulo 3', 3)]
    >>> quotients("S3")
    (('sign', (0, 1, 1, 0, 0, 1)),)
    """
    group = group_of(name)
    table, size = group.table_GG.tolist(), len(group.words)
    found = {_normal(table, element) for element in range(1, size)}
    proper = sorted((each for each in found if 1 < len(each) < size), key=len, reverse=True)
    return tuple((_called(name, size // len(each)), _classes(table, each)) for each in proper)


def _normal(table: Sequence[Sequence[int]], element: int) -> frozenset[int]:
    """The least normal subgroup with an element in it."""
    size = len(table)
    inverse = [row.index(0) for row in table]
    made = {table[table[inverse[each]][element]][each] for each in range(size)}
    inside, fresh = {0}, {0}
    while fresh:
        fresh = {table[one][other] for one in fresh for other in made} - inside
        inside |= fresh
    return frozenset(inside)


def _classes(table: Sequence[Sequence[int]], normal: frozenset[int]) -> tuple[int, ...]:
    cosets = [min(table[element][each] for each in normal) for element in range(len(table))]
    numbers = {coset: number for number, coset in enumerate(dict.fromkeys(cosets))}
    return tuple(numbers[coset] for coset in cosets)


def _called(name: str, order: int) -> str:
    if name.startswith("Z"):
        return f"modulo {order}"
    return "sign" if order == 2 and name.startswith("S") else f"quotient of order {order}"


def remainders(task: Task, question: str, length: int, said_N: Tensor, wanted_N: Tensor) -> list[Remainder]:
    """Of one-token answers at a length: what is right of each quotient, and of each answer where they are few."""
    found = []
    group = group_behind(task, question)
    if group is not None:
        token = {word: number for number, word in enumerate(task.words)}
        element = {token[word]: number for number, word in enumerate(group.words)}
        number_N = torch.tensor([element.get(each, -1) for each in said_N.tolist()])
        right_N = torch.tensor([element.get(each, -1) for each in wanted_N.tolist()])
        for called, classes in quotients(group.name):
            class_G = torch.tensor(classes)
            same_N = (number_N >= 0) & (class_G[number_N.clamp(min=0)] == class_G[right_N])
            found.append(Remainder(length, question, called, float(same_N.double().mean()), 1 / len(set(classes))))
    answers = wanted_N.unique().tolist()  # type: ignore[no-untyped-call]
    if 2 <= len(answers) <= MOST_ANSWERS:
        for answer in answers:
            here_N = wanted_N == answer
            given = float((said_N == answer).double().mean())
            if int(here_N.sum()) >= FEWEST:
                right = float((said_N[here_N] == answer).double().mean())
                found.append(Remainder(length, question, f"answer {task.words[answer]}", right, given))
    return found
