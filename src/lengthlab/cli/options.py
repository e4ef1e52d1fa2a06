"""Options that several commands share, and what the many of `reproduce` come to."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import click

from lengthlab.errors import require
from lengthlab.integrations.trackers import TRACKERS
from lengthlab.store import check_place
from lengthlab.store.place import is_address

DEFAULT_STORE = "runs"


class Place(click.Path):
    """A path that is not empty: an empty one would be this folder, and is a variable that nobody set."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("an empty name: say which file or folder", param, ctx)
        return super().convert(value, param, ctx)


class Finite(click.FloatRange):
    """A number in a range: `nan` is none, and click lets it pass; nor is `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"'{value}' is no number", param, ctx)
        return number


class Shared(Place):
    """A store that many machines share: a folder, or the address of an object store."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if is_address(str(value)) else super().convert(value, param, ctx)


shared = click.argument("store", type=Shared(exists=True, file_okay=False), metavar="STORE")
store = click.option(
    "--store", default=DEFAULT_STORE, show_default=True, type=Place(), metavar="FOLDER", help="Where runs are kept."
)
device = click.option(
    "--device",
    default="auto",
    show_default=True,
    help="cpu, cuda, cuda:1, mps; auto: cuda where there is one, then mps, then cpu.",
)
progress = click.option("--progress/--no-progress", default=True, help="Show where the runs are, and how long they will take.")
overrides = click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change every run: --set task.modulus=7"
)
made_with = click.option("--set", "choices", multiple=True, metavar="KEY=VALUE", help="What it is made with: --set keys=8")
launched = click.option(
    "--launch",
    type=click.Choice(["local", "ray", "slurm"]),
    default="local",
    show_default=True,
    help="Where runs are trained: here, or on a cluster; `lengthlab launch` has more options for that.",
)
opened = click.option("--open", "open_it", is_flag=True, help="Watch the runs in a browser, live.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print rows as JSON instead of a table.")
track = click.option(
    "--track",
    multiple=True,
    type=click.Choice(list(TRACKERS)),
    help="Tell a tracker, too; may be repeated. wandb: offline.",
)
precision = click.option(
    "--precision",
    type=click.Choice(["fp32", "tf32", "bf16"]),
    help="Of training; if not given, bf16 on a GPU, or what a study asks for, and fp32 elsewhere.",
)


@dataclass(frozen=True)
class Asked:
    """What `lengthlab reproduce` is told beside the study: train what the store and the rows of `have` lack, or only read
    `sources`; write to a folder, `out` or one in the store, and the page by itself too.
    """

    store: str
    device: str
    progress: bool
    precision: str | None
    have: tuple[str, ...]
    sources: tuple[str, ...]
    out: Path | None
    page: Path | None
    track: tuple[str, ...] = ()
    launch: str = "local"

    def __post_init__(self) -> None:
        here = self.device == "auto" and self.precision is None and self.launch == "local"
        trains = not here or bool(self.have or self.track)
        page = self.page is None or (self.page.suffix == ".md" and not self.page.is_dir())
        require(page, f"--page is a file that ends in .md, not {self.page}: its figures go to a folder of that name beside it")
        check_place(Path(self.store), "store")
        if self.out:
            check_place(self.out, "--out")
        if self.page:
            check_place(self.page.with_suffix(""), "--page: the folder of its figures")
        require(
            not (self.sources and trains),
            "--from trains nothing: it takes no --device, --precision, --have, --track or --launch",
        )

    def folder(self, *name: str) -> Path:
        """Where rows, page and figures go: to `out`, or by this name into the store, where what is only read does not take the
        place of what was trained there.
        """
        return self.out or Path(self.store) / "-".join((*name, "read") if self.sources else name)


class Lengths(click.ParamType):  # type: ignore[type-arg]  # older click cannot be subscripted
    """`25,50,100`, `1e6`"""

    name = "lengths"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        try:
            lengths = tuple(map(_whole, str(value).split(",")))
        except (ValueError, OverflowError):
            lengths = ()
        if not lengths or min(lengths) < 1:
            self.fail(f"'{value}': write lengths as whole numbers from 1, like 25,50,100", param, ctx)
        return lengths


def _whole(text: str) -> int:
    """
    >>> _whole("25"), _whole("1e6")
    (25, 1000000)
    """
    number = float(text) if "e" in text.lower() else int(text)
    if number != int(number):
        raise ValueError(text)
    return int(number)
