"""What must be permanent before it is acknowledged.

Handlers note what changed and hand their acknowledgements over; when a chunk is done the facts go to the store as one
batch, and the acknowledgements leave once the store has committed it.  With a store that keeps nothing they leave at
once.  The same holds for QoS 2 messages.  One that arrives is taken over, that is made permanent, then it is *routed*;
one that leaves gets its packet id, that is made permanent, then it *departs*.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tieline.core.client import Connection, Session
from tieline.core.durable import facts
from tieline.core.message import Message
from tieline.core.ports import Fact, Reads, Store
from tieline.core.receiver import ActiveSubscription, Grant, Receiver
from tieline.wire.packets import Subscription
from tieline.wire.properties import encode_properties

#: An answer to be said, or the packet id of a message that may depart.
Release = bytes | int


class Owed(NamedTuple):
    """A message that was taken over, and the receivers that promised room for it."""

    message: Message
    receivers: Sequence[Receiver]
    #: Whose conditions it meets, where that was asked when it came.
    foreseen: list[ActiveSubscription] | None = None


class Journal:
    """Facts of the current chunk, and what waits for a commit."""

    __slots__ = (
        "_events",
        "_facts",
        "_last",
        "_log",
        "_permanent",
        "_reader",
        "_reads",
        "_released",
        "_store",
        "_taken_over",
        "_thens",
        "_waiting",
        "before_seal",
        "commits",
        "epoch_s",
        "expected",
        "is_volatile",
        "kept_s",
        "messages",
        "recorded",
        "routable",
        "sessions",
        "trouble",
        "waiting",
    )

    def __init__(self, store: Store) -> None:
        self._store = store
        #: Nobody will read the facts: do not make them.
        self.is_volatile = store.is_volatile
        #: What to add to the broker's time to get seconds since 1970, as the wall clock says now.
        self.epoch_s = 0.0
        #: What to add to it to get times as the store keeps them: those go on evenly, whatever the wall clock does.
        self.kept_s = 0.0
        #: The numbers given last.
        self.messages = 0
        self.sessions = 0
        #: Why the store cannot take anything at the moment; empty when it can.
        self.trouble = ""
        #: The store if messages may wait in it alone, and what is to be read from it once the batch is submitted.
        self._reader = store if isinstance(store, Reads) else None
        self._reads: list[tuple[int, int, int, int, int]] = []
        self._facts: list[Fact] = []
        self._log: list[tuple[object, ...]] = []
        #: How many captured messages were handed to the store since the beginning.
        self.recorded = 0
        self._events: list[tuple[object, ...]] = []
        #: What the facts of the current chunk release.
        self._released: list[tuple[Connection, Release, bool]] = []
        #: What they take over: messages that will be routed.
        self._taken_over: list[Owed] = []
        #: What else is done after it.
        self._thens: list[Callable[[], None]] = []
        #: The same of earlier chunks, oldest first, with the token they wait for.
        self._waiting: deque[
            tuple[int, list[tuple[Connection, Release, bool]], list[Owed], list[Callable[[], None]]]
        ] = deque()
        #: Called before a batch is handed over, by whoever gathers what belongs into it; and how much is gathered.
        self.before_seal: Callable[[], None] | None = None
        self.expected = 0
        #: Messages that may be routed now.
        self.routable: list[Owed] = []
        #: How many acknowledgements and departures wait.
        self.waiting = 0
        self._last = 0
        #: How often the store has said that more is permanent, and up to which token.
        self.commits = 0
        self._permanent = 0

    # -- what changed; callers ask ``is_volatile`` first

    def session(self, session: Session) -> None:
        """A session began or its terms changed."""
        will = session.will
        left = session.left
        patience = session.patience
        self._facts.append(
            (
                facts.SESSION,
                session.number,
                session.client_id,
                session.user,
                session.expiry_s,
                None if left is None else left + self.kept_s,
                None
                if will is None
                else (will.topic, will.payload, will.qos, will.retain, encode_properties(will.properties)),
                None if patience is None else (patience.period_s, patience.frequency, patience.timeout_s),
            )
        )

    def forget(self, session: Session) -> None:
        """A session is over, with all that was noted for it; its number is not used again."""
        self._facts.append((facts.FORGET, session.number))

    def subscribed(self, session: Session, subscription: ActiveSubscription, *, is_replaying: bool = False) -> None:
        """A subscription was granted or replaced; or it begins or ends to wait for more retained messages."""
        asked = subscription.options
        options = options_byte(asked)
        if is_replaying:
            options |= facts.REPLAYING
        self._facts.append(
            (facts.SUBSCRIBE, session.number, asked.filter, options, subscription.identifier, subscription.conditions),
        )

    def unsubscribed(self, session: Session, filter_: str) -> None:
        """A subscription is over; what was queued under it still waits."""
        self._facts.append((facts.UNSUBSCRIBE, session.number, filter_))

    def retained(self, message: Message) -> None:
        """A message is its topic's retained one."""
        self._facts.append((facts.RETAIN, 0, message.topic, message.number or self._number(message)))

    def cleared(self, topic: bytes) -> None:
        """A topic has no retained message any more."""
        self._facts.append((facts.CLEAR, 0, topic))

    def queued(self, session: Session, message: Message, grant: Grant) -> None:
        """A QoS 1 or 2 message waits for a session."""
        number = message.number or self._number(message)
        self._facts.append((facts.QUEUE, session.number, number, *terms_of(grant)))

    def spilled(self, session: Session, message: Message, grant: Grant, lane: int) -> None:
        """A QoS 1 or 2 message waits for a session, in the store alone."""
        number = message.number or self._number(message)
        self._facts.append((facts.SPILL, session.number, number, *terms_of(grant), lane, message.size))

    def gathered(self, session: Session) -> None:
        """Nothing waits for a session in the store alone any more."""
        self._facts.append((facts.GATHERED, session.number))

    def ended(self, session: Session, left: float) -> None:
        """A session is over, and what waits for it is seen to entry by entry; then it is forgotten."""
        self._facts.append((facts.ENDED, session.number, session.client_id, session.user, left + self.kept_s))

    def sent(self, session: Session, message: Message, grant: Grant, packet_id: int) -> None:
        """What waited got a packet id: it is in flight, under the same grant."""
        self._facts.append((facts.SENT, session.number, message.number, *terms_of(grant), packet_id))

    def dropped(self, session: Session, message: Message, grant: Grant) -> None:
        """What waited was discarded: it will not be restored."""
        self._facts.append((facts.DROP, session.number, message.number, *terms_of(grant)))

    def received(self, session: Session, packet_id: int) -> None:
        """PUBREC has come: the message is the client's, and only its packet id is kept until PUBCOMP."""
        self._facts.append((facts.RECEIVED, session.number, packet_id))

    def settled(self, session: Session, packet_id: int) -> None:
        """One of our packet ids is free, and what was sent under it need not be kept."""
        self._facts.append((facts.SETTLED, session.number, packet_id))

    def taken(self, session: Session, packet_id: int) -> None:
        """One of their packet ids is taken, until they release it: QoS 2 messages under it are the same message."""
        self._facts.append((facts.TAKE, session.number, packet_id))

    def freed(self, session: Session, packet_id: int) -> None:
        """One of their packet ids is free: the next message under it is another one."""
        self._facts.append((facts.RELEASE, session.number, packet_id))

    def taken_over(self, owed: Owed) -> None:
        """A message was taken over; it is routed when everything noted so far is permanent."""
        message = owed.message
        self._facts.append((facts.UNROUTED, 0, message.number or self._number(message)))
        self._taken_over.append(owed)

    def routed(self, message: Message) -> None:
        """A message that was taken over has been routed; a broker that starts does not route it again."""
        self._facts.append((facts.ROUTED, 0, message.number))

    def produced(self, producer: str, number: int, at: float) -> None:
        """A number of a producer was accepted: it and those below are repetitions from now on."""
        self._facts.append((facts.PRODUCED, 0, producer, number, at + self.kept_s))

    def unproduced(self, producer: str) -> None:
        """A producer is forgotten for want of room: a number that comes again is taken for a new one."""
        self._facts.append((facts.UNPRODUCED, 0, producer))

    def note(self, key: bytes, value: bytes | None) -> None:
        """Something is kept for others under a key, or nothing any more."""
        self._facts.append((facts.NOTE, 0, key, value))

    def logged(self, record: tuple[object, ...]) -> None:
        """A captured message, as the fields of a :class:`tieline.log.record.Record`."""
        self._log.append(record)

    def happened(self, occurrence: tuple[object, ...]) -> None:
        """An event, as the fields of a :class:`tieline.log.record.Occurrence`."""
        self._events.append(occurrence)

    def _number(self, message: Message) -> int:
        """Describe a message that facts will name."""
        self.messages = message.number = number = self.messages + 1
        self._facts.append(
            (
                facts.MESSAGE,
                0,
                number,
                message.topic,
                message.payload,
                message.qos,
                message.retain,
                message.properties,
                None if message.expires is None else message.expires + self.kept_s,
                message.origin.client,
                message.level,
                message.taxon,
                message.at + self.kept_s,
                None if message.origin.owner is None else message.origin.owner.user,
            )
        )
        return number

    @property
    def noted(self) -> int:
        """How much was noted in the current chunk that an acknowledgement may have to wait for."""
        return len(self._facts) + len(self._log) + self.expected

    def next_session(self) -> int:
        """A number for a new session."""
        self.sessions += 1
        return self.sessions

    # -- what is read

    @property
    def can_read(self) -> bool:
        """Whether messages may wait in the store alone."""
        return self._reader is not None

    def read(self, session: int, lane: int, after: int, messages: int, size: int) -> None:
        """Ask for what waits for a session in the store alone, when everything noted so far is submitted."""
        self._reads.append((session, lane, after, messages, size))

    # -- what waits for it

    def acknowledge(self, conn: Connection, data: bytes, *, counts: bool = False) -> None:
        """Send ``data`` when everything noted so far is permanent; until then it ``counts`` as unacknowledged."""
        if self.is_volatile:
            conn.say(data)
        else:
            conn.unacknowledged += counts
            self._released.append((conn, data, counts))

    def depart(self, conn: Connection, packet_id: int) -> None:
        """Let a message go out when everything noted so far, its packet id included, is permanent."""
        self._released.append((conn, packet_id, False))

    def then(self, do: Callable[[], None]) -> None:
        """Have something done when everything noted so far is permanent."""
        self._thens.append(do)

    @property
    def is_behind(self) -> bool:
        """The store has more to do than it should: nothing more should be read from clients."""
        return self._store.is_behind

    def seal(self) -> list[Connection]:
        """Hand the batch over; the connections whose acknowledgements may leave."""
        if self.before_seal is not None:
            self.before_seal()
            self.expected = 0
        if self._facts or self._log or self._events:
            self.recorded += len(self._log)
            self._last = self._store.submit(self._facts, self._log, self._events)
            self._facts, self._log, self._events = [], [], []
        if self._reads and self._reader is not None:
            reads, self._reads = self._reads, []
            for question in reads:
                self._reader.read(*question)
        if self._released or self._taken_over or self._thens:
            self._waiting.append((self._last, self._released, self._taken_over, self._thens))
            self.waiting += len(self._released)
            self._released, self._taken_over, self._thens = [], [], []
        return self.committed(self._store.committed) if self._waiting else []

    def committed(self, token: int) -> list[Connection]:
        """Everything up to this token is permanent; the connections on which something may happen now."""
        if token > self._permanent:
            self._permanent = token
            self.commits += 1
        changed: list[Connection] = []
        last: Connection | None = None
        waiting = self._waiting
        while waiting and waiting[0][0] <= token:
            _, released, taken_over, thens = waiting.popleft()
            for then in thens:
                then()
            self.waiting -= len(released)
            self.routable += taken_over
            for conn, what, counts in released:
                conn.unacknowledged -= counts
                if conn.closing:
                    continue
                if isinstance(what, bytes):
                    conn.say(what)
                else:
                    conn.departing.append(what)
                if conn is not last:
                    changed.append(conn)
                    last = conn
        return changed


def options_byte(asked: Subscription) -> int:
    """The options of a subscription as one byte, as SUBSCRIBE has them."""
    return asked.qos | asked.no_local << 2 | asked.retain_as_published << 3 | asked.retain_handling << 4


def terms_of(grant: Grant) -> tuple[int, bytes, str]:
    """How a session gets a message, as facts say it; the same for every message of a grant."""
    terms = grant.terms
    if terms is None:
        options = grant.qos | (grant.keep_retain and facts.KEEP_RETAIN) | (grant.set_retain and facts.SET_RETAIN)
        share = "" if grant.share is None else f"{grant.share.name}/{grant.share.filter}"
        terms = grant.terms = (options, grant.identifiers, share)
    return terms
