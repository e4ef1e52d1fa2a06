"""A disk that writes down every call that changes it, and what a crash would leave of it after each of them.

`recording(folder)` notes what this process asks of the system below a folder: folders made, files opened, bytes written, files
and folders synced, names moved, linked and removed. `Disk` carries the same calls out on paper, so that a test can stop after
any of them, or within a write, and lay out what is there then. Two crashes are told apart:

- the *process* dies (`killed`): every call before is done, the last write perhaps in part;
- the *machine* dies (`powerless`): bytes that nobody synced may be gone, or zeros, and of the changes of names since their
  folder was last synced any one may not have been made.
"""

from __future__ import annotations

import builtins
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

DEAD = 99_999_999
"""The number of a process that is not there any more."""


@dataclass(frozen=True)
class Call:
    """`kind` is the name of the system call; `file` the number of an opened file; `place` where in it bytes are written."""

    kind: str
    name: str = ""
    to: str = ""
    file: int = 0
    place: int = 0
    data: bytes = b""

    @property
    def folder(self) -> str:
        """Whose names it changes."""
        return os.path.dirname(self.to or self.name)

    @property
    def of_a_name(self) -> bool:
        """Whether it changes what a folder says, and not what a file says."""
        return self.kind in ("create", "rename", "link", "unlink")


@dataclass
class Disk:
    """Names below the folder, the files that they mean, and of each file what is in it and how much of that is synced."""

    folders: set[str] = field(default_factory=set)
    names: dict[str, int] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)
    synced: dict[int, int] = field(default_factory=dict)
    unsure: list[tuple[Call, dict[str, int]]] = field(default_factory=list)
    """Changes of names that no sync has followed, and the names before each."""

    def do(self, call: Call) -> None:
        before = dict(self.names)
        match call.kind:
            case "mkdir":
                self.folders.add(call.name)
            case "rmdir":
                self.folders.discard(call.name)
            case "create":
                self.names[call.name], self.files[call.file], self.synced[call.file] = call.file, b"", 0
            case "truncate":
                self.files[call.file], self.synced[call.file] = b"", 0
            case "write":
                there = self.files[call.file].ljust(call.place, b"\0")
                self.files[call.file] = there[: call.place] + call.data + there[call.place + len(call.data) :]
                self.synced[call.file] = min(self.synced[call.file], call.place)
            case "fsync":
                self.synced[call.file] = len(self.files[call.file])
            case "rename":
                self.names[call.to] = self.names.pop(call.name)
            case "link":
                self.names[call.to] = self.names[call.name]
            case "unlink":
                self.names.pop(call.name)
            case "fsync folder":
                self.unsure = [each for each in self.unsure if each[0].folder != call.name]
        if call.of_a_name:
            self.unsure.append((call, before))

    def content(self) -> dict[str, bytes]:
        return {name: self.files[file] for name, file in self.names.items()}

    def seen(self) -> dict[str, bytes]:
        """Without what nobody but its writer looks at."""
        return {name: data for name, data in self.content().items() if not _hidden(name)}

    def lay(self, folder: Path) -> None:
        """Put it into a folder; whoever wrote it is dead."""
        for name in sorted(self.folders):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name, data in self.content().items():
            path = folder / name.replace(f".{os.getpid()}.", f".{DEAD}.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def _hidden(name: str) -> bool:
    return os.path.basename(name).startswith(".")


def killed(calls: Sequence[Call], cuts: Callable[[Call], Sequence[int]]) -> Iterator[tuple[str, Disk]]:
    """The disk after each call, and within each write after as many bytes as `cuts` says; with words for it."""
    disk = Disk()
    for number, call in enumerate(calls):
        if call.kind == "write":
            for cut in cuts(call):
                part = deepcopy(disk)
                part.do(Call("write", file=call.file, place=call.place, data=call.data[:cut]))
                yield f"{cut} bytes into call {number} ({call.kind})", part
        disk.do(call)
        yield f"after call {number} ({call.kind} {call.name} {call.to})", deepcopy(disk)


def in_halves(calls: Sequence[Call]) -> Iterator[Call]:
    """The same on a disk whose renames are not atomic: what had the name is gone before the new file has it."""
    disk = Disk()
    for call in calls:
        if call.kind == "rename" and call.to in disk.names:
            yield Call("unlink", call.to)
        disk.do(call)
        yield call


def powerless(calls: Sequence[Call]) -> Iterator[tuple[str, Disk]]:
    """The disk as a power cut after each call may leave it: with unsynced bytes gone or zeros, and with each unsynced change of
    a name not made.
    """
    disk = Disk()
    for number, call in enumerate(calls):
        disk.do(call)
        when = f"power cut after call {number} ({call.kind} {call.name} {call.to})"
        for word, fill in (("gone", b""), ("zeros", b"\0")):
            lost = deepcopy(disk)
            lost.files = {
                file: data[: lost.synced[file]] + fill * (len(data) - lost.synced[file]) for file, data in lost.files.items()
            }
            yield f"{when}, unsynced bytes {word}", lost
            for undone, _ in disk.unsure:
                yield f"{when}, unsynced bytes {word}, without {undone.kind} {undone.name} {undone.to}", _without(lost, undone)


def _without(disk: Disk, undone: Call) -> Disk:
    """The names of a folder as all calls that were not synced made them, but one; those that need it have no effect either."""
    found, folder = deepcopy(disk), undone.folder
    unsure = [(call, before) for call, before in disk.unsure if call.folder == folder]
    elsewhere = {name: file for name, file in disk.names.items() if os.path.dirname(name) != folder}
    names = {name: file for name, file in unsure[0][1].items() if os.path.dirname(name) == folder}
    for call, _ in unsure:
        if call == undone:
            continue
        if call.kind == "create":
            names[call.name] = call.file
        elif call.name in names:
            file = names[call.name] if call.kind == "link" else names.pop(call.name)
            names |= {call.to: file} if call.kind != "unlink" else {}
    found.names = elsewhere | names
    return found


class Recorder:
    """Notes calls below a folder, in order."""

    def __init__(self, root: Path) -> None:
        self.root = os.path.realpath(root)
        self.calls: list[Call] = []
        self._opened: dict[int, tuple[int, str]] = {}
        self._files = 0
        self._named: dict[str, int] = {}

    def inside(self, path: Any, dir_fd: int | None = None) -> str | None:
        """The name below the folder, None for what lies elsewhere."""
        if isinstance(path, int):
            return None
        text = os.fspath(path)
        if dir_fd is not None and dir_fd in self._opened:
            text = os.path.join(self.root, self._opened[dir_fd][1], text)
        place = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(text))), os.path.basename(text))
        return os.path.relpath(place, self.root) if place.startswith(self.root + os.sep) else None

    def opened(self, name: str, fd: int, new: bool, emptied: bool) -> int:
        if new:
            self._files += 1
            self._named[name] = self._files
            self.calls.append(Call("create", name, file=self._files))
        elif emptied:
            self.calls.append(Call("truncate", file=self._named[name]))
        self._opened[fd] = (self._named[name], name)
        return self._named[name]

    def folder_opened(self, name: str, fd: int) -> None:
        self._opened[fd] = (0, name)

    def synced(self, fd: int) -> None:
        if fd in self._opened:
            file, name = self._opened[fd]
            self.calls.append(Call("fsync", file=file) if file else Call("fsync folder", name))

    def moved(self, name: str, to: str) -> None:
        self.calls.append(Call("rename", name, to))
        if name in self._named:
            self._named[to] = self._named.pop(name)

    def linked(self, name: str, to: str) -> None:
        self.calls.append(Call("link", name, to))
        self._named[to] = self._named[name]

    def removed(self, name: str) -> None:
        self.calls.append(Call("unlink", name))
        self._named.pop(name)

    def wrote(self, fd: int, place: int, data: bytes) -> None:
        self.calls.append(Call("write", file=self._opened[fd][0], place=place, data=data))


