"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

from lengthlab.errors import require

store = click.option(
    "--store", default="runs", show_default=True, type=click.Path(), metavar="FOLDER", help="Where runs are kept."
)
device = click.option("--device", default="cpu", show_default=True, help="cpu, cuda, cuda:1, mps.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print rows as JSON instead of a table.")
precision = click.option(
    "--precision",
    type=click.Choice(["fp32", "bf16"]),
    help="Of training; if not given, bf16 on a GPU and fp32 elsewhere.",
)
workers = click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Runs at a time on CPUs; one for each core if not given.",
)


trust = click.option("--trust", is_flag=True, help="Run the code of your own files that lies in the run folder.")


@dataclass(frozen=True)
class Asked:
    """What every command of `lengthlab reproduce` is told: train what the store and the rows of `have` lack, or only read
    `sources`; write to a folder, `out` or one in the store, and the page by itself too.
    """

    store: str
    device: str | None
    precision: str | None
    have: tuple[str, ...]
    sources: tuple[str, ...]
    out: Path | None
    page: Path | None

    def __post_init__(self) -> None:
        trains = bool(self.device or self.precision or self.have)
        page = self.page is None or self.page.suffix == ".md"
        require(page, f"--page is a file that ends in .md, not {self.page}: its figures go to a folder of that name beside it")
        require(not (self.sources and trains), "--from trains nothing, so it takes no --device, no --precision and no --have")

    def folder(self, *name: str) -> Path:
        """Where rows, page and figures go: to `out`, or by this name into the store, where what is only read does not take the
        place of what was trained there.
        """
        return self.out or Path(self.store) / "-".join((*name, "read") if self.sources else name)


REPRODUCTION = (
    store,
    click.option("--device", help="cpu, cuda, cuda:1, mps; if not given, cuda where there is one, else cpu."),
    precision,
    click.option(
        "--have", multiple=True, metavar="FOLDER", help="Rows that are there: only what they lack is trained; may be repeated."
    ),
    click.option(
        "--from", "sources", multiple=True, metavar="FOLDER", help="Train nothing, read rows or runs; may be repeated."
    ),
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        help="Folder for page, figures, rows and provenance; one in the store if not given.",
    ),
    click.option("--page", type=click.Path(path_type=Path), help="Write the page as this file, its figures beside it."),
)


def reproduction(command: Callable[..., None]) -> Callable[..., None]:
    """The options of `Asked`, which the command gets as one."""

    @wraps(command)
    def told(**given: Any) -> None:
        asked = Asked(**{field.name: given.pop(field.name) for field in fields(Asked)})
        command(asked=asked, **given)

    for option in reversed(REPRODUCTION):
        told = option(told)
    return told


class Lengths(click.ParamType):  # type: ignore[type-arg]  # older click cannot be subscripted
    """`25,50,100`"""

    name = "lengths"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        try:
            lengths = tuple(int(part) for part in str(value).split(","))
        except ValueError:
            lengths = ()
        if not lengths or min(lengths) < 1:
            self.fail(f"'{value}': write lengths as whole numbers from 1, like 25,50,100", param, ctx)
        return lengths
