"""What waits for a broker that is dead, and that members elsewhere may have: picked anew.

Theory of operation
-------------------
A broker is given up for dead when it has been out of reach for a while.  Nobody knows what it had taken by then.  So a
message with QoS 2 waits for it, however long that is; one with QoS 1 may come twice rather than late, and is given to
whoever is picked for its groups now.  Its place in the stream to the dead broker stays, without those groups: numbers
have no gaps.  Should the broker come back, having taken the message before, a member there may have it as well.

What nobody else can have goes on waiting, and is looked at again as long as the broker is dead: groups get members.
Looking is bounded, a portion in each turn, and goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from tieline.core.broker import Broker
from tieline.core.message import Message, Origin
from tieline.core.receiver import Grant, Share
from tieline.core.timers import Timer
from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.frames.frame import ASSURED_LANES
from tieline.overlay.frames.naming import ELSEWHERE, NAMED, Address, put_addresses, put_several, read_addresses
from tieline.overlay.frames.parcel import Run, Writing, read_parcel
from tieline.overlay.node import Node
from tieline.overlay.receivers.destination import Destination

#: Parcels that are looked at in one turn, and messages that are given to others.
_LOOKED_AT, _GIVEN = 2_048, 256


class Orphans:
    """Finds brokers that are dead, and others for what they were picked for."""

    def __init__(
        self, core: Broker, node: Node, destinations: Mapping[int, Destination], flush: Callable[[float], None]
    ) -> None:
        self._core = core
        self._node = node
        self._destinations = destinations
        #: Lets what was gathered leave: what is owed instead is noted before what is not owed any more.
        self._flush = flush
        self._dead_s = core.settings.overlay.dead_s
        self._view = -1
        #: Since when brokers are out of reach.
        self._since: dict[int, float] = {}
        self._timer: Timer | None = None
        #: The streams that are being looked through, and how far the first of them has been.
        self._left: list[tuple[int, int]] = []
        self._reached = 0

    def look(self, now: float) -> None:
        """See who is out of reach; called in each turn, and nothing is done while nothing has changed."""
        if self._node.membership.view == self._view:
            return
        self._view = self._node.membership.view
        reachable = self._node.membership.reachable
        for number in self._destinations:
            if number in reachable:
                self._since.pop(number, None)
            else:
                self._since.setdefault(number, now)
        self._wake(now)

    def _wake(self, now: float) -> None:
        if self._since and self._timer is None:
            dues = [since + self._dead_s for since in self._since.values()]
            # those that are dead already are looked at as often as it takes to be dead
            due = min([due for due in dues if due > now], default=now + max(self._dead_s, 1.0))
            self._timer = self._core.timers.at(due, self._begin)

    def _begin(self, now: float) -> None:
        self._timer = None
        if not self._left:
            dead = [number for number, since in self._since.items() if now - since >= self._dead_s]
            outgoing = self._node.carrier.sender.outgoing
            self._left = [(number, lane) for number in dead for lane in ASSURED_LANES if (number, lane) in outgoing]
            self._reached = 0
            if self._left:
                self._core.timers.soon(self._go_on)
        self._wake(now)

    def _go_on(self, now: float) -> None:
        """Look through a portion of what is owed to the dead."""
        looked_at = given = 0
        while self._left and looked_at < _LOOKED_AT and given < _GIVEN:
            number, lane = self._left[0]
            if number not in self._since:
                del self._left[0]  # it is back
                continue
            owing = self._node.carrier.sender.outgoing[number, lane].owing
            self._reached = max(self._reached, owing.settled)
            while self._reached < owing.last and looked_at < _LOOKED_AT and given < _GIVEN:
                self._reached += 1
                looked_at += 1
                given += self._reassign(number, lane, self._reached, owing.unsettled[self._reached], now)
            if self._reached >= owing.last:
                del self._left[0]
                self._reached = 0
        self._core.work.did(looked_at)
        if self._left:
            self._core.timers.soon(self._go_on)

    # -- one parcel

    def _reassign(self, number: int, lane: int, place: int, parcel: bytes, now: float) -> int:
        """Give to others what a parcel has for groups, as far as it has QoS 1; how many messages were."""
        if parcel[:2] != _NAMED_QOS_1:
            return 0
        return self.reassign(number, lane, place, parcel, now)

    def reassign(self, number: int, lane: int, place: int, parcel: bytes, now: float) -> int:
        """The same, whatever its QoS: of a broker that does not come back."""
        if parcel[:1] != _NAMED_QOS_1[:1]:
            return 0
        try:
            addresses, inner = read_addresses(parcel)
            messages = read_parcel(inner, partial(Origin, owner=self._core.holdings.owner(None)), now)
        except BadFrame:
            return 0
        address = addresses.get(self._destinations[number].name) or addresses.get("")
        if address is None or isinstance(messages, Run):
            return 0
        left: dict[tuple[Share, ...], list[Message]] = {}
        given = 0
        for message in messages:
            shares = []
            for share in address.shares:
                heir = self._heir(message, share)
                if heir is None:
                    shares.append(share)
                else:
                    given += 1
                    self._core.delivery.hand_on(message, heir, now)
            if shares:
                left.setdefault(tuple(shares), []).append(message)
        if given:
            self._flush(now)
            rest = [inner] if address.is_plain else []
            rest += [
                _written(address._replace(is_plain=False, shares=shares), each, parcel[1], now)
                for shares, each in left.items()
            ]
            replaced = rest[0] if len(rest) == 1 else put_several(rest) if rest else ELSEWHERE
            self._node.carrier.sender.replace(number, lane, place, replaced)
            self._node.counts.reassigned += given
        return given

    def _heir(self, message: Message, share: Share) -> Grant | None:
        """Who of a group can have a message instead; nobody who is out of reach, like the one who has not got it."""
        for _, heir in self._core.content.heirs(message, share):
            if heir is not None and not (heir.receiver.is_broker and not heir.receiver.is_present):
                return heir
        return None


_NAMED_QOS_1: Final = bytes((NAMED, 1))


def _written(address: Address, messages: list[Message], qos: int, now: float) -> bytes:
    growing = Writing(messages[0])
    for message in messages:
        growing.add(message, now)
    return put_addresses({"": address}, qos) + growing.done()
