"""``tieline serve`` in a process of its own: its memory can be measured and its descriptors can be limited."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.kits.dial import Dial, dial
from tests.kits.patience import until
from tests.kits.processes import stop
from tests.robust.arena import Pair, shrink

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Served:
    """A running ``tieline serve``."""

    def __init__(self, process: subprocess.Popen[str], url: str, log: Path) -> None:
        self._process = process
        self._log = log
        self._opened: list[Dial | socket.socket] = []
        self.url = url
        #: Where other brokers connect, if they may.
        self.peer_url = ""
        #: Where it keeps its data, and its management socket.
        self.folder = log.parent

    def dial(self, client_id: str, *, version: int = 5, reads_little: bool = False, **fields: Any) -> Dial:
        """A client that has been let in; it is closed when the broker has been served enough."""
        client = dial(self.url, client_id, version=version, **fields)
        self._opened.append(client)
        if reads_little:
            shrink(client.sock)
        return client

    def keep(self, sock: socket.socket) -> None:
        """Close a socket when the broker has been served enough."""
        self._opened.append(sock)

    def hang_up(self) -> None:
        """Close every client."""
        for client in self._opened:
            client.close()

    @property
    def resident_bytes(self) -> int:
        """What the process holds in memory now."""
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * _PAGE

    @property
    def descriptors(self) -> int:
        """How many files and sockets the process has open."""
        return len(list(Path(f"/proc/{self._process.pid}/fd").iterdir()))

    def limit_descriptors(self, more: int) -> None:
        """Leave the process this many descriptors beyond those it has."""
        count = self.descriptors + more
        resource.prlimit(self._process.pid, resource.RLIMIT_NOFILE, (count, count))

    def log(self) -> str:
        """Everything it has written to its log."""
        return self._log.read_text()

    def raw_log(self) -> bytes:
        """The same, byte for byte."""
        return self._log.read_bytes()

    def find_log(self, *words: str) -> str | None:
        """The first line of the log with all these words, if there is one by now."""
        return next((line for line in self.log().splitlines() if all(word in line for word in words)), None)

    def expect_log(self, *words: str) -> str:
        """The first line of the log with all these words, as soon as there is one."""
        return until(lambda: self.find_log(*words), f"a log line with {words}")

    @property
    def is_running(self) -> bool:
        """It has not ended."""
        return self._process.poll() is None


@contextmanager
def serving(folder: Path, limits: str = "", mqtt: str = "", more: str = "") -> Iterator[Served]:
    """A broker process with these lines in its configuration, beside a pair of clients that must notice nothing."""
    config, log = folder / "tieline.toml", folder / "log"
    config.write_text(
        f'data = "{folder}"\n[limits]\n{limits}\n[mqtt]\nsys_interval_s = 0\n{mqtt}\n'
        f'[[listener]]\nurl = "tcp://127.0.0.1:0"\n{more}'
    )
    with log.open("w") as errors:
        command = [sys.executable, "-m", "tieline", "serve", "--config", str(config)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert " ready: " in ready, log.read_text()
        words = ready.replace(",", " ").split()
        served = Served(process, next(word for word in words if word.startswith("tcp://")), log)
        served.peer_url = next((word for word in words if word.startswith("peer://")), "")
        pair = Pair(served.url)
        try:
            yield served
            pair.stop()
        finally:
            pair.abandon()
            served.hang_up()
        assert served.is_running
        assert "internal error" not in served.log()
    finally:
        stop(process)
