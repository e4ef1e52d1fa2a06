"""What trackers wrote, read from their own files: for each run, by metric, every (step, value) in the order of the file."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

Metrics = dict[str, list[tuple[int, float]]]


def from_tensorboard(store: Path) -> dict[str, Metrics]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    found = {}
    for folder in (path for path in (store / "tensorboard").iterdir() if path.name != ".sent"):
        read = EventAccumulator(str(folder), size_guidance={"tensors": 0})
        read.Reload()
        tags = read.Tags()["tensors"]
        found[folder.name] = {
            tag: [(each.step, float(make_ndarray(each.tensor_proto))) for each in read.Tensors(tag)] for tag in tags
        }
    return found


def from_trackio(store: Path) -> dict[str, Metrics]:
    import sqlite3

    found: dict[str, Metrics] = {}
    with sqlite3.connect(store / "trackio" / "lengthlab.db") as database:
        for name, step, metrics in database.execute("SELECT run_name, step, metrics FROM metrics ORDER BY id"):
            for metric, value in json.loads(metrics).items():
                found.setdefault(name, {}).setdefault(metric, []).append((step, value))
    return found


def from_wandb(store: Path) -> dict[str, Metrics]:
    """By the id of the run: one that went on has a file for each time."""
    from wandb.proto.wandb_internal_pb2 import Record

    found: dict[str, Metrics] = {}
    for path in sorted((store / "wandb").glob("offline-run-*/run-*.wandb")):
        run = path.stem.removeprefix("run-")
        for data in _records(path.read_bytes()):
            record = Record.FromString(data)
            if record.WhichOneof("record_type") == "history":
                row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
                for metric, value in row.items():
                    if not metric.startswith("_"):
                        found.setdefault(run, {}).setdefault(metric, []).append((row["_step"], value))
    return found


def _records(data: bytes, block: int = 32768) -> Iterator[bytes]:
    """A log of LevelDB's form after 7 bytes: checksum, length, kind (1 whole; 2, 3, 4 first, middle, last), content."""
    place, whole = 7, b""
    while place + 7 <= len(data):
        if block - place % block < 7:
            place += block - place % block
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield whole
            whole = b""
