"""From finger to finger around the ring, each for the destinations of its arc; fingers are reached by the shortest way.

Theory of operation
-------------------
The origin splits the destinations by the arcs of its fingers, and each finger does the same with those that it is
given.  To its finger a frame rides the links that there are, and says at which broker this stage ends.  A finger that
takes it up begins a path anew, since the way on may lead back over the same links.  That cannot go on for ever: the
next finger stands farther along the ring than the last one and not beyond the destination, by identifiers that follow
from names, whatever views brokers have.  A hop that goes by another strategy takes the stage out of the frame, and from
there on it goes the shortest way.

Within one group of brokers, where the origin knows who wants a message, this has longer ways than the shortest path
and the same promises.  It is what dispatching looks like where an origin does not know.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Data
from tieline.overlay.membership import Membership
from tieline.overlay.ring.identifiers import finger_towards, identifier_of, way
from tieline.overlay.strategies.path import Path


class Ring:
    """One copy for each destination, by the finger whose arc it is in."""

    name: ClassVar[str] = "ring"
    is_single: ClassVar[bool] = True
    has_stages: ClassVar[bool] = True

    def __init__(self, membership: Membership, counts: Counts) -> None:
        self._membership = membership
        self._counts = counts
        self._shortest = Path(membership, counts)
        #: The view by which the ring was closed.
        self._view = -1
        self._here = 0
        #: The identifiers of everybody in reach and of ourselves, ascending, and the brokers they belong to.
        self._identifiers: list[int] = []
        self._brokers: list[int] = []
        self._of_brokers: dict[int, int] = {}

    def next_brokers(self, destination: int, path: bytes, data: Data | None = None) -> Sequence[int]:
        if data is None:
            return self._shortest.next_brokers(destination, path)
        if self._begins(data, path):
            target = self.finger(destination) or destination
        else:
            target = data.stage if data.stage and data.stage not in path else destination
        peers = self._shortest.next_brokers(target, path)
        if peers or target == destination:
            return peers
        self._counts.detours += 1
        return self._shortest.next_brokers(destination, path)

    def stage_of(self, data: Data, destinations: Collection[int]) -> int:
        if not self._begins(data, data.path):
            return 0 if data.stage in data.path else data.stage
        # fingers in one direction share a copy: the first of them stands before the arcs of the others
        fingers = [finger for each in destinations if (finger := self.finger(each))]
        if not fingers:
            return 0
        nearest = min(fingers, key=self._way_to)
        return 0 if {nearest} == set(destinations) else nearest

    def finger(self, destination: int) -> int:
        """Our finger whose arc holds a destination; 0 for one that is not on the ring now."""
        self._close()
        there = self._of_brokers.get(destination)
        if there is None or there == self._here:
            return 0
        return self._brokers[finger_towards(self._identifiers, self._here, there)]

    def admits(self, data: Data) -> bool:
        if data.stage == self._membership.broker:
            data.path = b""
        return True

    def _begins(self, data: Data, path: bytes) -> bool:
        """Whether a stage begins here: this broker has published a message, or it is the finger that it was given."""
        here = self._membership.broker
        return data.stage == here or (not path and not data.stage and data.origin == here)

    def _way_to(self, broker: int) -> int:
        return way(self._here, self._of_brokers[broker])

    def _close(self) -> None:
        membership = self._membership
        if self._view == membership.view:
            return
        self._view = membership.view
        brokers = (membership.broker, *membership.reachable)
        # a name follows its number within one greeting, so a broker without one is not there for long
        named = ((identifier_of(membership.names.get(broker, "")), broker) for broker in brokers)
        placed = sorted(named)
        self._identifiers = [identifier for identifier, _ in placed]
        self._brokers = [broker for _, broker in placed]
        self._of_brokers = {broker: identifier for identifier, broker in placed}
        self._here = self._of_brokers[membership.broker]
