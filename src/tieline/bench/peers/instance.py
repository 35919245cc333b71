"""One running broker: started on free loopback ports, waited for, and ended by its process id."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tieline.bench.load.job import Endpoint, Failure
from tieline.bench.machine import disk_of
from tieline.bench.peers.peer import Certificate, Peer, Place, free_ports

_HOST = "127.0.0.1"
_READY_S = 20.0
_STOP_S = 5.0
_LOG_TAIL = 300


class Instance:
    """A broker process and its temporary directory."""

    def __init__(self, peer: Peer, certificate: Certificate | None, *, disk: Path | None = None) -> None:
        """``disk`` is where the directory is made if the broker is to keep what it acknowledges."""
        self.peer = peer
        self._certificate = certificate if peer.has_tls else None
        # a store brings a socket, whose path may have 107 bytes: most of them belong to whoever chose the disk
        prefix = f"tieline-bench-{peer.name}-" if disk is None else "tb-"
        self._directory = Path(tempfile.mkdtemp(prefix=prefix, dir=disk)).resolve()
        self._log = self._directory / "output.log"
        self._process: subprocess.Popen[bytes] | None = None
        port, tls_port = free_ports(2)
        store = None
        if disk is not None:
            store = self._directory / "d"
            store.mkdir()
        self._place = Place(
            directory=self._directory, port=port, tls_port=tls_port, certificate=self._certificate, store=store
        )
        #: Seconds from starting the process to its first accepted connection.
        self.startup_s = 0.0

    def start(self) -> Endpoint:
        """Run the broker and wait until it accepts connections."""
        began = time.perf_counter()
        command = self.peer.command(self._place)
        with self._log.open("wb") as log:
            # A session of its own: Ctrl-C reaches the benchmark, which then ends its brokers in order.
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        ports = [self._place.port] + ([self._place.tls_port] if self._certificate else [])
        for port in ports:
            self._wait_for(port, began + _READY_S)
        self.startup_s = time.perf_counter() - began
        return Endpoint(
            host=_HOST,
            port=self._place.port,
            pid=self._process.pid,
            tls_port=self._place.tls_port if self._certificate else None,
            ca_file=str(self._certificate.certificate) if self._certificate else None,
            disk=None if self._place.store is None else disk_of(self._place.store),
        )

    def obituary(self) -> str | None:
        """What the process left behind if it has ended by itself, else nothing."""
        code = self._process.poll() if self._process is not None else None
        if code is None:
            return None
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"the broker died ({how}) {self._tail()}".rstrip()

    def stop(self) -> None:
        """End the process, gently first, and remove its directory."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _wait_for(self, port: int, deadline: float) -> None:
        while True:
            with contextlib.suppress(OSError), socket.create_connection((_HOST, port), timeout=1.0):
                return
            obituary = self.obituary()
            if obituary or time.perf_counter() > deadline:
                raise Failure(obituary or f"not ready within {_READY_S:.0f} s {self._tail()}".rstrip())
            time.sleep(0.02)

    def _tail(self) -> str:
        try:
            text = self._log.read_text(errors="replace").strip()
        except OSError:
            return ""
        return f"[{text[-_LOG_TAIL:]}]" if text else ""
