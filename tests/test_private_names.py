"""What others keep to themselves may go with their next version: whoever uses it says why, and what breaks then."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

ROOT = Path(__file__).parent.parent / "src" / "lengthlab"
PRIVATE = re.compile(r"_[a-z]\w*")
OF_TORCH = {
    name
    for kind in (nn.Module, torch.Tensor, torch.optim.Optimizer, torch.autograd.Function, nn.parallel.DistributedDataParallel)
    for name in dir(kind)
    if PRIVATE.fullmatch(name)
}
"""Names that a class of ours inherits."""


def private_uses(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of each use of a private name of somebody else's: imported, as an attribute, or as a text."""
    tree = ast.parse(text)
    own = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    own |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not str(node.module).startswith("lengthlab"):
            names = [*str(node.module).split("."), *(alias.name for alias in node.names)]
            yield from ((node.lineno, name) for name in names if PRIVATE.fullmatch(name))
        elif isinstance(node, ast.Import):
            names = [name for alias in node.names for name in alias.name.split(".")]
            yield from ((node.lineno, name) for name in names if PRIVATE.fullmatch(name))
        elif isinstance(node, ast.Attribute) and PRIVATE.fullmatch(node.attr):
            if node.attr in OF_TORCH or node.attr not in own:
                yield node.end_lineno or node.lineno, node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and PRIVATE.fullmatch(node.value):
            yield node.lineno, node.value


def explained(lines: list[str], number: int) -> bool:
    """Whether a comment there, or right above, says that the name is private and something about it."""
    above = number - 1
    comments = [lines[number - 1].partition("#")[2]]
    while above and lines[above - 1].lstrip().startswith("#"):
        comments.append(lines[above - 1])
        above -= 1
    said = " ".join(comments).lower()
    return "private" in said and len(said.split()) > 2


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_private_name_of_somebody_elses_has_its_reason_beside_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    bare = [(number, name) for number, name in private_uses(text) if not explained(text.splitlines(), number)]
    assert not bare, f"{path}: say in a comment that it is private, why it is used, and what breaks if it goes"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import torch\ntorch._foreach_add_([], [])", ["_foreach_add_"]),
        ("from torch._subclasses.fake_tensor import FakeTensorMode", ["_subclasses"]),
        ("import torch._dynamo", ["_dynamo"]),
        ("from torch.nn.modules.module import _global_forward_hooks", ["_global_forward_hooks"]),
        ("class Mine(nn.Module):\n    def f(self):\n        self._mine = self._parameters", ["_parameters"]),
        ('getattr(model, "_orig_mod")', ["_orig_mod"]),
        ("torch.__version__\nself._mine = 3\nself._mine\nfrom lengthlab.models.softmax import _Attention", []),
    ],
)
def test_private_names_are_found(text: str, names: list[str]) -> None:
    assert [name for _, name in private_uses(text)] == names


def test_a_comment_above_or_beside_explains() -> None:
    lines = ["# Private: nothing else does it.", "# More of that.", "torch._a", "torch._b", "torch._c  # private, as above"]
    assert [explained(lines, number) for number in (3, 4, 5)] == [True, False, True]
