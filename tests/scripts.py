"""Scripts as users start them, in processes of their own; one that starts others without end, or waits for itself, fails."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import traceback
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from math import inf
from pathlib import Path
from types import ModuleType

from lengthlab.cli import main
from lengthlab.launch import in_process

PATIENCE = 120


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def last(self) -> str:
        """The last line of the error, which is what the user is to read."""
        return self.err.strip().splitlines()[-1]


def python(folder: Path, *words: str) -> Ran:
    """A Python of its own, which has to import torch first."""
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    return Ran(done.returncode, done.stdout, done.stderr)


def script(folder: Path, text: str) -> Ran:
    """`python script.py`, forked from a process that has imported torch and has done nothing else."""
    (folder / "script.py").write_text(text)
    process = _forks().Process(target=_be, args=(str(folder),), daemon=False)
    process.start()
    process.join(PATIENCE)
    process.kill()
    assert process.exitcode is not None, "the script does not end"
    return Ran(process.exitcode, (folder / "out.txt").read_text(), (folder / "err.txt").read_text())


def start_command(folder: Path, *words: str) -> multiprocessing.process.BaseProcess:
    """`lengthlab WORDS` in a folder, forked likewise; it speaks to out.txt and err.txt."""
    process = _forks().Process(target=_be_command, args=(str(folder), words), daemon=False)
    process.start()
    return process


def _forks() -> multiprocessing.context.ForkServerContext:
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["lengthlab.training.engine", "torch._dynamo"])
    return forks


def _settle(folder: str) -> None:
    os.chdir(folder)
    for number, name in ((1, "out.txt"), (2, "err.txt")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)


def _be_command(folder: str, words: tuple[str, ...]) -> None:
    """What `lengthlab` does; whatever runs the tests in the background may have told its children to ignore Ctrl-C."""
    _settle(folder)
    in_process.START_SECONDS = inf  # however busy the machine is
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[:] = ["lengthlab", *words]
    main()


def _be(folder: str) -> None:
    """What `python script.py` does when it has started."""
    _settle(folder)
    path = str(Path(folder) / "script.py")
    sys.argv[:], sys.path[:] = [path], [folder, *sys.path]
    module = ModuleType("__main__")
    module.__file__, module.__loader__ = path, SourceFileLoader("__main__", path)
    sys.modules["__main__"] = module
    try:
        exec(compile(Path(path).read_text(), path, "exec", dont_inherit=True), vars(module))
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
