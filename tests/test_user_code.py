"""Code of users: it is run once, where it was named, and never because a folder was opened."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from command import Call
from lengthlab.errors import LabError
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run
from lengthlab.spec.script import definitions
from lengthlab.store import Folder, Store
from lengthlab.store.ids import hash_of
from lengthlab.training import measure
from lengthlab.training.result import read_run
from scripts import python, script
from small_runs import end_to_end_run

PART = """
from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

import lengthlab as ll
from lengthlab.models import Lstm, Model, chain

with open("loads.txt", "a") as _file:  # every time this file is run, here or in a worker
    _file.write(__name__ + "\\n")

SCALE = 0.5
TABLE = {}
TABLE["scale"] = SCALE
result = "a name that a method uses, too"

def scaled(x: Tensor) -> Tensor:
    return x * TABLE["scale"]

class _Scaled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        result = scaled(x)
        return result

@dataclass(frozen=True)
class Scaled:
    kind_of: ClassVar[str] = "scale"
    times: float = 1.0

    def build(self, width: int) -> nn.Module:
        return nn.Sequential(nn.Linear(width, width), _Scaled())
"""
RUN = """
def run(seed: int = 0) -> ll.Run:
    model = Model("scaled", 8, chain(Lstm(), Scaled()))
    task = ll.tasks.modulo(modulus=2, values=2, keys=8)
    return ll.Run(task, model, ll.end_to_end(3, lr=1e-2), lengths=(1, 2), batch=4, seed=seed, evaluate=(2,))
