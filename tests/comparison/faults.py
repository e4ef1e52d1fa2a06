"""The faults that we take, taken by other tools too: `python tests/comparison/faults.py [--kills 30] [TOOL …]`, by hand.

Every tool (trainers.py, loops.py) does the same small job (job.py) in processes of its own (attempt.py), and is

- SIGKILLed with all its children after a random number of steps, five times a round, then left to end;
- given a newest checkpoint of which a file is cut off (to nothing, to a half, by a byte) or has only zeros;
- started on a disk that is too small, and again when there is room: a real file system where `unshare -rm` works;
- started twice on the same folder.

A line of JSON for each tool. It needs, in an environment of its own: `pip install -c constraints.txt torch pytest
pytorch-lightning transformers accelerate torchdata torchtitan==0.3.0 'ray[tune]'`, and src and tests on PYTHONPATH. A tool that
is not there is named and left out.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import torch

from comparison.attempt import PATIENCE, TOOLS, Attempt
from comparison.job import STEPS, Tool

KILLS_A_ROUND = 5


@dataclass
class Trial:
    """One tool through all faults."""

    name: str
    place: Path
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def __post_init__(self) -> None:
        self.tool: Tool = TOOLS[self.name]
        self.right = self.start("right")
        begun = monotonic()
        assert self.right.end() == "ended", self.right.said
        self.seconds = monotonic() - begun
        self.losses = self.tool.losses(self.right.folder) if self.tool.losses else {}

    def start(self, folder: str, out: str = "") -> Attempt:
        (self.place / folder).mkdir(exist_ok=True)
        return Attempt(self.name, self.place / folder, self.place / f"out-{out or folder}")

    def judged(self, attempt: Attempt) -> str:
        how = attempt.end()
        if how != "ended":
            return how
        right, got = self.right.weights, attempt.weights
        same = right.keys() == got.keys() and all(torch.equal(right[name], got[name]) for name in right)
        return "right" if same else "other weights"

    def kills(self, wanted: int) -> dict[str, Any]:
        told: Counter[str] = Counter()
        errors: Counter[str] = Counter()
        while told["kills"] < wanted:
            told["rounds"] += 1
            made, killed, last = self._round(f"round-{told['rounds']}")
            told["kills"] += killed
            how = self.judged(last)
            told[how] += 1
            if how in ("right", "other weights"):
                told["steps done twice"] += made - STEPS
                told.update(self._log(last.folder))
            else:
                errors[last.error] += 1
            shutil.rmtree(last.folder)
        return {**told, "errors": dict(errors)}

    def _round(self, folder: str) -> tuple[int, int, Attempt]:
        """Steps made, kills, and the start that was not killed: the last, or one that was through before."""
        made = killed = 0
        for _ in range(KILLS_A_ROUND):
            attempt = self.start(folder)
            attempt.reach(self.chance.randint(0, STEPS // 3))
            sleep(0.05 * self.chance.random())
            if not attempt.kill():
                return made + attempt.steps, killed, attempt
            made, killed = made + attempt.steps, killed + 1
        last = self.start(folder)
        last.process.join(PATIENCE)
        return made + last.steps, killed, last

    def _log(self, folder: Path) -> Counter[str]:
        if not self.tool.losses:
            return Counter()
        got = self.tool.losses(folder)
        missing = [step for step in self.losses if step not in got]
        other = [step for step in self.losses if step in got and got[step] != self.losses[step]]
        return Counter({"losses": len(self.losses), "losses missing": len(missing), "other losses": len(other)})

    def half(self, folder: str) -> Attempt:
        """Killed when it has made about half of its steps."""
        attempt = self.start(folder)
        attempt.reach(STEPS // 2)
        attempt.kill()
        return attempt

    def torn(self) -> dict[str, Any]:
        """Each file of the newest checkpoint, damaged in four ways."""
        half = self.half("half")
        whole = shutil.copytree(half.folder, self.place / "undamaged", symlinks=True)
        plain = self.start("undamaged")
        undamaged = self.judged(plain)
        told: Counter[str] = Counter()
        details = []
        for file in self.tool.newest(half.folder):
            name, size = file.relative_to(half.folder), file.stat().st_size
            for what, data in _damaged(file.read_bytes()) if size else ():
                shutil.rmtree(self.place / "torn", ignore_errors=True)
                torn = shutil.copytree(half.folder, self.place / "torn", symlinks=True)
                (torn / name).write_bytes(data)
                attempt = self.start("torn")
                how = self.judged(attempt)
                if how in ("right", "other weights"):
                    how += " (went further back)" if attempt.steps > plain.steps else " (went on)"
                told[how] += 1
                details.append([name.name, what, how, attempt.error if "weights" not in how and "right" not in how else ""])
        shutil.rmtree(whole)
        return {"undamaged": undamaged, **told, "each": details}

    def small_disk(self) -> dict[str, Any]:
        """Disks of a quarter, a half and three quarters of what it needs half-way; then there is room."""
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(_made(self.place / "disk"))], check=False).returncode:
            return {"not done": "no file system can be mounted here"}
        subprocess.run(["umount", str(self.place / "disk")], check=True)
        needs = _kilobytes(self.half("for size").folder)
        told, details = Counter[str](), []
        for share in (0.25, 0.5, 0.75):
            disk = str(self.place / "disk")
            size = max(4, int(needs * share)) // 4 * 4
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", disk], check=True)
            full = self.start("disk")
            first = self.judged(full)
            first_error = full.error if first not in ("right", "other weights") else ""
            subprocess.run(["mount", "-o", "remount,size=512m", disk], check=True)
            again = self.start("disk")
            then = self.judged(again)
            told[f"{first}, then {then}"] += 1
            details.append([size, first, first_error, then, "" if then == "right" else again.error])
            subprocess.run(["umount", disk], check=True)
        return {"needs KB": needs, **told, "each": details}

    def twice(self, times: int) -> dict[str, Any]:
        """A second start on the folder of one that has made 40 steps."""
        told, errors = Counter[str](), Counter[str]()
        for number in range(times):
            first = self.start(f"twice-{number}")
            first.reach(40)
            second = self.start(f"twice-{number}", f"second-{number}")
            both = [self.judged(first), self.judged(second)]
            told[" / ".join(both)] += 1
            told["steps in all"] += first.steps + second.steps
            errors.update(each.error for each, how in zip((first, second), both, strict=True) if how not in ("right",))
            told.update(self._log(first.folder))
        return {**told, "errors": dict(errors)}

    def all(self, kills: int) -> dict[str, Any]:
        told: dict[str, Any] = {"tool": self.name, "version": _version(self.tool.package), "seconds": round(self.seconds, 1)}
        for what, fault in {
            "kills": lambda: self.kills(kills),
            "torn": self.torn,
            "small disk": self.small_disk,
            "twice": lambda: self.twice(3),
        }.items():
            told[what] = fault()
            print(json.dumps({"tool": self.name, what: told[what]}), file=sys.stderr, flush=True)
        return told


def _damaged(data: bytes) -> list[tuple[str, bytes]]:
    cut = {"empty": b"", "half": data[: len(data) // 2], "a byte short": data[:-1], "zeros": bytes(len(data))}
    return list(cut.items())


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _kilobytes(folder: Path) -> int:
    return int(subprocess.run(["du", "-sk", str(folder)], check=True, capture_output=True, text=True).stdout.split()[0])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # ours, from its folder
        from lengthlab import __version__

        return __version__


def main(words: list[str]) -> None:
    kills = int(words.pop(words.index("--kills") + 1)) if "--kills" in words else 30
    names = [word for word in words if word != "--kills"] or list(TOOLS)
    if len(names) > 1:
        private = ["unshare", "-rm"] if not subprocess.run(["unshare", "-rm", "true"], check=False).returncode else []
        for name in names:
            subprocess.run([*private, sys.executable, __file__, "--kills", str(kills), name], check=False)
        return
    (name,) = names
    if missing := [module for module in TOOLS[name].preload if find_spec(module.split(".")[0]) is None]:
        print(json.dumps({"tool": name, "not done": f"{missing[0]} is not installed"}))
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        print(json.dumps(Trial(name, Path(place)).all(kills)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
