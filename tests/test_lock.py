"""The lock has the versions of constraints.txt, a hash for every package, and all that `make test` installs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PIN = re.compile(r"([a-z0-9-]+)==([^\s+]+)(\+\w+)?")


def pins(text: str) -> dict[str, str]:
    """Version by name, without what a build of it is called (`+cpu`)."""
    return {found[1]: found[2] for line in text.splitlines() if (found := PIN.match(line))}


def test_the_lock_and_the_constraints_agree() -> None:
    lock, wanted = pins((ROOT / "requirements.lock").read_text()), pins((ROOT / "constraints.txt").read_text())
    assert {name: lock[name] for name in wanted if name in lock} == {name: wanted[name] for name in wanted if name in lock}


def test_the_lock_has_all_that_the_tests_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = [
        project["project"]["optional-dependencies"][name] for name in ("report", "serve", "huggingface", "lightning", "dev")
    ]
    wanted = [
        *project["project"]["dependencies"],
        *project["build-system"]["requires"],
        *(name for extra in extras for name in extra),
    ]
    missing = {re.split(r"[^\w-]", each)[0] for each in wanted} - pins((ROOT / "requirements.lock").read_text()).keys()
    assert not missing, "make lock"


def test_every_package_of_the_lock_has_a_hash_and_no_line_names_a_host() -> None:
    text = "\n" + (ROOT / "requirements.lock").read_text().replace("\\\n", "")
    packages = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==\S+( +--hash=sha256:[0-9a-f]{64})+", line.strip()) for line in packages)
    assert len(packages) == len(pins("\n".join(packages))) > 50
    assert "://" not in text