"""
ONE = 'result = ll.train(run(), "runs")\nprint("right", result.accuracy(2) >= 0, result.accuracy(3) >= 0)\n'
ALL = 'results = ll.train_all([run(1)], "runs")\nprint("right", *(each.accuracy(2) >= 0 for each in results))\n'
IN_A_WORKER = ALL.replace('"runs")', '"runs", workers=1)')
BOTH = ONE + IN_A_WORKER
IMPORTS = "import lengthlab as ll\nfrom lengthlab.models import *\nfrom my_part import Scaled\n"


def loads(folder: Path) -> list[str]:
    return (folder / "loads.txt").read_text().split()


def guarded(text: str) -> str:
    return 'if __name__ == "__main__":\n' + "".join(f"    {line}\n" for line in text.splitlines())


@pytest.mark.parametrize("act", [BOTH, guarded(ONE + ALL)])
def test_a_script_with_a_class_of_its_own_trains_here_and_in_workers_and_is_run_once(tmp_path: Path, act: str) -> None:
    (tmp_path / "script.py").write_text(PART + RUN + act)
    ran = python(tmp_path, "script.py") if act == BOTH else script(tmp_path, PART + RUN + act)
    assert ran.out == "right True True\nright True\n", ran.err
    assert loads(tmp_path) == ["__main__"]  # what writes that down is no part of the class, and not in its workers
    one, other = Store(tmp_path / "runs").folders()
    assert one.read_json("run.json")["files"] == other.read_json("run.json")["files"]


def test_guarded_or_not_a_class_is_the_same_run(tmp_path: Path) -> None:
    script(tmp_path, PART + RUN + ONE)
    script(tmp_path, PART + RUN + guarded(ONE))
    assert len(Store(tmp_path / "runs").folders()) == 1


def test_a_file_that_a_script_imports_is_not_run_again_but_by_workers(tmp_path: Path) -> None:
    (tmp_path / "my_part.py").write_text(PART)
    ran = script(tmp_path, IMPORTS + RUN + BOTH)
    assert ran.out == "right True True\nright True\n", ran.err
    assert loads(tmp_path)[0] == "my_part"
    assert len(loads(tmp_path)) == 2


def test_a_file_that_trains_when_it_is_loaded_is_refused(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_part.py").write_text(PART + RUN + ONE)
    (tmp_path / "run.toml").write_text(TOML.format(model='{ name = "model", width = 8, body = "my_part.py:Scaled" }'))
    told = 'my_part.py calls train when it is loaded: put that under `if __name__ == "__main__":`'
    call("train", "run.toml").refused(told)
    assert not (tmp_path / "runs").exists()


def test_a_file_that_trains_when_it_is_imported_starts_no_workers_without_end(tmp_path: Path) -> None:
    (tmp_path / "my_part.py").write_text(PART + RUN + IN_A_WORKER)
    ran = script(tmp_path, "import my_part\n")
    assert "my_part.py calls train_all when it is loaded: put that under" in ran.err
    assert len(loads(tmp_path)) == 2  # imported, and loaded in one worker


def test_a_class_that_was_typed_in_is_refused_before_training(tmp_path: Path) -> None:
    ran = python(tmp_path, "-c", PART + RUN + ONE)
    assert "LabError: Scaled has no source file" in ran.last
    assert ".py file" in ran.last
    assert not (tmp_path / "runs").exists()


def test_a_class_that_was_typed_in_after_a_script_is_refused_before_training(tmp_path: Path) -> None:
    ran = script(tmp_path, f"exec({PART + RUN + ONE!r})")
    assert "LabError: Scaled is not defined in script.py" in ran.last
    assert not (tmp_path / "runs").exists()


NEIGHBOURS = ["import neighbour", "from neighbour import size", "def late():\n    import neighbour"]


@pytest.mark.parametrize("line", NEIGHBOURS)
def test_a_file_that_imports_the_one_beside_it_is_refused_before_training(tmp_path: Path, line: str) -> None:
    (tmp_path / "neighbour.py").write_text("size = 3\n")
    (tmp_path / "my_part.py").write_text(f"{PART}\n{line}\n")
    ran = script(tmp_path, IMPORTS + RUN + ALL)
    assert "LabError: my_part.py is kept with the run and has to stand alone, but imports 'neighbour'" in ran.last
    assert not (tmp_path / "runs").exists()


def test_a_script_that_imports_a_neighbour_which_its_class_does_not_need_trains(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("size = 3\n")
    assert script(tmp_path, PART + "import neighbour\n" + RUN + ONE).out == "right True True\n"


def test_a_file_with_a_relative_import_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("")
    (tmp_path / "mine" / "size.py").write_text("size = 3\n")
    (tmp_path / "mine" / "my_part.py").write_text(f"{PART}\nfrom . import size\n")
    ran = script(
        tmp_path, f"import lengthlab as ll\nfrom lengthlab.models import *\nfrom mine.my_part import Scaled\n{RUN}{ONE}"
    )
    assert "LabError: my_part.py is kept with the run and has to stand alone, but has a relative import" in ran.last
    assert not (tmp_path / "runs").exists()


EDIT = """
import os, pathlib, sys
sys.dont_write_bytecode = {}
import lengthlab as ll
from lengthlab.models import *
from my_part import Scaled
path = pathlib.Path("my_part.py")
before = path.stat()
path.write_text(path.read_text().replace({!r}, {!r}))
os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCALE = 0.5", "SCALE = 0.7"),
        ("x * TABLE", "x + TABLE"),
        ("times: float = 1.0", "times: float = 2.0"),
        ("import sys\n", ""),
    ],
)
def test_a_file_that_was_edited_after_it_was_imported_is_refused_before_training(tmp_path: Path, old: str, new: str) -> None:
    (tmp_path / "my_part.py").write_text(PART)
    ran = script(tmp_path, EDIT.format(True, old, new) + RUN + ONE)
    assert "LabError: my_part.py was edited after it was loaded: start this program again" in ran.last
    assert not (tmp_path / "runs").exists()


def test_an_edit_of_what_is_computed_is_seen_by_the_cache_that_python_keeps(tmp_path: Path) -> None:
    (tmp_path / "my_part.py").write_text(PART + "\nSIZE = max(3, 4)\n")
    ran = script(tmp_path, EDIT.format(False, "max(3, 4)", "max(3, 14)") + RUN + ONE)
    assert "LabError: my_part.py was edited after it was loaded" in ran.last


def test_a_script_that_was_edited_while_it_runs_is_refused_before_training(tmp_path: Path) -> None:
    edit = 'path = Path("script.py")\npath.write_text(path.read_text().replace("x * TABLE", "x + TABLE"))\n'
    ran = script(tmp_path, PART + RUN + edit + ONE)
    assert "LabError: script.py was edited after it was loaded" in ran.last
    assert not (tmp_path / "runs").exists()


PLAIN = """
import torch
from torch import nn
{more}
class Net(nn.Module):
    def __init__(self, {vocabulary}: int, width: int = 8) -> None:
        super().__init__()
        self.table = nn.Embedding({vocabulary}, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, {vocabulary})

    def forward(self, tokens):
        return self.head(self.lstm(self.table(tokens))[0])

def make(vocab, width=8):
    return Net(vocab, width)

def ready(width=8) -> nn.Module:
    return Net(5, width)
"""
TOML = """[[run]]
task = {{ name = "modulo", modulus = 2, values = 2, keys = 8 }}
model = {model}
schedule = {{ name = "end-to-end", joint = 3 }}
lengths = [1, 2]
batch = 4
evaluate = [2]
"""


