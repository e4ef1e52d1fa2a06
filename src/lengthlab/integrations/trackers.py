"""Trackers of others: what each is told of a run. They hear what a run's folder says (follower.py); nothing reads them back.

Each writes into a folder of its own in the store, `runs/tensorboard` say, and to no network unless its own settings say so.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from lengthlab.errors import cut, require
from lengthlab.store.rows import Count

PROJECT = "lengthlab"
"""Where trackers have projects, unless WANDB_PROJECT or TRACKIO_PROJECT names another."""
NOT_IN_A_NAME = re.compile(r"[^\w.,=+-]+")


@dataclass(frozen=True)
class Tracked:
    """A run as a tracker knows it. `name` is its own alone; `group` has those that differ in their seed alone."""

    id: str
    name: str
    group: str
    config: Mapping[str, Any] = field(default_factory=dict)


class Tracker(Protocol):
    """Several runs may be open at a time. Whatever an implementation raises ends its process, and no run."""

    def __init__(self, place: Path) -> None: ...

    def open(self, run: Tracked) -> None:
        """A new run, or one that goes on."""

    def write(self, run: Tracked, step: int, values: Mapping[str, float]) -> None: ...

    def flush(self, run: Tracked) -> None:
        """What was written is kept from here on."""

    def conclude(self, run: Tracked, step: int, counts: Sequence[Count]) -> None:
        """What was measured after the last step."""

    def close(self, run: Tracked, finished: bool) -> None: ...


class TensorBoard:
    """A folder of event files for each run. `final/all` has the accuracy by length: its steps are lengths."""

    def __init__(self, place: Path) -> None:
        from tensorboard.summary import Writer

        self._place, self._make = place, Writer
        self._writers: dict[str, Any] = {}

    def open(self, run: Tracked) -> None:
        name = NOT_IN_A_NAME.sub("-", run.name)[-100:].strip("-.")
        self._writers[run.id] = self._make(str(self._place / name))

    def write(self, run: Tracked, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writers[run.id].add_scalar(name, value, step)

    def flush(self, run: Tracked) -> None:
        self._writers[run.id].flush()

    def conclude(self, run: Tracked, step: int, counts: Sequence[Count]) -> None:
        for count in counts:
            self._writers[run.id].add_scalar(f"final/{count.question}", count.accuracy, count.length)

    def close(self, run: Tracked, finished: bool) -> None:
        self._writers.pop(run.id).close()


class Logged:
    """What trackio and wandb have in common: runs that are told rows by step."""

    def __init__(self) -> None:
        self._runs = dict[str, Any]()

    def write(self, run: Tracked, step: int, values: Mapping[str, float]) -> None:
        self._runs[run.id].log(dict(values), step=step)

    def flush(self, run: Tracked) -> None:
        """Rows are kept as they come, here or in a process of the tracker's own."""

    def conclude(self, run: Tracked, step: int, counts: Sequence[Count]) -> None:
        self.write(run, step, by_name(counts))


class Trackio(Logged):
    """A database for all runs, in TRACKIO_DIR if that is set."""

    def __init__(self, place: Path) -> None:
        os.environ.setdefault("TRACKIO_DIR", str(place.absolute()))  # it is read when trackio is imported
        import trackio

        super().__init__()
        self._init = trackio.init

    def open(self, run: Tracked) -> None:
        project = os.environ.get("TRACKIO_PROJECT", PROJECT)
        words = {"name": run.name, "group": run.group, "config": dict(run.config), "resume": "allow", "embed": False}
        # In a context of its own: in one that has an open run, trackio would end that first.
        self._runs[run.id] = Context().run(self._init, project, **words, auto_log_gpu=False, auto_log_cpu=False)

    def close(self, run: Tracked, finished: bool) -> None:
        self._runs.pop(run.id).finish()


class Wandb(Logged):
    """A folder for each run, offline unless WANDB_MODE says otherwise; in WANDB_DIR if that is set."""

    def __init__(self, place: Path) -> None:
        import wandb

        super().__init__()
        self._place, self._init = place, wandb.init
        words = {"console": "off", "silent": True, "disable_git": True, "disable_code": True}
        self._settings = wandb.Settings(**words, x_disable_stats=True)

    def open(self, run: Tracked) -> None:
        self._runs[run.id] = self._init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            dir=os.environ.get("WANDB_DIR", str(self._place.parent)),  # it makes a folder `wandb` there
            mode=os.environ.get("WANDB_MODE", "offline"),
            id=run.id,
            name=run.name,
            group=run.group,
            config=dict(run.config),
            resume="allow",
            reinit="create_new",
            settings=self._settings,
        )

    def close(self, run: Tracked, finished: bool) -> None:
        self._runs.pop(run.id).finish(exit_code=0 if finished else 1)


TRACKERS: dict[str, type[Tracker]] = {"tensorboard": TensorBoard, "trackio": Trackio, "wandb": Wandb}
"""By the name of the tracker, of its package, of the extra that installs it, and of its folder in a store."""


def by_name(counts: Sequence[Count]) -> dict[str, float]:
    """
    >>> by_name([Count(25, "all", 9, 10)])
    {'final/all/25': 0.9}
    """
    return {f"final/{count.question}/{count.length}": count.accuracy for count in counts}


def chosen_trackers(names: str | Sequence[str]) -> tuple[str, ...]:
    """Each once; an unknown name is refused.

    >>> chosen_trackers("wandb"), chosen_trackers(["wandb", "wandb"])
    (('wandb',), ('wandb',))
    """
    listed = (names,) if isinstance(names, str) else names
    words = isinstance(listed, Sequence) and all(isinstance(name, str) for name in listed)
    require(words, f"track is a name or a list of names, like ['tensorboard'], not {cut(repr(names))}")
    for name in listed:
        require(name in TRACKERS, f"there is no tracker '{cut(name)}': one of {', '.join(TRACKERS)}")
    return tuple(dict.fromkeys(listed))


def missing(name: str) -> str:
    """What to do to have this tracker; empty where it is installed."""
    found = find_spec(name)
    there = found is not None and found.origin  # a folder `wandb`, which wandb makes, is no package
    return "" if there else f"it is not installed: pip install 'lengthlab[{name}]'"


def seen_with(name: str, store: Path) -> str:
    """What shows what it wrote.

    >>> seen_with("tensorboard", Path("runs"))
    'tensorboard --logdir runs/tensorboard'
    """
    place = shlex.quote((store / name).as_posix())
    if name == "trackio":
        where = "" if "TRACKIO_DIR" in os.environ else f"TRACKIO_DIR={place} "
        return f"{where}trackio show --project {shlex.quote(os.environ.get('TRACKIO_PROJECT', PROJECT))}"
    if name == "wandb":
        place = shlex.quote(f"{os.environ['WANDB_DIR']}/wandb") if "WANDB_DIR" in os.environ else place
        return f"wandb sync {place}/offline-run-*, which sends it to your account"
    return f"tensorboard --logdir {place}"
