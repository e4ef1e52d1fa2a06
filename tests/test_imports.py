"""The picture of the house: who may import whom, read from the source."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "lengthlab"
PACKAGE = "lengthlab"
FLOORS = (
    ("__main__",),
    ("cli",),
    ("bench", "serve"),
    ("report",),
    ("experiments",),
    ("launch",),
    ("training",),
    ("inspection",),
    ("evaluation", "integrations", "theory"),
    ("spec",),
    ("store", "tasks", "models"),
    ("switch", "rules"),
    ("device", "memory", "software", "kernels", "gradual"),
    ("registry", "text_file"),
    ("errors", "started"),
)
"""From the roof down. A room imports itself and what lies below it; a new room needs a place here."""
FLOOR_OF = {room: number for number, floor in enumerate(FLOORS) for room in floor}
LIBRARIES = {"torch", "numpy", "safetensors", "click", "rich", "filelock"}

INTEGRATED = {
    "transformers": (
        *("integrations.huggingface", "integrations.configs", "integrations.small_models", "models.causal_lm"),
        *("integrations.language_model", "integrations.finetuning", "integrations.trained_lm"),
    ),
    "peft": ("integrations.finetuning",),
    "fla": ("kernels.flash_linear",),
    "pytorch_lightning": ("integrations.lightning",),
    "lightning": ("integrations.lightning",),
    "axolotl": ("integrations.axolotl",),
    "pydantic": ("integrations.axolotl",),
    "IPython": ("launch.progress",),
    "pandas": ("report.result_table",),
    "starlette": ("serve.app", "serve.site"),
    "uvicorn": ("serve.server",),
    "obstore": ("store.bucket",),
    "tensorboard": ("integrations.trackers",),
    "trackio": ("integrations.trackers",),
    "wandb": ("integrations.trackers",),
    "ray": ("launch.ray_tasks",),
    "submitit": ("launch.slurm_jobs",),
}
"""Libraries of others, and who alone knows them; outside `integrations` not before they are needed."""


@dataclass(frozen=True)
class Import:
    module: str
    when: str
    """`load`: at module level; `call`: inside a function; `types`: for the type checker alone."""

    @property
    def library(self) -> str:
        return self.module.split(".")[0]


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports_of(module: str) -> tuple[Import, ...]:
    return tuple(_imports(ast.parse(modules()[module].read_text(encoding="utf-8")), "load"))


def _imports(node: ast.AST, when: str) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, when) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are written in full, so that they can be searched for"
            for name in (f"{child.module}.{alias.name}" for alias in child.names):
                yield Import(name if name in modules() else str(child.module), when)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from _imports(child, "types")
        else:
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from _imports(child, "call" if inside else when)


def own_imports_of(module: str) -> list[str]:
    """What a module imports of the package, now, later or for its types."""
    return [found.module for found in imports_of(module) if found.library == PACKAGE]


def room_of(module: str) -> str:
    """`lengthlab.tasks.card` is in `tasks`; the front door, `lengthlab` itself, is in none."""
    return module.split(".")[1] if "." in module else ""


def loaded_with(module: str) -> set[str]:
    """Everything that importing a module imports, the packages around each included."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += [name.rpartition(".")[0]] if "." in name else []
            waiting += [found.module for found in imports_of(name) if found.when == "load"] if name in modules() else []
    return seen


def test_every_room_has_its_floor() -> None:
    rooms = {room_of(module) for module in modules()} - {""}
    assert rooms <= set(FLOOR_OF), f"give {rooms - set(FLOOR_OF)} a floor"


def test_the_front_door_loads_no_room() -> None:
    assert loaded_with(PACKAGE) <= sys.stdlib_module_names | {PACKAGE, f"{PACKAGE}.started"}


@pytest.mark.parametrize("module", sorted(set(modules()) - {PACKAGE}))
def test_arrows_point_down_only(module: str) -> None:
    here = room_of(module)
    for other in set(map(room_of, own_imports_of(module))) - {"", here}:
        assert FLOOR_OF[other] > FLOOR_OF[here], f"{module} imports {other}, which is not below it"


def test_tasks_and_models_never_meet() -> None:
    for module in modules():
        seen = {room_of(other) for other in loaded_with(module)}
        if room_of(module) == "tasks":
            assert "models" not in seen, module
        if room_of(module) == "models":
            assert "tasks" not in seen, module


def test_only_the_main_module_imports_the_command_line() -> None:
    for module in modules():
        if room_of(module) not in ("cli", "__main__"):
            assert "cli" not in map(room_of, own_imports_of(module)), module


def test_no_two_modules_import_each_other_even_in_a_roundabout_way() -> None:
    # The front door names everything, but loads it only when it is asked for, so it closes no circle.
    arrows = {module: set(own_imports_of(module)) - {PACKAGE} for module in modules() if module != PACKAGE}
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("room", ["report", "cli", "rules"])
def test_a_room_that_answers_quickly_loads_no_torch(room: str) -> None:
    for module in modules():
        if room_of(module) == room:
            assert "torch" not in {name.split(".")[0] for name in loaded_with(module)}, module


def test_the_interpreter_agrees_that_reports_need_no_torch() -> None:
    names = ", ".join(sorted(module for module in modules() if room_of(module) == "report"))
    code = f"import sys, {names}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_models_load_neither_torchs_compiler_nor_what_shards_tensors() -> None:
    """A third of the memory and half of the time of an import, for what few use."""
    heavy = ("torch._dynamo", "torch.distributed.tensor", "sympy")
    code = f"import sys, lengthlab.models, lengthlab.training; sys.exit(str([each for each in {heavy} if each in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("module", sorted(modules()))
def test_only_declared_libraries_are_imported(module: str) -> None:
    for found in imports_of(module):
        if found.library == "matplotlib":
            assert room_of(module) == "report", f"{module} draws"
            assert found.when != "load", f"{module} needs matplotlib before it draws anything"
        elif found.library == "triton":
            assert room_of(module) == "kernels", f"{module} has a kernel of its own"
            assert module != "lengthlab.kernels", "the models look into this room on machines without Triton, too"
        elif found.library in INTEGRATED:
            assert module.removeprefix(f"{PACKAGE}.") in INTEGRATED[found.library], f"{module} needs {found.library}"
            at_once = room_of(module) not in ("integrations", "serve") and found.when == "load"
            assert not at_once, f"{module} needs {found.library} at once"
        else:
            assert found.library in LIBRARIES | sys.stdlib_module_names | {PACKAGE}, f"{module} imports {found.module}"
