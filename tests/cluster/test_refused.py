"""What ends in one line before anything is trained: a head that does not answer, a machine without Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import Call


@pytest.mark.parametrize("address", ["127.0.0.1:9", "[::1]:9", "127.0.0.1:99999", "nowhere.invalid:6379"])
def test_a_head_that_does_not_answer(address: str, desk: Path, call: Call) -> None:
    """Ray itself would try for ever."""
    call("launch", "ray", "plan.toml", "--address", address, "--store", "fresh").refused(f"no Ray at {address}")
    assert not Path("fresh").exists()


def test_what_is_no_address(desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call("launch", "ray", "plan.toml", "--address", "head").refused("host:port", "'head'")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    call("train", "plan.toml", "--launch", "ray", "--store", "fresh").refused("no Ray at 127.0.0.1:9")
    call("reproduce", "far", "--launch", "ray", "--store", "fresh").refused("no Ray at 127.0.0.1:9")
    assert not Path("fresh").exists()


def test_a_machine_without_slurm(desk: Path, call: Call) -> None:
    call("launch", "slurm", "plan.toml", "--store", "fresh").refused("there is no Slurm here: sbatch and srun are not found")
    call("launch", "slurm", "plan.toml", "--option", "=4").refused("NAME=VALUE", "'=4'")
    call("launch", "slurm", "plan.toml", "--minutes", 0).refused("--minutes")
    assert not Path("fresh").exists()