class _File(io.FileIO):
    """A file whose writes are noted, one by one, as they reach the system."""

    recorder: Recorder

    def write(self, data: Any) -> int:
        place = os.fstat(self.fileno()).st_size if "a" in self.mode else self.tell()
        count = super().write(data)
        self.recorder.wrote(self.fileno(), place, bytes(memoryview(data).cast("B")[:count]))
        return count


@contextmanager
def recording(folder: Path) -> Iterator[list[Call]]:
    """What this process does to files below a folder, call by call."""
    recorder = Recorder(folder)
    with pytest.MonkeyPatch.context() as patch:
        _record_opening(recorder, patch)
        _record_names(recorder, patch)
        yield recorder.calls


def _record_opening(recorder: Recorder, patch: pytest.MonkeyPatch) -> None:
    plain_open, system_open, fsync = io.open, os.open, os.fsync

    def opening(file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, *rest: Any, **more: Any) -> Any:
        name = recorder.inside(file)
        if name is None or not set(mode) & set("wax+"):
            return plain_open(file, mode, buffering, encoding, *rest, **more)
        new = not os.path.exists(file)
        raw = _File(file, mode.replace("b", "").replace("t", ""))
        raw.recorder = recorder
        recorder.opened(name, raw.fileno(), new, "w" in mode)
        if buffering == 0:
            return raw
        buffered = io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, *rest, **more)

    def opening_number(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        name = recorder.inside(path, dir_fd)
        new = name is not None and not os.path.lexists(os.path.join(recorder.root, name))
        fd = system_open(path, flags, mode, dir_fd=dir_fd)
        if name is not None and os.path.isdir(os.path.join(recorder.root, name)):
            recorder.folder_opened(name, fd)
        elif name is not None and flags & (os.O_WRONLY | os.O_RDWR):
            recorder.opened(name, fd, new, bool(flags & os.O_TRUNC))
        return fd

    def syncing(fd: Any) -> None:
        fsync(fd)
        recorder.synced(fd if isinstance(fd, int) else fd.fileno())

    patch.setattr(builtins, "open", opening)
    patch.setattr(io, "open", opening)
    patch.setattr(os, "open", opening_number)
    patch.setattr(os, "fsync", syncing)


def _record_names(recorder: Recorder, patch: pytest.MonkeyPatch) -> None:
    def on_one(kind: str, note: Callable[[str], None]) -> None:
        real = getattr(os, kind)

        def act(path: Any, *rest: Any, dir_fd: int | None = None, **more: Any) -> None:
            name = recorder.inside(path, dir_fd)
            real(path, *rest, dir_fd=dir_fd, **more)
            if name is not None:
                note(name)

        patch.setattr(os, kind, act)

    def on_two(kind: str, note: Callable[[str, str], None]) -> None:
        real = getattr(os, kind)

        def act(path: Any, to: Any, **more: Any) -> None:
            name, other = recorder.inside(path), recorder.inside(to)
            real(path, to, **more)
            if name is not None and other is not None:
                note(name, other)

        patch.setattr(os, kind, act)

    for kind in ("unlink", "remove"):
        on_one(kind, recorder.removed)
    on_one("mkdir", lambda name: recorder.calls.append(Call("mkdir", name)))
    on_one("rmdir", lambda name: recorder.calls.append(Call("rmdir", name)))
    for kind in ("rename", "replace"):
        on_two(kind, recorder.moved)
    on_two("link", recorder.linked)
