"""By the links that a plan has chosen for each topic; by the shortest path where it has none, or one that is dead."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import ERRANDS, Data
from tieline.overlay.membership import Membership
from tieline.overlay.strategies.path import Path
from tieline.overlay.strategies.plan_tables import PlanTables


class Plan:
    """One copy for each destination, by the link that the frame's epoch of the plan has for it."""

    name: ClassVar[str] = "plan"
    is_single: ClassVar[bool] = True
    has_stages: ClassVar[bool] = False

    def __init__(self, membership: Membership, counts: Counts, tables: PlanTables | None = None) -> None:
        self._membership = membership
        self._counts = counts
        self._shortest = Path(membership, counts)
        self.tables = PlanTables() if tables is None else tables

    def next_brokers(self, destination: int, path: bytes, data: Data | None = None) -> Sequence[int]:
        if data is None:
            return self._shortest.next_brokers(destination, path)
        neighbour = self._planned(data, destination, path)
        return (neighbour,) if neighbour else self._shortest.next_brokers(destination, path, data)

    def _planned(self, data: Data, destination: int, path: bytes) -> int:
        """The neighbour that the plan says, if it can be had; otherwise 0, and it is counted why."""
        counts, planned = self._counts, data.planned
        if planned is None:
            if self.tables.epoch and data.origin == self._membership.broker and data.lane != ERRANDS:
                counts.plan_uncovered += data.count
            return 0
        table = self.tables.tables.get(planned.epoch)
        if table is None:
            counts.plan_unknown += data.count
            return 0
        neighbour = table.neighbour(data.origin, planned.topic, destination)
        if not neighbour:
            counts.plan_uncovered += data.count
        elif neighbour not in self._membership.neighbours:
            counts.plan_links_down += data.count
        elif neighbour in path:
            counts.plan_loops += data.count
        else:
            counts.planned += data.count
            return neighbour
        return 0

    def stage_of(self, data: Data, destinations: Collection[int]) -> int:
        return 0

    def admits(self, data: Data) -> bool:
        return True
