"""A broker before it runs, and while it runs: its command, its place, and its process on free loopback ports."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tieline.bench.load.job import Endpoint, Failure
from tieline.bench.machine import disk_of
from tieline.bench.process import Process

_OPENSSL_S = 20


@dataclass(frozen=True, slots=True)
class Certificate:
    """PEM files of a self-signed P-256 certificate for 127.0.0.1."""

    certificate: Path
    key: Path


def make_certificate(directory: Path) -> Certificate | None:
    """A fresh certificate, or nothing on a machine without the ``openssl`` command."""
    openssl = shutil.which("openssl")
    if openssl is None:
        return None
    made = Certificate(certificate=directory / "cert.pem", key=directory / "key.pem")
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(made.key), "-out", str(made.certificate)]
    done = subprocess.run(command, capture_output=True, timeout=_OPENSSL_S, check=False)
    return made if done.returncode == 0 else None


_VERSION_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceResources:
    """What one instance is given: a directory of its own, free ports, perhaps a certificate."""

    directory: Path
    port: int
    tls_port: int
    certificate: Certificate | None
    #: What is acknowledged is to be kept, in this directory; None when nothing is.
    store: Path | None = None


class Peer(ABC):
    """One broker: present or not, its version, its command line."""

    name: ClassVar[str]
    #: The command that installs it, shown when it is absent.
    install: ClassVar[str]
    max_qos: ClassVar[int] = 2
    has_v5: ClassVar[bool] = True
    #: Whether ``command`` sets up a TLS listener when there is a certificate.
    has_tls: ClassVar[bool] = False
    #: Whether ``command`` sets up a store where the place has room for one.
    has_store: ClassVar[bool] = False

    @abstractmethod
    def version(self) -> str | None:
        """The installed version, nothing when the broker is absent."""

    @abstractmethod
    def command(self, place: InstanceResources) -> list[str]:
        """Write whatever configuration it needs into the directory and say how to start it."""


def peers_directory() -> Path:
    """Where brokers live that no system package brings: their own environments, never this one."""
    return Path(os.environ.get("TIELINE_PEERS", ".peers")).resolve()


def executable(name: str) -> str | None:
    """A program on PATH or where Debian keeps servers."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


def first_line(command: list[str]) -> str | None:
    """The first line a command prints, nothing when it cannot be run.

    ``mosquitto -h`` prints its version and exits with 3, so the exit code says nothing.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_VERSION_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout or done.stderr).splitlines()
    return lines[0].strip() if lines else None


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, all different."""
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in socks:
            sock.bind(("127.0.0.1", 0))
        return [int(sock.getsockname()[1]) for sock in socks]


_HOST = "127.0.0.1"
_READY_S = 20.0
_STOP_S = 5.0


class Instance:
    """A broker process and its temporary directory; ``with`` starts it, says where it listens, and ends it."""

    def __init__(self, peer: Peer, certificate: Certificate | None = None, *, disk: Path | None = None) -> None:
        """``disk`` is where the directory is made if the broker is to keep what it acknowledges."""
        self.peer = peer
        self._certificate = certificate if peer.has_tls else None
        # a store brings a socket, whose path may have 107 bytes: most of them belong to whoever chose the disk
        prefix = f"tieline-bench-{peer.name}-" if disk is None else "tb-"
        self._directory = Path(tempfile.mkdtemp(prefix=prefix, dir=disk)).resolve()
        self._process: Process | None = None
        port, tls_port = free_ports(2)
        store = None
        if disk is not None:
            store = self._directory / "d"
            store.mkdir(mode=0o700)  # a broker refuses a store that others can read
        self._place = InstanceResources(
            directory=self._directory, port=port, tls_port=tls_port, certificate=self._certificate, store=store
        )
        #: Seconds from starting the process to its first accepted connection.
        self.startup_s = 0.0

    @property
    def directory(self) -> Path:
        """Where it keeps what is its own."""
        return self._place.store or self._directory

    def __enter__(self) -> Endpoint:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Endpoint:
        """Run the broker and wait until it accepts connections."""
        began = time.perf_counter()
        self._process = Process("broker", self.peer.command(self._place), self._directory / "output.log")
        self._process.start()
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
        return self._process.obituary() if self._process is not None else None

    def kill(self) -> None:
        """End the process as a power cut would; :meth:`start` begins its next life, with what its store kept."""
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        """End the process, gently first, and remove its directory."""
        if self._process is not None:
            self._process.stop(_STOP_S)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _wait_for(self, port: int, deadline: float) -> None:
        assert self._process is not None
        while True:
            with contextlib.suppress(OSError), socket.create_connection((_HOST, port), timeout=1.0):
                return
            obituary = self.obituary()
            if obituary or time.perf_counter() > deadline:
                raise Failure(obituary or f"not ready within {_READY_S:.0f} s {self._process.said()}".rstrip())
            time.sleep(0.02)
