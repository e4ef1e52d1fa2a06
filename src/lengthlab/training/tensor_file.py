"""Tensors from a file that may be anybody's: what it says of itself is compared with what is wanted before it is loaded.

A file of ours has a digest of itself in its note, so that a bit that has changed on the disk is seen.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from lengthlab.store.plain_file import require_plain

Shape = tuple[int, ...]
MOST_HEADER = 2**24
"""Bytes of a header: that of a model with a thousand tensors has 100,000."""
NOTE = "lengthlab"
DIGEST = rb"{\"sha256\": \""
"""What stands before the digest: the note begins with it, as a text in the JSON of the header."""
DIGITS = 64
CHUNK = 2**20
"""Bytes read at a time."""


class Misfit(Exception):
    """The tensors are those of another model."""


class NoTensors(Exception):
    """It is no file of tensors with our note; the text says why."""


class Damaged(NoTensors):
    """It is not what anybody wrote: cut short, or changed since."""


def tensor_file(tensors: dict[str, torch.Tensor], note: Mapping[str, Any]) -> bytes:
    """The bytes of a file with these tensors and this note, and a digest of all that is in it but the digest."""
    data = memoryview(save(tensors, metadata={NOTE: json.dumps({"sha256": "0" * DIGITS, **note})}))
    start = bytes(data[:MOST_HEADER]).index(DIGEST) + len(DIGEST)
    before, after = data[:start], data[start + DIGITS :]
    digest = sha256(before)
    digest.update(after)
    return b"".join((before, digest.hexdigest().encode(), after))


def read_tensors(path: Path, wanted: Callable[[str], Shape | None]) -> tuple[Mapping[str, Any], dict[str, torch.Tensor]]:
    """Our note in the file, and its tensors by name; `wanted` is the shape that a name must have, None for no such name."""
    require_plain(path, most=2**50)
    try:
        _check_bytes(path)
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118
                shape = tuple(file.get_slice(name).get_shape())
                if shape != wanted(name):
                    raise Misfit(f"'{name}' has the shape {shape}")
            note = json.loads((file.metadata() or {}).get(NOTE, "{}"))
            if not isinstance(note, dict):
                raise NoTensors("its note is none of ours")
            return note, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RecursionError, TypeError) as error:
        elsewhere = isinstance(error, OSError) and error.errno != errno.EIO  # no right to read it, say
        kind = NoTensors if elsewhere else Damaged
        raise kind(str(error).splitlines()[0] if str(error) else type(error).__name__) from None


def _check_bytes(path: Path) -> None:
    """Whether they are those that were written, where the file tells: older versions wrote no digest. Safetensors reads a
    header of up to 100 MB before it looks at anything else in it.
    """
    with open(path, "rb") as file:
        first, there = file.read(8), os.fstat(file.fileno()).st_size
        size = int.from_bytes(first, "little")
        if size > min(MOST_HEADER, there):
            raise Damaged(f"it says that its header has {size:,} bytes")
        before, mark, after = file.read(size).partition(DIGEST)
        if not mark:
            return
        digest = sha256(first + before + mark + after[DIGITS:])
        while piece := file.read(CHUNK):
            digest.update(piece)
    if digest.hexdigest().encode() != after[:DIGITS]:
        raise Damaged("its bytes are not those that were written")
