"""A user's own file as part of a run: `my_models.py:three_lstms` names what is in it, and its text travels with the run."""

from __future__ import annotations

import inspect
import linecache
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from lengthlab.errors import LabError, explain, nearest

TEXT = "__lengthlab_text__"


def is_reference(name: str) -> bool:
    """Whether a name means something in a file.

    >>> is_reference("my_models.py:three_lstms"), is_reference("lstm")
    (True, False)
    """
    return ".py:" in name


def load_reference(reference: str, folder: Path) -> object:
    """What `FILE.py:NAME` names, FILE looked up from `folder`."""
    file, _, name = reference.rpartition(":")
    path = (folder / file).resolve()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"'{reference}': {path} cannot be read ({getattr(error, 'strerror', error)})") from None
    return member(load_text(path.name, text), name)


def load_text(file: str, text: str) -> ModuleType:
    """The module that this text makes; the same text is run once. It stands alone: its neighbours do not travel with a run."""
    name = f"lengthlab_file_{sha256(f'{file}/{text}'.encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = file
    setattr(module, TEXT, text)
    sys.modules[name] = module  # dataclasses look their module up while they are made
    place = f"{name}/{file}"
    linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)  # whoever asks for its source finds it
    try:
        exec(compile(text, place, "exec"), vars(module))
    except LabError:
        del sys.modules[name]
        raise
    except Exception as error:
        del sys.modules[name]
        alone = "; such a file stands alone, or imports what is installed" if isinstance(error, ImportError) else ""
        raise LabError(f"{file} cannot be loaded: {explain(error)}{alone}") from error
    return module


def member(module: ModuleType, name: str) -> object:
    """One name of a module."""
    if not hasattr(module, name):
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        raise LabError(f"{module.__file__} has no '{name}'; {nearest(name, own or ['nothing'])}")
    found: object = getattr(module, name)
    return found


def source_of(kind: type) -> tuple[str, str]:
    """File name and text of the file that defines a class."""
    module = sys.modules.get(kind.__module__)
    try:
        text = getattr(module, TEXT, None) or inspect.getsource(module)  # type: ignore[arg-type]
        return Path(str(getattr(module, "__file__", ""))).name, text
    except (OSError, TypeError, AttributeError):
        raise LabError(
            f"{kind.__name__} has no source file, so a run with it could not be repeated; define it in a .py file"
        ) from None
