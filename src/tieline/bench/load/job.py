"""What the generator can be asked to do, of whom, what it answers, and why a measurement comes to nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tieline.bench.machine import Disk


class Failure(Exception):
    """A peer did not do the work; the text says what happened."""


class Refused(Failure):
    """A connection or subscription was turned down."""


class Lost(Failure):
    """Fewer messages arrived than were sent, and nothing more is coming."""


class Stalled(Failure):
    """The broker stopped making progress."""


class Garbled(Failure):
    """What arrived is not what was sent."""


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


#: Numbers by name; the names are explained in ``tieline.bench.metrics``.
Metrics = dict[str, float]


class Job(Protocol):
    """One measurement; a frozen dataclass, because it travels to the generator's process."""

    @property
    def patience_s(self) -> float:
        """After so long the measurement has failed."""

    def run(self, at: Endpoint) -> Metrics:
        """Do the work; raises ``Failure`` if the broker does not."""


def quantile(ordered: Sequence[int], q: float) -> int:
    """The smallest value that at least a share ``q`` of the sample does not exceed."""
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]
