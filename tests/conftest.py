"""One thread for every test (small models are slower on two, and tests run side by side), and the command line to call."""

import os
import sys
from math import inf

import pytest
import torch

from command import Call, Done
from lengthlab.cli import main
from lengthlab.launch import here

torch.set_num_threads(1)
here.START_SECONDS = inf  # tests train where they stand, however busy the machine is; those of workers ask for them
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a hundred workers are started, and need not compile the package each
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel's module is loaded


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The command line, in this process; what it trains is small, so it is trained here, too."""

    def call(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["lengthlab", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        return Done(int(left.value.code or 0), *capsys.readouterr())

    return call
