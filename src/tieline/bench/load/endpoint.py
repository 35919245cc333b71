"""Where the broker under test listens, and which process it is."""

from __future__ import annotations

from dataclasses import dataclass

from tieline.bench.disk import Disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One running broker, as the load generator sees it."""

    host: str
    port: int
    pid: int
    #: Port of the TLS listener, absent when the peer offers none here.
    tls_port: int | None = None
    #: Certificate authority to trust on the TLS port.
    ca_file: str | None = None
    #: What the broker keeps its messages on, when it keeps them.
    disk: Disk | None = None
