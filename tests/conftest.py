"""One thread for every test (small models are slower on two, and tests run side by side), and the command line to call."""

import os
import shutil
import sys
from math import inf
from pathlib import Path

import pytest
import torch
from hypothesis import settings

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is loaded, by a kernel's module or by PyTorch

from command import Call, Done
from desk import RUN, lay, only_run
from lengthlab.cli import main
from lengthlab.launch import in_process
from lengthlab.store import Folder
from lengthlab.training import train

torch.set_num_threads(1)
in_process.START_SECONDS = inf  # tests train where they stand, however busy the machine is; those of workers ask for them
os.environ.pop("COLUMNS", None)  # whoever runs tests side by side may set it, and tables are as wide as it says
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a hundred workers are started, and need not compile the package each

# Every run tries the same; pytest --hypothesis-profile=others tries others. No test has a deadline: machines are busy.
settings.register_profile("others", deadline=None)
settings.register_profile("same", settings.get_profile("others"), derandomize=True)
settings.load_profile("same")


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The command line, in this process; what it trains is small, so it is trained here, too."""

    def call(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["lengthlab", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        return Done(int(left.value.code or 0), *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = tmp_path_factory.mktemp("finished")
    (folder / "plan.toml").write_text(RUN)
    return train(only_run(folder / "plan.toml"), folder / "runs").folder


@pytest.fixture
def desk(finished_once: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a user types: `plan.toml`, its finished run in `runs`, and odd things."""
    lay(tmp_path)
    shutil.copytree(finished_once.path.parent, tmp_path / "runs", ignore=shutil.ignore_patterns(".lock"))
    monkeypatch.chdir(tmp_path)
    return tmp_path
