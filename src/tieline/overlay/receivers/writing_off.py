"""A broker that is gone for good: what is owed to it is given to other members of its groups, or dropped by name.

Theory of operation
-------------------
Nobody can know by itself that a broker never comes back, so an operator says so.  From then on it wants nothing.  What
it was owed is looked through in portions, so that nobody waits for that; what has not been looked at is still owed, and
if the broker comes back meanwhile it gets the rest.  The numbers of what was written off are settled here.  A broker
that comes back all the same asks for them, and is told that there is nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tieline.core.account import Drop
from tieline.core.broker import Broker
from tieline.overlay.frames.frame import ASSURED_LANES, ERRANDS
from tieline.overlay.frames.parcel import contents
from tieline.overlay.node import Node
from tieline.overlay.receivers.destination import Destination
from tieline.overlay.receivers.orphans import Orphans

#: Parcels that are looked at in one turn, and what each counts towards its work.
_PORTION: Final = 512
_WORK_PER_PARCEL: Final = 20


class InReach(Exception):
    """A broker cannot be written off; the text is a sentence without its stop."""


class WritingOff:
    """Forgets brokers when it is told to."""

    def __init__(self, core: Broker, node: Node, orphans: Orphans, destinations: Mapping[int, Destination]) -> None:
        self._core = core
        self._node = node
        self._orphans = orphans
        self._destinations = destinations
        #: The brokers whose streams are looked through.
        self._going: list[int] = []

    def number_of(self, name: str) -> int | None:
        """The broker of a name that may be written off, or None where nobody knows it; raises InReach."""
        node = self._node
        if name == node.name:
            raise InReach(f"{name} is this broker itself")
        number = node.directory.find(name)
        if number is not None and number in node.membership.reachable:
            raise InReach(f"{name} is in reach: `tieline drain` empties it, and when it has ended it may be forgotten")
        return number

    def owed(self, number: int) -> int:
        """How many parcels are owed to a broker."""
        outgoing = self._node.carrier.sender.outgoing.items()
        return sum(len(stream.owing.unsettled) for (to, _lane), stream in outgoing if to == number)

    def begin(self, number: int) -> int:
        """A broker wants nothing more, and what is owed to it is given up; how much it wanted."""
        wanted = self._node.write_off(number)
        if number not in self._going:
            self._going.append(number)
            self._core.timers.soon(self._go_on)
        return wanted

    def _go_on(self, now: float) -> None:
        reachable = self._node.membership.reachable
        self._going = [number for number in self._going if number not in reachable and self._take(number, now)]
        if self._going:
            self._core.timers.soon(self._go_on)

    def _take(self, number: int, now: float) -> bool:
        """Write off a portion of what is owed to a broker; whether there is more."""
        sender, left = self._node.carrier.sender, _PORTION
        for lane in (*ASSURED_LANES, ERRANDS):
            stream = sender.outgoing.get((number, lane))
            if stream is None or left <= 0:
                continue
            first, last = stream.owing.settled + 1, min(stream.owing.last, stream.owing.settled + left)
            if lane != ERRANDS and number in self._destinations:
                for place in range(first, last + 1):
                    self._orphans.reassign(number, lane, place, stream.owing.unsettled[place], now)
            gone = sender.write_off(number, lane, last + 1 - first)
            left -= len(gone)
            if lane != ERRANDS:
                self._drop(number, lane >> 4, gone, now)
        self._core.work.did((_PORTION - left) * _WORK_PER_PARCEL)
        return left <= 0

    def _drop(self, number: int, level: int, parcels: list[bytes], now: float) -> None:
        account, name = self._core.account, f"broker {self._node.directory.names[number]}"
        for parcel in parcels:
            topic, messages = contents(parcel)
            if messages:
                account.drop(now, Drop.FORGOTTEN, name, topic, messages, level=level)
