"""A program that a benchmark starts, waits for and ends by its process id: a broker, a log server, a Spark worker."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tieline.bench.load.job import Failure

#: How long a program may take to say that it is ready, and to end when it is asked to.
READY_S: Final = 120.0
_END_S: Final = 60.0
_LOOK_S: Final = 0.02
#: How much of its last words is told.
_TAIL: Final = 400


class Process:
    """A program in a session of its own, all of whose output goes to a file; it can be started again after its end.

    Ctrl-C therefore reaches the benchmark, which then ends its programs in order.
    """

    def __init__(
        self, name: str, command: Sequence[str], log: Path, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._command = list(command)
        self._log = log
        self._environment = dict(environment or {})
        self._running: subprocess.Popen[bytes] | None = None
        #: Where the output of this start begins.
        self._begin = 0

    @property
    def pid(self) -> int:
        """The id of the process, which is that of its group too."""
        if self._running is None:
            raise Failure(f"the {self.name} is not running")
        return self._running.pid

    @property
    def is_running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._running is not None and self._running.poll() is None

    def start(self) -> None:
        """Start it, and do not wait for anything."""
        with self._log.open("ab") as log:
            self._begin = log.tell()
            self._running = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )

    def wait_until_ready(self, word: str) -> None:
        """Wait for the line that says that it is ready."""
        deadline = time.monotonic() + READY_S
        while word.encode() not in self._log.read_bytes()[self._begin :]:
            if not self.is_running or time.monotonic() > deadline:
                raise Failure(f"the {self.name} did not start: {self.said()}")
            time.sleep(_LOOK_S)

    def wait(self, seconds: float) -> int:
        """Its exit code; a failure if it takes longer."""
        assert self._running is not None
        try:
            return self._running.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"the {self.name} did not end within {seconds:.0f} s: {self.said()}") from None

    def kill(self) -> None:
        """End it and all that it started as a power cut would."""
        running, self._running = self._running, None
        if running is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()

    def stop(self, patience_s: float = _END_S) -> None:
        """Ask it to end; kill what is left then."""
        if self._running is not None and self.is_running:
            self._running.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._running.wait(patience_s)
        self.kill()

    def said(self) -> str:
        """The last that it said."""
        with suppress(OSError):
            return self._log.read_text("utf-8", "replace").strip()[-_TAIL:]
        return ""

    def obituary(self) -> str | None:
        """What it left behind if it has ended by itself, else nothing."""
        code = self._running.poll() if self._running is not None else None
        if code is None:
            return None
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        said = self.said()
        return f"the {self.name} died ({how})" + (f" [{said}]" if said else "")


def until(what: str, seconds: float, holds: Callable[[], bool]) -> None:
    """Look again and again, for so long, whether something holds; a failure if it does not."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise Failure(f"after {seconds:.0f} s still not: {what}")
        time.sleep(_LOOK_S)
