"""A small process that outlives a killed demonstration just long enough to end what it started.

``python -m tieline.cli.demo.cleanup`` reads process ids from its input, one in a line.  The input ends when the
demonstration does, however that happened; then all groups that these processes lead are killed.  A demonstration that
ends well has stopped them before, so that nothing is left to kill.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress


class CleanupProcess:
    """Our end: tells it whom to end."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tieline.cli.demo.cleanup"],
            stdin=subprocess.PIPE,
            # what is sent to the group of the demonstration is not for it
            start_new_session=True,
        )

    def close(self) -> None:
        """Let it go; it ends whom it was not told to forget."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def tell(self, leader: int) -> None:
        """The process that leads a group; it is forgotten with :meth:`forget`."""
        self._say(leader)

    def forget(self, leader: int) -> None:
        """The group has been ended: its number may soon be somebody else's."""
        self._say(-leader)

    def _say(self, number: int) -> None:
        assert self._process.stdin is not None
        # without that process the demonstration goes on as well
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"%d\n" % number)
            self._process.stdin.flush()


def clean_up(lines: Iterable[str]) -> None:
    """Listen until the end, then end those who are left."""
    left: dict[int, None] = {}
    for line in lines:
        number = int(line)
        if number > 0:
            left[number] = None
        else:
            left.pop(-number, None)
    for leader in reversed(left):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)


if __name__ == "__main__":
    # a Ctrl-C in the terminal is for the demonstration
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    clean_up(sys.stdin)
