"""What clients publish here and other brokers want: gathered into parcels, sent, and counted while it is owed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from zlib import crc32

from tieline.core.account import Drop
from tieline.core.broker import Broker
from tieline.core.holdings import Kind
from tieline.core.message import Bundle, Item, Message, Origin, Queued
from tieline.core.receiver import Share
from tieline.overlay.carrier.ends import LONGEST, Limits
from tieline.overlay.carrier.sender import Sender
from tieline.overlay.frames.frame import Planned, lane_of
from tieline.overlay.frames.naming import MOST_MESSAGES
from tieline.overlay.frames.parcel import Writing, marks_of, write_run
from tieline.overlay.membership import Membership
from tieline.overlay.receivers.addressing import Addressing
from tieline.overlay.receivers.destination import Destination
from tieline.overlay.receivers.turns import Turns
from tieline.overlay.retained.convergence import Convergence
from tieline.overlay.strategies.plan_tables import PlanTables

#: Bytes that are owed to a broker that keeps up, as with the queue of a client.
_KEEPS_UP: Final = 65_536


class Outgoing:
    """Each item goes to the sender once, with all of its destinations; what leaves together is one parcel or more."""

    def __init__(  # what it gathers for, and what it goes by
        self,
        core: Broker,
        sender: Sender,
        membership: Membership,
        destinations: Mapping[int, Destination],
        limits: Limits,
        plans: PlanTables,
        turns: Turns,
    ) -> None:
        self._core = core
        self._turns = turns
        self._plans = plans
        #: By which plan the parcel that still grows travels.
        self._planned: Planned | None = None
        self._membership = membership
        self._sender = sender
        self._destinations = destinations
        self._limits = limits
        #: The item whose destinations are gathered, those, and the groups that some of them were picked for.
        self._item: Queued | None = None
        self._wanted: list[int] = []
        self.addressing = Addressing()
        #: What is retained everywhere, once that is known; and of the item, if it is, the clock, and those who get it.
        self.convergence: Convergence | None = None
        self._clock = 0
        self._marks = b""
        #: The publisher of the last item, and the lanes into which its messages go.
        self._publisher: Origin | None = None
        self._spread = 0
        #: Parcels for the same destinations in the same lane, which leave together; the last one may still grow.
        self._lane = 0
        self._to: list[int] = []
        self._parcels: list[bytes] = []
        self._growing: Writing | None = None
        #: What stands in front of that one, and how many more messages it may hold if that says something.
        self._front = b""
        self._more = 0
        self._items: list[Queued] = []
        #: Bytes that are owed, as the account of what is kept has them.
        self.accounted = 0
        #: Brokers to which more is owed since the last turn.
        self._charged: set[int] = set()

    def collect(self, item: Queued, number: int, now: float, share: Share | None = None) -> None:
        """One more broker wants an item, or was picked to give it to one member of a group."""
        if item.qos and not self._core.journal.is_volatile:
            self._core.journal.expected += 1  # its acknowledgement waits for what is owed
        if item is not self._item:
            self._close_item(now)
            self._item, self._wanted = item, []
            self._clock, self._marks = 0, b""
            if self.convergence is not None and isinstance(item, Message) and item.retain and not item.origin.broker:
                self._clock = self.convergence.stamp(item)
        if share is None:
            self._wanted.append(number)
        elif item.origin.broker and not item.origin.is_entering:
            is_asked = self._core.from_brokers.named.is_asked(share)
            self.addressing.add(number, share, is_handed_on=True, is_asked=is_asked)
        else:
            self.addressing.add(number, share)

    def is_reachable(self, number: int) -> bool:
        """Whether a way leads to a broker now."""
        return number in self._membership.reachable

    def turn_away(self, name: str, item: Item, why: Drop, now: float) -> None:
        """Name what a broker should have got and does not get."""
        self._core.account.drop(now, why, name, item.topic, item.messages, level=item.level, since=item.at)

    def _close_item(self, now: float) -> None:
        item = self._item
        if item is None:
            return
        self._item = None
        self._wanted = self._turns.choose(self._wanted, item.origin.publisher)
        if self._clock and self.convergence is not None:
            assert not isinstance(item, Bundle)
            self.convergence.sent(item.topic, self._clock, self._wanted)
            self._marks = marks_of([self._destinations[number].name for number in self._wanted])
        if not self.addressing:
            self._add(item, self._wanted, b"", now)
            return
        for to, front in self.addressing.take(self._wanted, item.qos, self._membership.names):
            self._add(item, to, front, now)

    def _add(self, item: Queued, to: list[int], front: bytes, now: float) -> None:
        """Put an item behind others for the same destinations; what stands in front says who it is for there."""
        if item.origin is not self._publisher:
            self._publisher, self._spread = item.origin, crc32(item.origin.client.encode())
        lane = lane_of(item.level, item.qos > 0, self._spread)
        if lane != self._lane or to != self._to:
            self._send(now)
            self._lane, self._to = lane, to
        if not isinstance(item, Message):
            self._close_parcel()
            # packets of a bundle may go different ways
            several = isinstance(item, Bundle) and self._plans.epoch
            runs = item.bursts() if several and isinstance(item, Bundle) else (item,)
            self._parcels += [front + write_run(run) for run in runs]
        else:
            if item.size > LONGEST:
                self._send(now)  # the others shall not be refused with it
            growing, planned = self._growing, self._plans.find(item.topic, item.origin.client)
            if planned != self._planned:
                self._close_parcel()
                growing, self._planned = None, planned
            if growing is None or front != self._front or not growing.takes(item) or (front and not self._more):
                self._close_parcel()
                growing = self._growing = Writing(item)
                self._front, self._more = front, MOST_MESSAGES
            self._more -= 1
            growing.add(item, now, self._clock, self._marks)
        self._items.append(item)

    def _close_parcel(self) -> None:
        growing = self._growing
        if growing is not None:
            self._growing = None
            self._parcels.append(self._front + growing.done())

    def _send(self, now: float) -> None:
        self._close_parcel()
        if not self._parcels:
            return
        parcels, items = tuple(self._parcels), self._items
        self._parcels, self._items = [], []
        self._charged.update(self._to)
        expires = any(isinstance(item, Message) and item.expires is not None for item in items)
        if not self._sender.publish(self._lane, parcels, frozenset(self._to), now, expires=expires):
            for item in items:
                why, names = Drop.QUEUE_FULL, [self._destinations[number].client_id for number in self._to]
                topic = getattr(item, "topic", b"")
                for name in names:
                    self._core.account.drop(now, why, name, topic, item.messages, level=item.level, since=item.at)
        sender = self._sender
        for number in self._to:
            if sender.owed_bytes.get(number, 0) >= self._limits.owed_bytes:
                self._destinations[number].is_full = True  # at once, and not at the end of a long turn

    def flush(self, now: float) -> None:
        """Nothing more comes for what was gathered: it leaves."""
        self._close_item(now)
        self._send(now)

    def reckon(self, now: float) -> None:
        """See how much is owed to each broker; publishers that waited for one which has room again go on."""
        charged, self._charged = self._charged, set()
        self._account()
        for number, destination in self._destinations.items():
            if destination.is_full or number in charged:
                destination.is_full = self._owes_much(destination)
            if destination.is_awaited and not destination.is_full:
                self._core.holds.release_publishers(destination, now)

    def _owes_much(self, destination: Destination) -> bool:
        """Whether so much is owed to a broker that nothing more should be accepted for it, reachable or not.

        Once that is so, half of it has to be settled first.  Where all memory is taken, whoever does not keep up is
        full, as with the queues of clients.
        """
        sender, number = self._sender, destination.number
        if sender.owes_much(number, 0.5 if destination.is_full else 1.0):
            return True
        return sender.owed_bytes.get(number, 0) > _KEEPS_UP and self._core.holdings.refusal(0) is not None

    def _account(self) -> None:
        owed = sum(self._sender.owed_bytes.values())
        if owed != self.accounted:
            self._core.holdings.broker.take(Kind.OWED, owed - self.accounted)
            self.accounted = owed
