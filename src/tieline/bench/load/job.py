"""What the generator can be asked to do, and what it answers."""

from __future__ import annotations

from typing import Protocol

from tieline.bench.load.endpoint import Endpoint

#: Numbers by name; the names are explained in ``tieline.bench.metrics``.
Metrics = dict[str, float]


class Job(Protocol):
    """One measurement; a frozen dataclass, because it travels to the generator's process."""

    @property
    def patience_s(self) -> float:
        """After so long the measurement has failed."""

    def run(self, at: Endpoint) -> Metrics:
        """Do the work; raises ``Failure`` if the broker does not."""
