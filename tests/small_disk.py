"""`lengthlab WORDS` on real small file systems, one after the other: `unshare -rm python small_disk.py OUT SIZE… -- WORDS`.

Each is mounted afresh at OUT/disk with so many kilobytes ("ro": it can be read only), and what is on it afterwards is copied
to OUT/SIZE. What the command came to is printed, as a line of JSON for each. Forked from one process that has imported torch.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from math import inf
from pathlib import Path

import torch._dynamo  # noqa: F401

from lengthlab.cli import main
from lengthlab.launch import in_process
from lengthlab.training import engine  # noqa: F401


def mount(place: Path, size: str) -> None:
    place.mkdir(exist_ok=True)
    kilobytes = 1024 if size == "ro" else int(size)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)], check=True)
    if size == "ro":
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)


def ran(words: list[str], said: Path) -> int:
    """The exit code of the command, in a process of its own that speaks to this file."""
    child = os.fork()
    if not child:
        number = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(number, 1), os.dup2(number, 2)
        in_process.START_SECONDS = inf
        sys.argv[:] = ["lengthlab", *words]
        main()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def try_all(out: Path, sizes: list[str], words: list[str]) -> None:
    for size in sizes:
        place, said = out / "disk", out / f"{size}.txt"
        mount(place, size)
        code = ran(words, said)
        shutil.copytree(place, out / size)
        subprocess.run(["umount", str(place)], check=True)
        print(json.dumps({"size": size, "code": code, "said": said.read_text()}))


if __name__ == "__main__":
    end = sys.argv.index("--")
    try_all(Path(sys.argv[1]), sys.argv[2:end], sys.argv[end + 1 :])