def plain(folder: Path, model: str, vocabulary: str = "vocabulary", more: str = "") -> Path:
    (folder / "my_model.py").write_text(PLAIN.format(vocabulary=vocabulary, more=more))
    (folder / "run.toml").write_text(TOML.format(model=model))
    return folder / "run.toml"


def test_a_plain_module_is_trained_from_toml(call: Call, tmp_path: Path) -> None:
    plan = plain(tmp_path, '{ name = "my_model.py:Net", width = 4 }')
    done = call("train", plan, "--store", tmp_path / "runs", "--json")
    assert done.code == 0, done.err
    (folder,) = Store(tmp_path / "runs").folders()
    content = folder.read_json("run.json")
    maker = {"kind": "code", "name": "my_model.py:Net"}
    assert content["model"] == {"kind": "module", "maker": maker, "arguments": {"width": 4}}
    assert content["files"] == {"my_model.py": (tmp_path / "my_model.py").read_text()}


@pytest.mark.parametrize(("name", "vocabulary"), [("Net", "vocab_size"), ("Net", "vocab"), ("make", "vocabulary")])
def test_the_size_of_the_vocabulary_has_one_of_three_names(tmp_path: Path, name: str, vocabulary: str) -> None:
    (run,) = read_plan(plain(tmp_path, f'"my_model.py:{name}"', vocabulary))
    assert run.network().get_submodule("table").weight.shape == (run.task.vocabulary, 8)
    assert Run.from_json(run.to_json()) == run


def test_a_plain_module_is_trained_from_python(tmp_path: Path) -> None:
    text = PLAIN.format(vocabulary="vocabulary", more="import lengthlab as ll")
    run = RUN.replace('Model("scaled", 8, chain(Lstm(), Scaled()))', "ll.models.module(Net, width=4)")
    ran = script(tmp_path, text + run + ONE)
    assert ran.out == "right True True\n", ran.err


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ('"my_model.py:ready"', "ready has no parameter for the size of the task's vocabulary"),
        ('{ name = "my_model.py:Net", vocabulary = 5 }', "unknown key 'model.vocabulary' for my_model.py:Net"),
        ('{ name = "my_model.py:Net", widht = 5 }', "unknown key 'model.widht' for my_model.py:Net; did you mean 'width'?"),
        ('{ name = "my_model.py:Net", width = "wide" }', "model.width must be a whole number, not 'wide'"),
        ('{ name = "my_model.py:Net", width = -3 }', "model 'net' cannot be built: RuntimeError"),
    ],
)
def test_a_plain_module_that_cannot_be_made_is_refused(call: Call, tmp_path: Path, model: str, told: str) -> None:
    call("train", plain(tmp_path, model), "--store", tmp_path / "runs").refused(told)
    assert not (tmp_path / "runs").exists()


def test_a_module_where_a_run_wants_data_is_refused_with_what_to_write(tmp_path: Path) -> None:
    text = PLAIN.format(vocabulary="vocabulary", more="import lengthlab as ll")
    run = RUN.replace('Model("scaled", 8, chain(Lstm(), Scaled()))', "Net")
    assert "write ll.models.module(Net, ...)" in script(tmp_path, text + run + ONE).last


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a model of one's own, trained by another process; its file writes one more whenever it is loaded."""
    folder = tmp_path_factory.mktemp("foreign")
    witness = f"open({str(folder / 'loaded')!r}, 'w').close()\n"
    plain(folder, '"my_model.py:Net"', more=witness)
    done = script(folder, 'import lengthlab as ll\nll.train(*ll.read_plan("run.toml"))\n')
    assert done.code == 0, done.err
    (found,) = Store(folder / "runs").folders()
    (folder / "loaded").unlink()
    return found.path


def witness_of(foreign: Path) -> Path:
    return foreign.parent.parent / "loaded"


def test_opening_a_folder_runs_no_code_that_lies_in_it(call: Call, foreign: Path) -> None:
    call("evaluate", foreign, "--lengths", "3").refused("needs my_model.py, code that lies in the folder", "--trust")
    with pytest.raises(LabError, match="trust=True"):
        read_run(Folder(foreign))
    with pytest.raises(LabError, match="trust=True"):
        measure(Folder(foreign), [3])
    call("report", foreign)
    assert not witness_of(foreign).exists()


