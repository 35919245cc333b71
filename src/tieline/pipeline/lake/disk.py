"""Steps on the file system that survive a power cut: what is said to be there is there afterwards.

A rename is atomic, but neither the file nor its new name is on the disk before both have been synchronised.  Every
change goes through one object, so that a test can let the machine fail before any step.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
#: What a kernel or file system says that cannot exchange two names.
_CANNOT: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


class CannotExchange(OSError):
    """The file system cannot exchange two directories in one step."""


class Disk:
    """Changes of files and directories, each durable when it returns."""

    def write(self, path: Path, data: bytes) -> None:
        """Put a file in place of what was there: readers see the old one or the new one."""
        fresh = path.with_name(f".{path.name}.new")
        with fresh.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        self.sync(path.parent)

    def make(self, path: Path) -> None:
        """Make a directory, and those above it."""
        if path.is_dir():
            return
        self.make(path.parent)
        path.mkdir(exist_ok=True)
        self.sync(path.parent)

    def move(self, source: Path, target: Path) -> None:
        """Rename a file or directory; what it holds must be synchronised already."""
        source.rename(target)
        self.sync(target.parent)
        self.sync(source.parent)

    def exchange(self, one: Path, other: Path) -> None:
        """Let two directories change places, in one step; raises :class:`CannotExchange`."""
        _exchange(one, other)
        self.sync(one.parent)
        self.sync(other.parent)

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name."""
        os.link(source, target)

    def remove(self, path: Path) -> None:
        """Remove a file or a whole directory, if it is there.

        Somebody who was given up may still write into the directory: what that leaves is removed the next time.
        """
        if path.is_dir() and not path.is_symlink():
            try:
                shutil.rmtree(path)
            except OSError as problem:
                if problem.errno not in {errno.ENOTEMPTY, errno.ENOENT}:
                    raise
        else:
            path.unlink(missing_ok=True)

    def sync(self, path: Path) -> None:
        """Synchronise one file, or the names in one directory."""
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def sync_tree(self, path: Path) -> None:
        """Synchronise every directory below a path, and every file in them."""
        for found in walk(path):
            self.sync(found)


def walk(path: Path) -> Iterator[Path]:
    """Everything below a path, what is inside a directory before the directory, and the path itself last."""
    for folder, _folders, files in os.walk(path, topdown=False):
        for name in files:
            yield Path(folder, name)
        yield Path(folder)


def _exchange(one: Path, other: Path) -> None:
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        raise CannotExchange(errno.ENOSYS, "the system has no renameat2") from None
    done = renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    if done == 0:
        return
    number = ctypes.get_errno()
    if number in _CANNOT:
        raise CannotExchange(number, os.strerror(number))
    raise OSError(number, os.strerror(number), str(one), None, str(other))


class Busy(Exception):
    """Somebody else holds a lock."""


@contextmanager
def locked(path: Path, *, wait: bool = True, busy: str = "") -> Iterator[None]:
    """Hold a lock; without ``wait``, :class:`Busy` says what ``busy`` says if somebody else holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise Busy(busy) from None
        yield
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Whether some process holds a lock."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
