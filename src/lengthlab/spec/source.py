"""A user's own file as part of a run: `my_models.py:three_lstms` names what is in it, and its text travels with the run.

A text is run once in a process, and not at all where the module that it is the text of is there already.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from hashlib import sha256
from pathlib import Path
from types import FunctionType, ModuleType

import lengthlab
from lengthlab.errors import LabError, explain, nearest, place_of, require
from lengthlab.spec.own_file import PACKAGES, check_alone, check_unedited
from lengthlab.spec.script import TYPED_IN, check_whole, definitions
from lengthlab.started import SCRIPT
from lengthlab.text_file import read_text

Files = dict[str, str]
TEXT, PLACE = "__lengthlab_text__", "__lengthlab_place__"
STDLIB = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")]
INSTALLED = [Path(lengthlab.__file__).parent.resolve(), *STDLIB, *PACKAGES]
"""Nobody named what lies here: it was imported by whatever needed it."""


def is_reference(name: str) -> bool:
    """Whether a name means something in a file, or the file itself, which does not say what in it is meant.

    >>> is_reference("my_models.py:three_lstms"), is_reference("my_models.py"), is_reference("lstm")
    (True, True, False)
    """
    return ".py:" in name or name.endswith(".py")


def load_reference(reference: str, folder: Path) -> object:
    """What `FILE.py:NAME` names, FILE looked up from `folder`."""
    file, _, name = reference.rpartition(":") if ".py:" in reference else (reference, "", "")
    path = Path(os.path.realpath(folder / file))
    try:
        text = read_text(path)
    except LabError as error:
        raise LabError(f"'{reference}' cannot be read: {error}") from None
    module = load_text(path.name, text)
    require(bool(name), f"'{reference}' is a file: name what is meant in it, {_choices(file, module)}")
    vars(module).setdefault(PLACE, path)
    return member(module, name)


def load_text(file: str, text: str) -> ModuleType:
    """The module of this text; it is run if it is not there yet. It stands alone: its neighbours do not travel with a run."""
    there = find_module(file, text)
    if there is not None:
        return there
    module = ModuleType(_name(file, text))
    module.__file__, module.__package__ = file, ""  # none that a relative import could mean
    setattr(module, TEXT, text)
    sys.modules[module.__name__] = module  # dataclasses look their module up while they are made
    place = f"{module.__name__}/{file}"
    linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)  # whoever asks for its source finds it
    try:
        with _loading(file):
            exec(compile(text, place, "exec", dont_inherit=True), vars(module))
    except BaseException as error:
        del sys.modules[module.__name__]
        if not isinstance(error, (Exception, SystemExit)) or (isinstance(error, LabError) and file in str(error)):
            raise
        alone = "; such a file stands alone, or imports what is installed" if isinstance(error, ImportError) else ""
        place = place_of(error) if isinstance(error, LabError) else ""  # of others it is told already
        raise LabError(f"{file} cannot be loaded: {explain(error)}{place}{alone}") from error
    return module


def find_module(file: str, text: str) -> ModuleType | None:
    """The module of this text, if it is there: loaded by us, imported, or the script that is running."""
    if _name(file, text) in sys.modules:
        return sys.modules[_name(file, text)]
    for module in list(sys.modules.values()):
        path = vars(module).get("__file__") if isinstance(module, ModuleType) else None
        if isinstance(path, str) and Path(path).name == file and not hasattr(module, TEXT) and _is_of(module, text):
            return module
    return None


def is_named(file: str, text: str) -> bool:
    """Whether whoever started this process named this code: we loaded it for them, they made a run of it, or it is a file of
    their own that they imported. That something installed has the same text says nothing: `subprocess.py` is imported too.
    """
    module = find_module(file, text)
    if module is None or hasattr(module, TEXT) or module.__name__ in _IN_RUNS:
        return module is not None
    path = Path(str(module.__file__)).resolve()
    return not any(path.is_relative_to(home) for home in INSTALLED)


_IN_RUNS: set[str] = set()
"""Modules of which something was put into a run in this process."""


def own_member(module: ModuleType, name: str) -> object:
    """A name that a module defines, not one that it imports: a run holds no other."""
    found = member(module, name)
    own = getattr(found, "__module__", None) == module.__name__
    require(own, f"{Path(str(module.__file__)).name} does not define '{name}'")
    return found


def member(module: ModuleType, name: str) -> object:
    """One name of a module."""
    if not hasattr(module, name):
        raise LabError(f"{Path(str(module.__file__)).name} has no '{name}'; {nearest(name, _own(module) or ['nothing'])}")
    found: object = getattr(module, name)
    return found


def _own(module: ModuleType) -> list[str]:
    """The classes and functions that a module defines."""
    return [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]


def _choices(file: str, module: ModuleType) -> str:
    """What can be named of a file: what it defines, and what it makes of it."""
    made = [key for key, value in vars(module).items() if is_dataclass(value) and not isinstance(value, type)]
    named = [name for name in (*_own(module), *made) if not name.startswith("_")]
    return " or ".join(f"{file}:{name}" for name in named) or "where it has something to name"


class Sources:
    """The files of users that a run needs: classes and functions are noted, then their files are read."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def add(self, thing: type | FunctionType) -> str:
        """Note a class or function, and give its name in a run: `FILE.py:NAME`."""
        path = getattr(sys.modules.get(thing.__module__), "__file__", None)
        if not path:
            raise LabError(f"{thing.__name__} has no source file, so a run with it could not be repeated: {TYPED_IN}")
        self._names.setdefault(thing.__module__, []).append(thing.__name__)
        _IN_RUNS.add(thing.__module__)
        return f"{Path(path).name}:{thing.__name__}"

    @property
    def has_any(self) -> bool:
        """Whether anything of a user's was noted."""
        return bool(self._names)

    def texts(self) -> Files:
        """The text of every file by its name, as it goes along with the run."""
        files: Files = {}
        for name, things in self._names.items():
            module = sys.modules[name]
            file = Path(str(module.__file__)).name
            text = _text_of(module, things)
            check_alone(file, text, vars(module).get(PLACE) or (None if hasattr(module, TEXT) else Path(str(module.__file__))))
            if files.setdefault(file, text) != text:
                raise LabError(f"two different files of one run are named {file}; give one of them another name")
        return files


