"""What the ring paper compares itself with: multicast to everybody, by two readings of it.

*Partitioned* hands each finger its arc, wanted or not, so everybody gets one copy.  *Duplicating* sends to all fingers,
and whoever gets a publication for the first time does the same: as many copies as there are entries in all tables.
"""

from __future__ import annotations

from typing import ClassVar

from tieline.overlay.ring.dispatch.protocol import Onward, passed_on
from tieline.overlay.ring.messages import Data
from tieline.overlay.ring.table import Finger, Table


class Partitioned:
    """Sends a publication to every broker of the ring exactly once, whoever wants it."""

    name: ClassVar[str] = "partitioned"
    keeps_promises: ClassVar[bool] = True

    def watched_end(self, table: Table, finger: Finger) -> int:
        return finger.peer.identifier + 1

    def onward(self, table: Table, data: Data, came_from: int) -> Onward:
        parts = table.parts(data.start, data.end)
        copies = [(part.finger.peer, passed_on(data, start=part.start, end=part.end)) for part in parts]
        return Onward(copies, list(table.gaps(data.start, data.end)))


class Duplicating:
    """Every entry of every table, but for whom it came from and who published."""

    name: ClassVar[str] = "duplicating"
    keeps_promises: ClassVar[bool] = False

    def watched_end(self, table: Table, finger: Finger) -> int:
        return finger.peer.identifier + 1

    def onward(self, table: Table, data: Data, came_from: int) -> Onward:
        copy = passed_on(data)
        known = {came_from, data.origin}
        return Onward([(each.peer, copy) for each in table if each.peer.identifier not in known], [])
