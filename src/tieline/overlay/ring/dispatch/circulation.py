"""The paper's: on to the table entries that match and are not in the list of those who have matched, and in it now.

"The process finishes when the source node is reached."  Read to the letter, with matched entries only, it never gets
beyond somebody whose table holds nobody who wants the event: whoever stands behind is not found.  With the successor
as well, wanted or not, it goes around the whole ring.  Branches do not know of each other's lists, so brokers remember
what they have seen.
"""

from __future__ import annotations

from typing import ClassVar

from tieline.overlay.ring.dispatch.protocol import Onward, passed_on
from tieline.overlay.ring.messages import Data, Peer
from tieline.overlay.ring.table import Finger, Table


class LiteralCirculation:
    """Matched table entries only."""

    name: ClassVar[str] = "circulation-literal"
    keeps_promises: ClassVar[bool] = False
    _has_successor: ClassVar[bool] = False

    def watched_end(self, table: Table, finger: Finger) -> int:
        return finger.peer.identifier + 1

    def onward(self, table: Table, data: Data, came_from: int) -> Onward:
        known = {*data.matched, data.origin}
        targets: list[Peer] = [
            each.peer
            for each in table
            if each.peer.identifier not in known and any(each.told.wants(sent.event) for sent in data.events)
        ]
        matched = (*data.matched, *(each.identifier for each in targets))
        successor = table.successor
        if self._has_successor and successor is not None and successor.identifier not in {*known, *matched}:
            targets.append(successor)
        copy = passed_on(data, matched=matched)
        return Onward([(each, copy) for each in targets], [])


class Circulation(LiteralCirculation):
    """And the successor, so that everybody is found."""

    name: ClassVar[str] = "circulation"
    _has_successor: ClassVar[bool] = True
