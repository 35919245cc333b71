"""What would be on a disk after power was lost, made from a trace of system calls.

A write is in the page cache until ``fsync`` or ``fdatasync`` of its file has returned; before that, each sector of it
may be on the disk or not.  That a file exists, or no longer does, is on the disk when its folder has been synced.
``kill -9`` cannot show any of this, because the page cache survives the process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

#: What the disk writes as a whole.
SECTOR: Final = 512
CALLS: Final = "openat,close,write,pwrite64,ftruncate,fsync,fdatasync,unlink,rename,sendto"

_CALL: Final = re.compile(r"^(?:(\d+) +)?(\w+)\((.*)\) += (-?\d+)")
_TEXT: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


class Call(NamedTuple):
    """One system call that returned."""

    name: str
    arguments: str
    result: int

    @property
    def text(self) -> bytes:
        """The first string among the arguments."""
        found = _TEXT.search(self.arguments)
        assert found is not None, self
        return bytes.fromhex(found[1].replace("\\x", ""))

    def number(self, place: int) -> int:
        """An argument counted from the end."""
        return int(self.arguments.split(",")[place].strip())

    @property
    def descriptor(self) -> int:
        return int(self.arguments.split(",")[0])


def strace(trace: Path) -> list[str]:
    """The words that make ``strace`` write what this module reads."""
    return ["strace", "-qq", "-xx", "-s", "1000000", "-e", f"trace={CALLS}", "-o", str(trace)]


def calls(trace: Path) -> Iterator[Call]:
    """The calls of one process, in order."""
    for line in trace.read_text().splitlines():
        found = _CALL.match(line)
        if found is not None:
            yield Call(found[2], found[3], int(found[4]))


class File:
    """One file: as the process sees it, as it is on the disk, and what lies between."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self.kept: bytes | None = None
        self.unsynced: list[tuple[int, bytes]] = []

    def write(self, at: int, data: bytes) -> None:
        if len(self.seen) < at:
            self.seen.extend(bytes(at - len(self.seen)))
        self.seen[at : at + len(data)] = data
        self.unsynced.append((at, data))

    def truncate(self, size: int) -> None:
        if size < len(self.seen):
            del self.seen[size:]
        else:
            self.seen.extend(bytes(size - len(self.seen)))

    def sync(self) -> None:
        self.kept = bytes(self.seen)
        self.unsynced = []

    def after(self, random: Random | None) -> bytes | None:
        """The content after power was lost: without what was not synced, or with some sectors of it."""
        if self.kept is None or random is None:
            return self.kept
        content = bytearray(self.kept)
        for at, data in self.unsynced:
            for start in range(0, len(data), SECTOR):
                part = data[start : start + SECTOR]
                if random.random() < 0.5:
                    if len(content) < at + start:
                        content.extend(bytes(at + start - len(content)))
                    content[at + start : at + start + len(part)] = part
        return bytes(content)


class Disk:
    """All files of one folder while a trace is followed."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        #: As the process sees them, and as the folder on the disk lists them.
        self.files: dict[str, File] = {}
        self._listed: dict[str, File] = {}
        self._open: dict[int, str] = {}
        self._places: dict[int, int] = {}

    def follow(self, call: Call) -> None:
        """Do what the process did."""
        if call.result < 0:
            return
        match call.name:
            case "openat":
                path = os.fsdecode(call.text)
                self._open.pop(call.result, None)
                if path.startswith(self._folder):
                    self._open[call.result] = path
                if path.startswith(f"{self._folder}/"):
                    self._places[call.result] = 0
                    file = self.files.setdefault(path, File())
                    if "O_TRUNC" in call.arguments:
                        file.truncate(0)
            case "close":
                self._open.pop(call.descriptor, None)
            case "pwrite64" if call.descriptor in self._open:
                self._file(call).write(call.number(-1), call.text)
            case "write" if call.descriptor in self._open:
                self._file(call).write(self._places[call.descriptor], call.text)
                self._places[call.descriptor] += call.result
            case "ftruncate" if call.descriptor in self._open:
                self._file(call).truncate(call.number(-1))
            case "fsync" | "fdatasync" if self._open.get(call.descriptor) == self._folder:
                self._listed = dict(self.files)
            case "fsync" | "fdatasync" if call.descriptor in self._open:
                self._file(call).sync()
            case "unlink":
                self.files.pop(os.fsdecode(call.text), None)

    def _file(self, call: Call) -> File:
        return self.files[self._open[call.descriptor]]

    def lose_power(self, target: Path, random: Random | None = None) -> None:
        """Leave in another folder what is on the disk now."""
        target.mkdir(mode=0o700, parents=True)
        for path, file in self._listed.items():
            content = file.after(random)
            if content is not None:
                (target / Path(path).name).write_bytes(content)