@pytest.mark.parametrize("trust", [(), ("--trust",)])
def test_a_folder_whose_content_was_changed_is_refused_before_anything_of_it_is_run(
    call: Call, foreign: Path, tmp_path: Path, trust: tuple[str, ...]
) -> None:
    changed = tmp_path / foreign.name
    changed.mkdir()
    for file in foreign.iterdir():
        if file.is_file():
            (changed / file.name).write_bytes(file.read_bytes())
    content = json.loads((foreign / "run.json").read_text())
    content["files"]["my_model.py"] += f"\nopen({str(tmp_path / 'changed')!r}, 'w')\n"
    (changed / "run.json").write_text(json.dumps(content))
    call("evaluate", changed, "--lengths", "3", *trust).refused("not of this folder's: move it away")
    assert not (tmp_path / "changed").exists()
    assert not witness_of(foreign).exists()


@pytest.mark.parametrize("how", ["kind", "maker"])
def test_what_is_installed_is_not_code_that_the_user_named(call: Call, tmp_path: Path, how: str) -> None:
    """Its text is in every process: a folder that asks for `subprocess.py:Popen` names nothing of the user's."""
    made = tmp_path / "made"
    content = end_to_end_run(steps=1).to_json()
    file = Path(subprocess.__file__)
    if how == "kind":
        content["task"] = {"kind": "subprocess.py:Popen", "args": ["touch", str(made)]}
    else:
        content["model"] = {"kind": "module", "maker": {"kind": "code", "name": "subprocess.py:run"}, "arguments": {}}
    content["files"] = {file.name: file.read_text()}
    folder = Folder(tmp_path / "runs" / hash_of(content))
    folder.write_json("run.json", content)
    folder.write_json("result.json", {})
    call("evaluate", folder.path, "--lengths", "3").refused("needs subprocess.py, code that lies in the folder")
    assert not made.exists()


def test_what_a_named_file_imports_is_no_part_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PART + "from subprocess import Popen\n")
    more = (
        "from lengthlab.spec.content import from_json\n"
        "from pathlib import Path\n"
        "from_json({'kind': 'mine.py:Popen', 'args': ['true']}, {'mine.py': Path('mine.py').read_text()})\n"
    )
    ran = script(tmp_path, more)
    assert "LabError: mine.py does not define 'Popen'" in ran.last


def test_a_folder_that_the_user_trusts_is_opened(foreign: Path, tmp_path: Path) -> None:
    words = ["lengthlab", "evaluate", str(foreign), "--lengths", "3", "--trust", "--json"]
    done = script(tmp_path, f"import sys\nfrom lengthlab.cli import main\nsys.argv = {words!r}\nmain()\n")
    assert done.code == 0, done.err
    assert {row["length"] for row in json.loads(done.out)} == {3}
    witness_of(foreign).unlink()


def test_a_folder_is_opened_without_further_words_where_its_file_was_named(tmp_path: Path) -> None:
    text = PART + RUN + ONE + "from lengthlab.training.result import read_run\nprint(read_run(result.folder) == run())\n"
    assert script(tmp_path, text).out.endswith("True\n")


def test_what_a_class_needs_is_found_by_its_syntax() -> None:
    text = (
        "from __future__ import annotations\n"
        "import os, torch\n"
        "from math import *\n"
        "try:\n    import fast\nexcept ImportError:\n    fast = None\n"
        "SIZES: list[int] = []\n"
        "SIZES.append(3)\n"
        "OTHER = [1]; OTHER.append(2)\n"
        "result = train()\n"
        "torch.manual_seed(0)\n"
        "class Base: ...\n"
        "def deco(cls): return cls\n"
        "@deco\n"
        "class Net(Base):\n"
        "    sizes = SIZES\n"
        "    def build(self) -> 'Named':\n"
        "        result = fast\n"
        "        return [torch for os in result]\n"
        "class Named: ...\n"
        "class Unused: ...\n"
        'if __name__ == "__main__":\n    print(Net())\n'
    )
    kept = definitions(text, "net.py", ["Net"])
    for line in (
        "from __future__",
        "import os, torch",
        "from math",
        "import fast",
        "SIZES.append",
        "class Base",
        "deco",
        "class Named",
    ):
        assert line in kept, line
    for line in ("OTHER", "result = train", "manual_seed", "Unused", "__main__"):
        assert line not in kept, line
    assert definitions(kept, "net.py", ["Net"]) == kept


