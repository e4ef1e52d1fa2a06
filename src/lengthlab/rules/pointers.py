"""Lists that are told by a pointer: of a list that a rule goes through from its front, what is left is a place in the input.

    digits: [ 5 7 ]  …  L3 digits: @ ? True L4 total: 0 digits: @ = total: 5 digits: @ L5 …

Where a trace writes such a list out, a model has to copy it again and again, with elements that repeat, which transformers do
not learn for longer lists than they saw (Lemma 8 of Born a Transformer, arXiv 2505.21785). The pointer is one word; where it
points to is told by its position id, as in position coupling (Cho et al. 2024, arXiv 2405.20671).
"""

from __future__ import annotations

import ast

from lengthlab.errors import LabError
from lengthlab.rules.rule import Rule

POINTER = "@"


def pointed(rule: Rule) -> str:
    """The list that a rule is given, takes the first element of in every turn of a loop, and asks only whether it is empty.

    >>> pointed(Rule.of("def count(xs):\\n    n = 0\\n    while xs:\\n        n += xs.pop(0)\\n    return n"))
    'xs'
    """
    match rule.parameters, [each for each in rule.function.body if isinstance(each, ast.While)]:
        case (name,), [ast.While(test=ast.Name(id=asked), body=body)] if asked == name:
            uses = sum(isinstance(each, ast.Name) and each.id == name for each in ast.walk(rule.function))
            if uses == 2 and any(_takes(node, name) for node in body):
                return name
    raise LabError(f"rule '{rule.name}' has no list to point into: it would take from the front of its only one, once a turn")


def _takes(node: ast.stmt, name: str) -> bool:
    """Whether a statement takes the first element, whatever else happens."""
    if not isinstance(node, (ast.Assign, ast.AugAssign)):
        return False
    taken = ast.unparse(ast.Call(ast.Attribute(ast.Name(name), "pop"), [ast.Constant(0)], []))
    return ast.unparse(node.value) == taken
