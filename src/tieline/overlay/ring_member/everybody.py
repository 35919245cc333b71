"""All other brokers of a ring as one receiver on the routes of the core: what is published here is offered to it.

Nobody knows who wants a message, so it is subscribed to everything, and the ring decides whether a message leaves.
What a turn brings is gathered by lanes: with QoS 0 it leaves together, and with QoS 1 and 2 it is owed together, in the
batch of the store that the publishers' acknowledgements wait for.  What nobody else wants, as far as this broker knows,
is not owed to anybody.

Topics that begin with ``$`` stay where they are published.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from zlib import crc32

from tieline.core.account import Drop
from tieline.core.broker import Broker
from tieline.core.holdings import Kind
from tieline.core.message import OVERHEAD, Bundle, Item, Message, Queued
from tieline.core.receiver import ActiveSubscription, Grant
from tieline.overlay.frames.frame import is_assured, lane_of
from tieline.overlay.frames.parcel import Writing, write_run
from tieline.overlay.receivers.destination import Unqueued
from tieline.overlay.ring.events import Event
from tieline.overlay.ring.node import RingNode
from tieline.overlay.ring.promises import size_of
from tieline.overlay.ring.settings import RingSettings
from tieline.overlay.ring_member.declared import NOWHERE, Declared
from tieline.wire.packets import Subscription

#: What nobody's client is called.
NAME: Final = "the ring"
_ALL: Final = "#"


def _nothing(_now: float) -> None:
    """Publishers are told by the journal: what is owed is in the batch that their acknowledgements wait for."""


class Everybody(Unqueued):
    """The other brokers of a ring; a :class:`~tieline.core.receiver.Receiver`."""

    is_broker = True

    def __init__(self, core: Broker, declared: Declared, settings: RingSettings, most_bytes: int) -> None:
        """``most_bytes`` are those of a message that all brokers of the ring take."""
        self._most_bytes = most_bytes
        self._core = core
        self._declared = declared
        self._settings = settings
        #: The ring, once this broker knows where it is reached itself.
        self.node: RingNode | None = None
        self.is_awaited = False
        self.is_over = False
        #: So much is owed that nothing more should be accepted.
        self.is_full = False
        #: By lane, what has been published in this turn.
        self._gathered: dict[int, list[Event]] = {}
        #: Messages of which nobody else wanted any, and those that left.
        self.kept_here = 0
        self.sent = 0
        #: Bytes that are owed, as the account of what is kept has them.
        self.accounted = 0
        options = Subscription(filter=_ALL, qos=2, retain_as_published=True)
        core.routes.subscribe(self, None, _ALL, ActiveSubscription(options, 0))

    def __repr__(self) -> str:
        return f"<Everybody {'full' if self.is_full else 'with room'}>"

    @property
    def client_id(self) -> str:
        return NAME

    @property
    def user(self) -> str | None:
        """Nobody: the other brokers ask who of their clients may read what."""
        return None

    @property
    def is_present(self) -> bool:
        """Whether anybody is known."""
        return self.node is not None and len(self.node.table) > 0

    def has_room(self, item: Item, copies: int = 0) -> bool:
        """Whether more may be owed."""
        return not self.lacks_room(item)

    def lacks_room(self, item: Item) -> bool:
        """Whether too much is owed already; what comes from another broker is not owed here."""
        return self.is_full and not item.origin.broker

    def turn_away(self, item: Item, why: Drop, now: float) -> None:
        """Name a message that others do not get."""
        self._core.account.drop(now, why, NAME, item.topic, item.messages, level=item.level, since=item.at)

    def offer(self, item: Queued, grant: Grant, now: float) -> None:
        """Take what a client of this broker has published."""
        origin = item.origin
        if origin.broker:
            return
        if isinstance(item, Message) and item.size > self._most_bytes + OVERHEAD:
            # the settings of this broker have grown since the ring agreed on less
            self.turn_away(item, Drop.TOO_LARGE, now)
            return
        if item.qos and not self._core.journal.is_volatile:
            self._core.journal.expected += 1  # its acknowledgement waits for what is owed
        lane = lane_of(item.level, item.qos > 0, crc32(origin.client.encode()))
        gathered = self._gathered.setdefault(lane, [])
        for part in item.bursts() if isinstance(item, Bundle) else (item,):
            gathered += self._events(part, now)

    def _events(self, item: Item, now: float) -> Iterator[Event]:
        topic = item.topic.decode()
        places = self._declared.places(item)
        if isinstance(item, Message):
            parcel = Writing(item)
            parcel.add(item, now)
            yield Event(topic, parcel.done(), *(NOWHERE if places is None else places[0]))
        elif places is None:
            yield Event(topic, write_run(item))
        else:
            for number, place in enumerate(places):
                yield Event(topic, write_run(item.part(number, number + 1)), *place)

    def flush(self, now: float) -> None:
        """Nothing more comes in this turn: what was gathered leaves, or is owed."""
        if not self._gathered or self.node is None:
            return
        gathered, self._gathered = self._gathered, {}
        for lane, events in gathered.items():
            wanted = [event for event in events if self.node.concerns(event)]
            self.kept_here += len(events) - len(wanted)
            self.sent += len(wanted)
            for batch in self._batches(wanted):
                if is_assured(lane):
                    # what was accepted is owed, also beyond the bound: whether there is room was asked before
                    self.node.publish_assured(batch, lane, _nothing, now)
                else:
                    self.node.publish(batch, lane, now)

    def _batches(self, events: list[Event]) -> Iterator[list[Event]]:
        """Events in runs that are no longer than one batch may be, but for one that is so alone."""
        settings, batch, size = self._settings, list[Event](), 0
        for event in events:
            more = size_of((event,))
            if batch and (len(batch) == settings.batch_events or size + more > settings.batch_bytes):
                yield batch
                batch, size = [], 0
            batch.append(event)
            size += more
        if batch:
            yield batch

    def reckon(self, most: int, now: float) -> None:
        """See how much is owed; publishers that waited go on when there is room again."""
        owed = 0 if self.node is None else self.node.promises.owed_bytes
        if owed != self.accounted:
            self._core.holdings.broker.take(Kind.OWED, owed - self.accounted)
            self.accounted = owed
        # once it is full, half of it has to be settled first
        self.is_full = owed >= (most // 2 if self.is_full else most)
        if self.is_awaited and not self.is_full:
            self._core.holds.release_publishers(self, now)
