"""A user's desk: a plan, a finished run, and all that can lie in the way; whatever is refused leaves it as it was."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from command import Call, Done
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run

RUN = """
[[run]]
task = { name = "modulo-recall", modulus = 2, keys = 16 }
model = { name = "hybrid-block", width = 16, blocks = 1, heads = 2, mlp = 1 }
schedule = { name = "delayed", first = 5, joint = 5, lr = 1e-3 }
lengths = [1, 4]
batch = 4
evaluate = [4]
"""

MAKERS = """
from torch import nn
from lengthlab.models import Lstm, Model

class Net(nn.Module):
    def __init__(self, vocabulary: int):
        super().__init__()

def small() -> Model:
    return Model("small", 16, Lstm())

def five():
    return 5

def uncalled():
    return Model

def _hidden(): ...

MADE = Net(5)
"""


def lay(desk: Path) -> None:
    """What is on every desk beside the finished run."""
    (desk / "plan.toml").write_text(RUN)
    (desk / "makers.py").write_text(MAKERS)
    (desk / "file").write_text("not a folder\n")
    for name in ("empty", "folder.md", "folder.toml", "folder.py"):
        (desk / name).mkdir()
    for name in ("binary.toml", "binary.py"):
        (desk / name).write_bytes(b"\xff\xfe\x00\x81")
    for name in ("loop", "loop.py", "loop.toml"):
        (desk / name).symlink_to(name)
    (desk / "dangling").symlink_to("nowhere/at/all")


def everything(desk: Path) -> dict[str, object]:
    """All that lies there; a lock is no content."""
    found: dict[str, object] = {}
    for path in desk.rglob("*"):
        what: object = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found |= {str(path.relative_to(desk)): what} if path.name != ".lock" else {}
    return found


def refuse(call: Call, desk: Path, typed: str, says: tuple[str, ...], lines: int = 1) -> Done:
    """What is typed on the desk, the finished run as RUN, ends in one line with all of these words, and changes nothing."""
    before = everything(desk)
    (run,) = (desk / "runs").iterdir()
    done = call(*shlex.split(typed.replace("RUN", f"runs/{run.name}")))
    assert says, "a test that cannot fail"
    assert len(done.said) == lines, done.err
    assert done.err.splitlines() == done.said or "train" in typed, "something is said of progress"
    Done(done.code, done.out, f"lengthlab: {' '.join(done.said)}").refused(*says)
    assert "set LENGTHLAB_TRACE" not in done.err, "nobody foresaw this"
    assert everything(desk) == before
    return done


def only_run(plan: Path, *overrides: str) -> Run:
    (run,) = read_plan(plan, overrides)
    return run
