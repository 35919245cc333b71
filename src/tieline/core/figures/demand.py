"""What a broker is asked to carry: who publishes how much under which name, and who wants what.

Theory of operation
-------------------
No message pays for being counted unless somebody has asked for it.  :meth:`Demand.begin` starts a count; from then on
:class:`Demand` is shown every message that the broker accepts.  The first :meth:`Demand.take` ends the count.  What was
found comes in portions, because a broker may have a million subscriptions, and nobody may wait on the loop while they
are listed.  A count that nobody takes is forgotten after a while, so an asker that dies leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from tieline.core.account import Account, Event
from tieline.core.client import Session
from tieline.core.durable.arrivals import Arrivals
from tieline.core.inbound.sessions import Sessions
from tieline.core.message import Burst, Item, Message
from tieline.core.routing.route import ConditionalSubscription
from tieline.core.timers import Timer, Timers
from tieline.wire.fields import encode_varint
from tieline.wire.topics import split_share

#: Counts at a time, and pairs of publisher and topic in one of them; what has no room is counted without its name.
MOST_COUNTS: Final = 4
MOST_FLOWS = 50_000
#: Characters of their names, all together and one: a topic may have 64 KiB, and a plan that names such a one is no use.
MOST_NAMES = 8_388_608
LONGEST_NAME: Final = 4_096
#: Flows and subscriptions in one portion of an answer, and characters of their names.
PORTION = 1_000
PORTION_NAMES = 32_768
#: For how long the last portion can be taken again.
AGAIN_S: Final = 10.0


class DemandError(ValueError):
    """Why a count cannot be begun or taken; the text is a sentence without its full stop."""


class DemandRow(NamedTuple):
    """What one client has published under one name."""

    publisher: str
    topic: str
    #: The highest of its messages.
    level: int
    messages: int
    #: Of the packets in which the messages came, or would go out in 3.1.1.
    bytes: int


class Subscribed(NamedTuple):
    """One subscription of a client, whether it is connected or not."""

    client: str
    filter: str
    #: The name of the group with which it shares the messages; empty for none.
    share: str
    #: It wants only some of the messages, by what they say.
    is_conditional: bool


class Portion(NamedTuple):
    """A part of what was found."""

    #: How long it was counted.
    seconds: float
    #: Messages that there was no room to name, or whose names are too long.
    unnamed: int
    flows: list[DemandRow]
    subscriptions: list[Subscribed]
    is_last: bool


class _Count:
    """One count; when it has ended, what is left of it to be taken."""

    __slots__ = (
        "began", "flows", "given", "left", "names", "patience_s", "portions", "seconds", "timer", "unnamed", "waits",
    )  # fmt: skip

    def __init__(self, began: float, patience_s: float) -> None:
        self.began = began
        #: How long it waits for its asker, each time.
        self.patience_s = patience_s
        #: How long it was; zero while it lasts.
        self.seconds = 0.0
        #: The highest level, messages and bytes; by publisher and topic.
        self.flows: dict[tuple[str, bytes], list[int]] = {}
        #: Characters of their names.
        self.names = 0
        self.unnamed = 0
        #: What is left to be taken, flows first; of that, what was looked at already.
        self.left: Iterator[DemandRow | Subscribed] = iter(())
        self.waits: DemandRow | Subscribed | None = None
        self.timer: Timer | None = None
        #: How many portions were given, and the last one.
        self.portions = 0
        self.given: Portion | None = None

    def add(self, item: Item, size: int) -> None:
        """Count messages of one publisher and topic; without their names once there are too many pairs."""
        key = (item.origin.client, item.topic)
        sums = self.flows.get(key)
        if sums is None:
            length = len(key[0]) + len(key[1])
            if len(self.flows) >= MOST_FLOWS or length > LONGEST_NAME or self.names + length > MOST_NAMES:
                self.unnamed += item.messages
                return
            self.names += length
            sums = self.flows[key] = [0, 0, 0]
        sums[0] = max(sums[0], item.level)
        sums[1] += item.messages
        sums[2] += size

    def end(self, sessions: Iterable[Session], now: float) -> None:
        """Nothing more is added: what was found, and the subscriptions of this moment, can be taken."""
        self.seconds = now - self.began
        flows = (DemandRow(publisher, topic.decode(), *sums) for (publisher, topic), sums in self.flows.items())
        self.left = chain(flows, _subscriptions(list(sessions)))
        self.waits = next(self.left, None)

    def take(self, most: int) -> tuple[list[DemandRow], list[Subscribed]]:
        """The next of what was found: so many, and fewer where their names are long."""
        flows: list[DemandRow] = []
        subscriptions: list[Subscribed] = []
        names = 0
        while self.waits is not None and len(flows) + len(subscriptions) < most and names < PORTION_NAMES:
            row = self.waits
            if isinstance(row, DemandRow):
                flows.append(row)
                names += len(row.publisher) + len(row.topic)
            else:
                subscriptions.append(row)
                names += len(row.client) + len(row.filter) + len(row.share)
            self.waits = next(self.left, None)
        return flows, subscriptions


class Demand:
    """The counts of one broker; sees every accepted message while there are some."""

    __slots__ = ("_account", "_arrivals", "_counts", "_numbered", "_running", "_sessions", "_timers")

    def __init__(self, arrivals: Arrivals, sessions: Sessions, timers: Timers, account: Account) -> None:
        self._arrivals = arrivals
        self._sessions = sessions
        self._timers = timers
        self._account = account
        #: By number, those that were not taken completely.
        self._counts: dict[int, _Count] = {}
        #: Those that have not ended.
        self._running: dict[int, _Count] = {}
        self._numbered = 0

    def begin(self, patience_s: float, now: float, *, by: str = "") -> int:
        """Count from now on; the number under which it can be taken, before so many seconds have passed.

        Each portion has the same time.
        """
        if len(self._counts) >= MOST_COUNTS:
            raise DemandError(f"{MOST_COUNTS} counts are under way already; each ends when it is taken, or by itself")
        self._numbered += 1
        number, count = self._numbered, _Count(now, patience_s)
        self._remember(number, count, now)
        self._counts[number] = self._running[number] = count
        self._attend()
        self._account.tell(Event("demand", by, "", f"publishers are counted for {patience_s:g} s at most"))
        return number

    def take(self, number: int, now: float, *, most: int | None = None, portion: int | None = None) -> Portion:
        """The next portion of a count, which the first one ends; after the last one it is forgotten.

        Who may not hear the answer says which ``portion`` it wants, from 0, and gets the last one again if it asks for
        it again; the count is then kept for a moment longer.
        """
        count = self._counts.get(number)
        if count is None:
            raise DemandError(f"there is no count {number}: it was taken, or forgotten because nobody came for it")
        if self._running.pop(number, None) is not None:
            count.end(self._sessions.by_id.values(), now)
            self._attend()
        if portion is not None and count.given is not None and portion == count.portions - 1:
            return count.given
        if portion not in (None, count.portions) or (count.given is not None and count.given.is_last):
            raise DemandError(f"portion {portion} of count {number} was not expected, but portion {count.portions}")
        flows, subscriptions = count.take(PORTION if most is None else min(most, PORTION))
        is_last = count.waits is None
        found = Portion(count.seconds, count.unnamed, flows, subscriptions, is_last)
        if is_last and portion is None:
            self._forget(number)
        else:
            count.given, count.portions = found, count.portions + 1
            if is_last:
                count.patience_s = AGAIN_S
            self._remember(number, count, now)
        return found

    # -- as one who watches arrivals

    def message(self, message: Message, packet_id: int = 0, *, dup: bool = False) -> None:
        """Count a message for everybody who has begun a count."""
        size = _size(message)
        for count in self._running.values():
            count.add(message, size)

    def burst(self, burst: Burst) -> None:
        """The same for QoS 0 messages as they came."""
        for count in self._running.values():
            count.add(burst, burst.size)

    def _remember(self, number: int, count: _Count, now: float) -> None:
        self._timers.cancel(count.timer)
        count.timer = self._timers.at(now + count.patience_s, lambda _due: self._forget(number))

    def _forget(self, number: int) -> None:
        count = self._counts.pop(number)
        self._timers.cancel(count.timer)
        if self._running.pop(number, None) is not None:
            self._attend()

    def _attend(self) -> None:
        """See messages while something is counted, and only then."""
        self._arrivals.unwatch(self)
        if self._running:
            self._arrivals.watch(self)


def _subscriptions(sessions: Iterable[Session]) -> Iterator[Subscribed]:
    for session in sessions:
        # copied when it is this session's turn: the next portion may be asked for after it has changed
        for written, subscription in list(session.subscriptions.items()):
            if len(session.client_id) + len(written) > LONGEST_NAME:
                continue  # nobody plans by it
            if isinstance(subscription, ConditionalSubscription):
                yield Subscribed(session.client_id, subscription.filter, subscription.share or "", is_conditional=True)
            else:
                share, filter_ = split_share(written)
                yield Subscribed(session.client_id, filter_, share or "", is_conditional=False)


def _size(message: Message) -> int:
    """The bytes of its packet; its properties count where it has some."""
    inside = 2 + len(message.topic) + (2 if message.qos else 0) + len(message.payload)
    if message.properties:
        inside += len(encode_varint(len(message.properties))) + len(message.properties)
    return 1 + len(encode_varint(inside)) + inside
