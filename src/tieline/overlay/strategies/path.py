"""The shortest path to each destination, by link state."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import inf
from typing import ClassVar

from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Data
from tieline.overlay.membership import Membership


class Path:
    """One copy for each destination, by the neighbour that is nearest to it and not in the path."""

    name: ClassVar[str] = "path"
    is_single: ClassVar[bool] = True
    has_stages: ClassVar[bool] = False

    def __init__(self, membership: Membership, counts: Counts) -> None:
        self._membership = membership

    def next_brokers(self, destination: int, path: bytes, data: Data | None = None) -> Sequence[int]:
        distances = self._membership.distances(destination)
        best, least = 0, inf
        for peer, cost in self._membership.neighbours.items():
            distance = cost + distances.get(peer, inf)
            if distance < least and peer not in path:
                best, least = peer, distance
        return (best,) if best else ()

    def stage_of(self, data: Data, destinations: Collection[int]) -> int:
        return 0

    def admits(self, data: Data) -> bool:
        return True