def refuse_while_loading(what: str) -> None:
    """Nothing is trained by a file that is being loaded: it would train without end."""
    file = getattr(_LOADED, "file", None)
    if file:
        raise LabError(f'{file} calls {what} when it is loaded: put that under `if __name__ == "__main__":`')


_LOADED = threading.local()


@contextmanager
def _loading(file: str) -> Iterator[None]:
    before = getattr(_LOADED, "file", None)
    _LOADED.file = file
    try:
        yield
    finally:
        _LOADED.file = before


def _name(file: str, text: str) -> str:
    return f"lengthlab_file_{sha256(f'{file}/{text}'.encode()).hexdigest()[:16]}"


def _text_of(module: ModuleType, names: list[str]) -> str:
    """The text of a module; of the script that is running, what is needed for these names."""
    loaded: str | None = getattr(module, TEXT, None)
    if loaded is not None:
        return loaded
    path = Path(str(module.__file__))
    try:
        text = path.read_text(encoding="utf-8-sig")
        check_unedited(module, text)
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError):
        what = f"{names[0] if names else 'it'} has no source file that can be read ({path.name})"
        raise LabError(f"{what}, so a run with it could not be repeated: {TYPED_IN}") from None
    if module is not sys.modules.get("__main__"):
        return text
    edited = SCRIPT is not None and SCRIPT[0] == module.__file__ and SCRIPT[1] != text
    require(not edited, f"{path.name} was edited after it was loaded: start this program again")
    needed = definitions(text, path.name, names)
    check_whole(needed, path.name, vars(module))
    return needed


def _is_of(module: ModuleType, text: str) -> bool:
    """Whether a text is that of a module which was imported, or what is needed of the script that is running."""
    try:
        names = [name for name in _defined(text) if name in vars(module)]
        return _text_of(module, names) == text
    except (LabError, SyntaxError, ValueError):
        return False


def _defined(text: str) -> list[str]:
    return [each.name for each in ast.parse(text).body if isinstance(each, (ast.ClassDef, ast.FunctionDef))]
