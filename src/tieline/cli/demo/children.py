"""Processes that the demonstration starts, as users would: each ends with it, even if it is killed."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tieline.cli.demo.cleanup import CleanupProcess
from tieline.cli.trouble import Trouble

#: How long a process may take until it says that it is ready, and how long to end.
_START_S: Final = 20.0
_END_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Ready:
    """The line with which a server says that it is ready, and where."""

    line: str

    def port(self, scheme: str) -> int:
        """The port of the first address with this scheme."""
        return int(re.findall(rf" {scheme}://\S+:(\d+)", self.line)[0])


class Child:
    """One ``tieline`` command in a process of its own."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], errors: Path) -> None:
        self.name = name
        self.process = process
        self._errors = errors
        #: Whether it was told to end, so that its exit code says nothing about it.
        self._is_stopped = False

    def ready(self) -> Ready:
        """Wait for the line that says that it is ready."""
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], _START_S)
        line = self.process.stdout.readline().decode() if readable else ""
        if not line:
            raise Trouble(f"the {self.name} did not start: {self.said() or 'it said nothing'}")
        return Ready(line)

    def is_running(self) -> bool:
        """Whether it has not ended; raises if it has failed."""
        code = self.process.poll()
        if code is not None and code != 0 and not self._is_stopped:
            raise Trouble(f"the {self.name} ended with exit code {code}: {self.said() or 'it said nothing'}")
        return code is None

    def said(self) -> str:
        """The last that it said about errors."""
        with suppress(OSError):
            lines = self._errors.read_text("utf-8", "replace").strip().splitlines()
            return lines[-1].removeprefix("tieline: ") if lines else ""
        return ""

    def kill(self) -> None:
        """End it as a loss of power would: at once, and without a word to it."""
        self._is_stopped = True
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Tell it to end and wait until it has."""
        self._is_stopped = True
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_END_S)
        # It leads a group of its own.  Whatever is left of that group, a Java process for example, goes now.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


class Children:
    """All of them; what is still running at the end of the block is stopped, the last one first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._all: list[Child] = []
        self._cleanup = CleanupProcess()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A second Ctrl-C must not leave anybody behind.
        before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            for child in reversed(self._all):
                child.stop()
                self._cleanup.forget(child.process.pid)
            self._cleanup.close()
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def start(self, name: str, *words: str, environment: Mapping[str, str] | None = None) -> Child:
        """Start ``tieline WORDS``; its errors go to a file beside the data."""
        errors = self._folder / f"{name.replace(' ', '-')}.log"
        with errors.open("wb") as written:
            process = subprocess.Popen(
                [sys.executable, "-m", "tieline", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=written,
                env={**os.environ, **(environment or {})},
                # Ctrl-C in a terminal reaches everybody in its group; ours are ended in their order instead.
                start_new_session=True,
            )
        self._cleanup.tell(process.pid)
        child = Child(name, process, errors)
        self._all.append(child)
        return child

    def check(self) -> None:
        """Raise if one of them has failed."""
        for child in self._all:
            child.is_running()


def wait_for(child: Child, seconds: float) -> bool:
    """Whether a child has ended well within this time."""
    deadline = time.monotonic() + seconds
    while child.is_running():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
