"""Lists of what there is: read without torch, and never anything but what can be chosen."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from lengthlab import models, tasks
from lengthlab.cli import cli
from lengthlab.cli.names import names_in
from lengthlab.registry import is_ours, registered

KINDS = [("tasks", tasks.Task), *(("models", kind) for kind in models.NAMES)]


@pytest.mark.parametrize(("room", "kind"), KINDS)
def test_a_list_is_what_is_registered_with_the_first_sentence_of_each_docstring(room: str, kind: type) -> None:
    ours = {name: maker for name, maker in registered(kind).items() if is_ours(maker)}
    listed = names_in(room, kind.__name__)
    assert list(listed) == list(ours)
    for name, told in listed.items():
        text = " ".join((inspect.getdoc(ours[name]) or "").split())
        assert text.startswith(told)
        assert told.endswith(".")
        assert text[len(told) :][:1] in ("", " ")
        assert not any(each in told for each in (". The ", ". A ", ". With "))  # one sentence


LISTS_AND_HELP = [*([name] for name in ("tasks", "models", "experiments")), *([name, "--help"] for name in cli.commands)]
WITHOUT_TORCH = """
import sys
from lengthlab.cli import cli
for words in {words}:
    try:
        cli(words, prog_name="lengthlab")
    except SystemExit as left:
        assert not left.code, words
    assert "torch" not in sys.modules, words
"""


def test_lists_and_help_need_no_torch() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH.format(words=LISTS_AND_HELP)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "modulo-recall" in done.stdout