LOOP = """
NUMBERS = []
for number in range(3):
    NUMBERS.append(number / 2)
if len(NUMBERS) == 3:
    NUMBERS[0] = 0.25

class _Tabled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * sum(NUMBERS)

@dataclass(frozen=True)
class Scaled:
    def build(self, width: int) -> nn.Module:
        return _Tabled()
"""
SAME = """
from lengthlab.training.result import read_run
one, other = (ll.train(run(1), "here"), ll.train_all([run(1)], "there", workers=1)[0])
import torch
weights = [list(each.network().parameters()) for each in (one, other)]
print(all(torch.equal(*pair) for pair in zip(*weights, strict=True)))
"""


def test_a_table_that_a_script_fills_in_a_loop_travels_filled(tmp_path: Path) -> None:
    ran = script(tmp_path, PART + LOOP + RUN + SAME)
    assert ran.out == "True\n", ran.err


@pytest.mark.parametrize("fill", ["from random import shuffle\nshuffle(NUMBERS)", "def fill():\n    NUMBERS.append(3)\nfill()"])
def test_a_table_that_is_filled_where_nobody_can_read_it_is_refused(tmp_path: Path, fill: str) -> None:
    table = (
        LOOP.split("for number")[0].replace("[]", "[5, 4, 3, 2, 1, 0, 7, 9]")
        + fill
        + "\n"
        + LOOP.split("NUMBERS[0] = 0.25\n")[1]
    )
    ran = script(tmp_path, PART + table + RUN + ONE)
    assert "LabError: NUMBERS is changed where script.py is run, and its text does not show how" in ran.last
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("source", ["int(sys.argv[-1])", 'float(os.environ["SCALE"])'])
def test_what_a_script_is_called_with_goes_into_a_field(tmp_path: Path, source: str) -> None:
    ran = script(tmp_path, PART.replace("SCALE = 0.5", f"import os\nSCALE = {source} if False else 0.5") + RUN + ONE)
    assert "which the run does not know: make it a field (script.py)" in ran.last


@pytest.mark.parametrize("change", [("TABLE = {}", "TABLE = {1: 2}"), ("times: float = 1.0", "times: float = 2.0")])
def test_a_script_that_was_edited_before_it_trains_is_refused(tmp_path: Path, change: tuple[str, str]) -> None:
    edit = f"path = Path('script.py')\npath.write_text(path.read_text().replace({change[0]!r}, {change[1]!r}, 1))\n"
    (tmp_path / "script.py").write_text(PART + RUN + edit + ONE)
    assert "LabError: script.py was edited after it was loaded" in python(tmp_path, "script.py").last


def test_a_file_of_ones_own_that_only_this_process_finds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helper_of_mine.py").write_text("SIZE = 2\n")
    (tmp_path / "my_part.py").write_text(PART + "\nimport helper_of_mine\n")
    ran = script(tmp_path, "import sys\nsys.path.insert(0, 'lib')\n" + IMPORTS + RUN + ONE)
    assert "has to stand alone, but imports 'helper_of_mine', a file of your own" in ran.last
    assert not (tmp_path / "runs").exists()


ODD = """
from enum import Enum
from typing import NamedTuple

class Colour(Enum):
    RED = 1

class Pair(NamedTuple):
    one: int = 1

@dataclass(slots=True)
class Slotted:
    one: int = 1
"""


def test_enumerations_named_tuples_and_slots_are_not_edits(tmp_path: Path) -> None:
    (tmp_path / "my_part.py").write_text(PART + ODD)
    assert script(tmp_path, IMPORTS + RUN + ONE).out == "right True True\n"


def test_whole_numbers_that_stand_for_floats_make_no_second_run(tmp_path: Path) -> None:
    text = PLAIN.format(vocabulary="vocabulary", more="import lengthlab as ll").replace(
        "width: int = 8)", "width: int = 8, rate: float = 0)"
    )
    run = RUN.replace('Model("scaled", 8, chain(Lstm(), Scaled()))', "ll.models.module(Net, rate=RATE)")
    ran = script(tmp_path, text + run + "RATE = 0\none = run().id\nRATE = 0.0\nprint(one == run().id)\n")
    assert ran.out == "True\n", ran.err
