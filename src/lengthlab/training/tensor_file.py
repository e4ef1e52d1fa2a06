"""Tensors from a file that may be anybody's: what it says of itself is compared with what is wanted before it is loaded."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from lengthlab.store.plain_file import require_plain

Shape = tuple[int, ...]
MOST_HEADER = 2**24
"""Bytes of a header: that of a model with a thousand tensors has 100,000."""
NOTE = "lengthlab"


class Misfit(Exception):
    """The tensors are those of another model."""


class NoTensors(Exception):
    """It is no file of tensors with our note; the text says why."""


def read_tensors(
    path: Path, wanted: Callable[[str], Shape | None], device: str = "cpu"
) -> tuple[Mapping[str, Any], dict[str, torch.Tensor]]:
    """Our note in the file, and its tensors by name; `wanted` is the shape that a name must have, None for no such name."""
    require_plain(path, most=2**50)
    try:
        _check_header(path)
        with safe_open(path, framework="pt", device=device) as file:
            for name in file.keys():  # noqa: SIM118
                shape = tuple(file.get_slice(name).get_shape())
                if shape != wanted(name):
                    raise Misfit(f"'{name}' has the shape {shape}")
            note = json.loads((file.metadata() or {}).get(NOTE, "{}"))
            if not isinstance(note, dict):
                raise NoTensors("its note is none of ours")
            return note, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RecursionError, TypeError) as error:
        raise NoTensors(str(error).splitlines()[0] if str(error) else type(error).__name__) from None


def _check_header(path: Path) -> None:
    """Safetensors reads a header of up to 100 MB before it looks at anything else in it."""
    with open(path, "rb") as file:
        size, there = int.from_bytes(file.read(8), "little"), os.fstat(file.fileno()).st_size
    if size > min(MOST_HEADER, there):
        raise NoTensors(f"it says that its header has {size:,} bytes")
