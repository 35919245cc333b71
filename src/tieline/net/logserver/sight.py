"""What the user of a reader may see."""

from __future__ import annotations

from typing import Protocol

from tieline.log.record import Occurrence


class Sight(Protocol):
    """Decides on topics and events."""

    @property
    def is_open(self) -> bool:
        """Whether nothing at all is withheld, so that nothing need be asked."""

    def record(self, topic: str) -> bool:
        """Messages of a topic?"""

    def occurrence(self, occurrence: Occurrence) -> bool:
        """An event of the broker?"""
