"""One broker per data directory, and one writer per file: locks that end with the process that holds them."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from tieline.net.store.schema import Unusable

#: Held by the broker, and by its writer.  The writer may outlive a killed broker by one commit.
BROKER: Final = "broker.lock"
WRITER: Final = "writer.lock"

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
