"""What the conditions on a filter mean at a broker, as a number: two brokers that have the same ask the same.

Only what messages on those topics are read by counts: the event types whose topics overlap the filter, and how much of
others is searched.  So brokers that have declared something else on other topics still ask for each other.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

import msgspec

from tieline.conf.schema import Settings
from tieline.match.cover.filters import overlap

#: Filters whose fingerprints are remembered: thousands of conditions are often on one filter.
_REMEMBERED: Final = 1_024


class Meanings:
    """Fingerprints of the event types of one broker, by filter."""

    def __init__(self, settings: Settings) -> None:
        self._types = sorted(settings.event.values(), key=lambda event: event.topic)
        self._untyped = settings.content.untyped_bytes
        self._known: dict[str, int] = {}

    def fingerprint(self, filter_: str) -> int:
        """What conditions on a filter are read by."""
        found = self._known.get(filter_)
        if found is None:
            if len(self._known) == _REMEMBERED:
                self._known.clear()
            types = [event for event in self._types if overlap(event.topic, filter_)]
            found = self._known[filter_] = crc32(msgspec.json.encode((self._untyped, types)))
        return found
