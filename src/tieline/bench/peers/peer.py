"""What the benchmark needs to know about a broker before it runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tieline.bench.certificate import Certificate

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
