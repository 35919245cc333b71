"""A copy over every link: the baseline that needs no view of the graph and pays for it in bytes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar, Final

from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Data
from tieline.overlay.membership import Membership

#: Frames that are remembered; one that was forgotten is carried twice, and suppressed by its destinations.
_MEMORY: Final = 4_096


class Flood:
    """Every neighbour that is not in the path gets everything, and carries on what it has not seen."""

    name: ClassVar[str] = "flood"
    is_single: ClassVar[bool] = False
    has_stages: ClassVar[bool] = False

    def __init__(self, membership: Membership, counts: Counts) -> None:
        self._membership = membership
        self._seen: dict[tuple[int, ...], None] = {}

    def next_brokers(self, destination: int, path: bytes, data: Data | None = None) -> Sequence[int]:
        return [peer for peer in self._membership.neighbours if peer not in path]

    def stage_of(self, data: Data, destinations: Collection[int]) -> int:
        return 0

    def admits(self, data: Data) -> bool:
        destination = min(data.destinations)
        key = data.origin, data.tag, data.lane, data.attempt, destination, data.destinations[destination]
        if key in self._seen:
            return False
        self._seen[key] = None
        if len(self._seen) > _MEMORY:
            del self._seen[next(iter(self._seen))]
        return True
