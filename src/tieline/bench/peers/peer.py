"""What the benchmark needs to know about a broker before it runs: its certificate, its place, its command."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

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
class Place:
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
    def command(self, place: Place) -> list[str]:
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
