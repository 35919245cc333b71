"""Locks between processes that end with their process, also when it is killed (flock)."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
