"""One program that a benchmark starts, waits for, and ends by its process id, together with whatever it started."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import tieline
from tieline.bench.load.failure import Failure

#: How long a program may take to say that it is ready, and to end when it is asked to.
READY_S: Final = 120.0
_END_S: Final = 60.0
_TAIL: Final = 600


class Process:
    """A program in a session of its own; it can be started again after it has ended."""

    def __init__(
        self, name: str, command: Sequence[str], log: Path, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._command = list(command)
        self._log = log
        self._environment = dict(environment or {})
        self._running: subprocess.Popen[bytes] | None = None

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
        with self._log.open("ab") as errors:
            self._running = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **self._environment},
                # Ctrl-C reaches the benchmark, which then ends its programs in order
                start_new_session=True,
            )

    def wait_until_ready(self, word: str) -> str:
        """Wait for the line that says that it is ready."""
        assert self._running is not None
        assert self._running.stdout is not None
        readable, _, _ = select.select([self._running.stdout], [], [], READY_S)
        line = self._running.stdout.readline().decode(errors="replace") if readable else ""
        if word not in line:
            raise Failure(f"the {self.name} did not start: {line.strip()} {self.said()}")
        return line

    def wait(self, seconds: float) -> int:
        """Its exit code; a failure if it takes longer."""
        assert self._running is not None
        try:
            return self._running.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"the {self.name} did not end within {seconds:.0f} s: {self.said()}") from None

    def kill(self) -> None:
        """Kill it and all that it started, without a word."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end; kill what is left then."""
        if self.is_running:
            assert self._running is not None
            self._running.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._running.wait(_END_S)
        self._end(signal.SIGKILL)

    def said(self) -> str:
        """The last that it said about errors."""
        with suppress(OSError):
            return self._log.read_text("utf-8", "replace").strip()[-_TAIL:]
        return ""

    def _end(self, number: signal.Signals) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, number)
        running.wait()
        if running.stdout is not None:
            running.stdout.close()


def our_program(*words: str) -> list[str]:
    """The command line of ``tieline WORDS``, run by this interpreter."""
    return [sys.executable, "-m", "tieline", *words]


def our_path() -> dict[str, str]:
    """What the environment needs for the program to be this very one, however it was found here."""
    assert tieline.__file__ is not None
    ours = str(Path(tieline.__file__).resolve().parent.parent)
    paths = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    return {"PYTHONPATH": os.pathsep.join(paths if ours in paths else [ours, *paths])}


def until(what: str, seconds: float, holds: Callable[[], bool]) -> None:
    """Look again and again, for so long, whether something holds; a failure if it does not."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise Failure(f"after {seconds:.0f} s still not: {what}")
        time.sleep(0.05)
