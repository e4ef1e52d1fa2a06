"""Many runs in one process: nothing of one stays when it is over. `python tests/memory.py` measures it over 200."""

from __future__ import annotations

from pathlib import Path

import lengthlab as ll
from memory import alive, different_runs


def test_networks_and_tensors_of_a_run_are_gone_when_it_is_over(tmp_path: Path) -> None:
    first, *others = different_runs(4)
    ll.train(first, tmp_path, "cpu", progress=False)  # what a process makes once is there after it
    before = alive()
    for run in others:
        ll.train(run, tmp_path, "cpu", progress=False)
        now = alive()
        assert all(now[name] <= before[name] for name in before), (run.title, before, now)
