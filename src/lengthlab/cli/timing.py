"""What `bench` does before it shows anything: which runs are timed, on which machine, for how long."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING

import click

from lengthlab.bench.measurement import PARTS, Findings, Measurement, Origin
from lengthlab.bench.stopwatch import Patience
from lengthlab.cli.call import typed

if TYPE_CHECKING:
    import torch

    from lengthlab.bench.parts import Machine
    from lengthlab.experiments.dat.profile import Profile
    from lengthlab.spec.run import Run

PATIENCE = {"cuda": Patience(repeats=3, seconds=0.15), "cpu": Patience(repeats=5, seconds=0.5)}
"""In all under 4 minutes on an H200, many of them for compiling and capturing, and under 6 on 2 cores."""
QUIET = 0.5
"""A load above this is somebody else at work, and the numbers will be off."""


def find(device: torch.device, size: str, parts: Sequence[str]) -> Findings:
    """Time all that is asked for."""
    from lengthlab.bench.parts import Bench
    from lengthlab.bench.peak import peaks

    begun, load = monotonic(), _load()
    if load > QUIET:
        click.echo(f"other programs are at work (load {load:.1f}), so the numbers will be off", err=True)
    measured: list[Measurement] = []
    with closing(_machine(device)) as machine:
        timing = Bench(machine, suite_of(size), PATIENCE[device.type], _say)
        for part in PARTS:
            if part in parts or (part == "one" and "floor" in parts):
                measured += timing.measure(part)
    if "floor" in parts:
        _say("matrix products, for the peak")
    peak = peaks(device) if "floor" in parts else {}
    return Findings(tuple(measured), peak, _origin(device, size, load, monotonic() - begun))


def _machine(device: torch.device) -> Machine:
    if device.type == "cuda":
        from lengthlab.bench.gpu import Gpu

        return Gpu(device)
    from lengthlab.bench.cores import Cores

    return Cores()


def suite_of(size: str) -> list[Run]:
    """The runs of the 26 cells at the paper's size or at the demo's."""
    from lengthlab.experiments.dat import ARMS
    from lengthlab.experiments.dat.profile import PROFILES
    from lengthlab.experiments.dat.runs import run_of

    short = PROFILES["short"]
    profile = short if size == "paper" else _shrunk(short)
    return [run_of(arm, profile) for arm in ARMS]


def _shrunk(profile: Profile) -> Profile:
    """With the sizes of `experiments.demo`; positions and scores stay the paper's."""
    recipes = {key: replace(recipe, batch=64) for key, recipe in profile.recipes.items()}
    sizes = {"width": 48, "blocks": 1, "heads": 4, "mlp": 4, "keys": 64, "values": 9, "modulus": 2}
    return replace(profile, name="demo", recipes=recipes, lengths=(1, 10), **sizes)


def _origin(device: torch.device, size: str, load: float, seconds: float) -> Origin:
    from lengthlab.device import hardware
    from lengthlab.software import commit_of_package, versions

    return Origin(
        command=typed(),
        commit=commit_of_package(),
        hardware=hardware(device),
        versions=versions(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 1),
        load=round(load, 2),
        size=size,
        device=str(device),
    )


def _load() -> float:
    """How many programs were busy in the last minute, where the system says so."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _say(text: str) -> None:
    click.echo(f"timing {text}", err=True)
