"""The data directory: one broker, one writer, and space that is kept for the day on which the disk is full.

Theory of operation
-------------------
Locks end with the process that holds them.  The reserve is a file that means nothing: its space is the disk's until
there is no other.  Then the writer gives it back, and with it can still write down what makes things smaller (messages
that were delivered, sessions that ended) and what is small (a client that comes back); nothing new is taken while the
reserve is missing.  A broker that starts on a full disk opens its file with the same space.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from tieline.net.store.schema import Unusable

#: Held by the broker, and by its writer.  The writer may outlive a killed broker by one commit.
BROKER: Final = "broker.lock"
WRITER: Final = "writer.lock"

#: The file that holds space, and how much: what it takes to bring a journal and a write-ahead log into the tables.
RESERVE: Final = "reserve"
RESERVE_BYTES: Final = 16_777_216
#: A small disk gives up a part of itself only.
_PART: Final = 8
#: In so many steps it is given back.
_STEPS: Final = 8

_STEP_S: Final = 0.02


class Lock:
    """An exclusive lock on a file in the data directory; the file holds the process id of the holder."""

    def __init__(self, data: str | Path, name: str, *, patience_s: float = 0.0) -> None:
        """Take the lock, waiting for it that long; raises Unusable with a sentence that says who has it."""
        path = Path(data) / name
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unusable(f"{data} cannot be written: {error.strerror}") from None
        deadline = monotonic() + patience_s
        while not _try(self._descriptor):
            if monotonic() >= deadline:
                holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
                os.close(self._descriptor)
                who = f" (process {holder})" if holder else ""
                raise Unusable(f"another broker{who} keeps its data in {data}: give this one another --data")
            sleep(_STEP_S)
        # on a full disk there is no room for the number, and the lock holds without it
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        """Let go; the file stays, because removing it would let two processes lock two files of one name."""
        os.close(self._descriptor)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Reserve:
    """Space on the disk of a data directory that is given back when there is no other."""

    def __init__(self, data: str | Path) -> None:
        """Nothing happens yet; a reserve that a predecessor left counts as held."""
        self._path = Path(data) / RESERVE

    def give_back(self) -> bool:
        """Let a step of the space go; whether there was any.

        A step, because whoever has filled the disk may take that, too.
        """
        try:
            left = self._path.stat().st_size - self._wanted() // _STEPS
            if left > 0:
                os.truncate(self._path, left)
            else:
                self._path.unlink()
        except OSError:
            return False
        return True

    def give_back_all(self) -> None:
        """Let all of it go, for those few moments in which a file is opened."""
        with suppress(OSError):
            self._path.unlink()

    def take(self) -> bool:
        """Hold the space, if half of what is free is enough for it; False if the disk has no room for it.

        Where space cannot be held at all, as on some file systems and under some limits, there is no reserve, and that
        is no trouble.
        """
        try:
            size = self._wanted()
            held = self._path.stat().st_size if self._path.exists() else 0
            if held < size:
                disk = os.statvfs(self._path.parent)
                if disk.f_bavail * disk.f_frsize < 2 * (size - held):
                    return False
                self._allocate(size)
        except OSError as error:
            return error.errno != errno.ENOSPC
        return True

    def _wanted(self) -> int:
        disk = os.statvfs(self._path.parent)
        return min(RESERVE_BYTES, disk.f_blocks * disk.f_frsize // _PART)

    def _allocate(self, size: int) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)
        finally:
            os.close(descriptor)
