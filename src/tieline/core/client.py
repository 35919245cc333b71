"""One client: the connection through which it speaks, and the session that outlives it.

The two know each other, so they stand in one file.  A :class:`Connection` is what ends with the network connection:
parsing, aliases, the in-flight window, answers that wait to be written.  A :class:`Session` is what stays:
subscriptions, waiting messages, packet ids.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from enum import StrEnum
from typing import Final, Protocol

from tieline.conf.quantities import UNLIMITED
from tieline.core.account import Drop
from tieline.core.allowance import Allowance, Meter
from tieline.core.backlog import Backlog
from tieline.core.holdings import Kind, Owner
from tieline.core.message import Bundle, Item, Origin, Queued
from tieline.core.ports import Login, Verdict
from tieline.core.receiver import ActiveSubscription, Entry, Flight, Grant, Outlet, Receiver
from tieline.core.spill import PacketIds, Spill
from tieline.core.states import CONNECTION, SESSION, Presence, State, step
from tieline.core.timers import Timer
from tieline.sched.congestion import UNKNOWN
from tieline.sched.levels import Patience
from tieline.sched.queue import Queue
from tieline.wire.frames import Unparsed, stamp
from tieline.wire.packets import Will

#: Session Expiry Interval that means "never" (3.1.2.11.2).
NEVER: Final = 0xFFFF_FFFF

#: Looking a member up in its class costs as much as the rest of a comparison; the hot path compares with these.
OPENED: Final = State.OPENED
CONNECTED: Final = State.CONNECTED
CLOSING: Final = State.CLOSING


#: The handling of one packet in portions: what it yields at, it goes on from, and it is sent the time.
Portions = Generator[None, float, None]


class Again(Exception):
    """A packet cannot be decided yet; its connection is held, and the packet is parsed again when it is released."""


class Hold(StrEnum):
    """Why a connection is not read at the moment."""

    VERDICT = "verdict"  # an access decision is pending
    QUEUE_FULL = "queue_full"  # a subscriber's QoS 1 or 2 queue is full (MQTT 3.1.1: we cannot say so)
    TURN = "turn"  # what it sent has caused much work; the others are served first
    NOT_READING = "not_reading"  # the client does not read our answers
    COMMIT = "commit"  # its session is being made permanent; CONNACK follows
    STORE = "store"  # the store cannot keep up, or has no room
    RATE = "rate"  # it, or its user, sends faster than it may
    PEERS = "peers"  # other brokers are told of its subscriptions; SUBACK follows
    HOME = "home"  # another broker hands its session over; CONNACK follows


_COMMIT: Final = Hold.COMMIT


class Connection:
    """Parsing state, limits and aliases of one connection, and the answers that wait to be written."""

    __slots__ = (
        "alias_bytes",
        "alias_in",
        "alias_out",
        "alias_out_max",
        "allowance",
        "asked",
        "buckets",
        "control",
        "control_bytes",
        "departing",
        "foreseen",
        "framed_bytes",
        "has_header",
        "has_left",
        "hold",
        "hold_timer",
        "identify",
        "is_blocked",
        "is_dirty",
        "is_guarded",
        "is_movable",
        "is_wrapped",
        "keep_alive_s",
        "last_in",
        "level",
        "link",
        "listener",
        "login",
        "max_level",
        "max_packet",
        "meters",
        "need",
        "owner",
        "partial",
        "path",
        "peer",
        "problem_information",
        "publishable",
        "quota",
        "raw_version",
        "resend",
        "right_bytes",
        "serial",
        "session",
        "state",
        "stopped",
        "timer",
        "told_hold",
        "told_refusal",
        "unacknowledged",
        "unfinished",
        "unfinished_bytes",
        "unparsed_bytes",
        "unsent_bytes",
        "urgent_at",
        "verdicts",
        "version",
        "waits_for",
        "window",
    )

    def __init__(  # what is known of a client that has not said anything
        self, now: float, listener: str, peer: str, allowance: Allowance, owner: Owner, serial: int = 0
    ) -> None:
        #: Position in the order of connection.
        self.serial = serial
        self.listener, self.peer = listener, peer
        #: Its limits: those of the listener first, and those of its user once it has one.
        self.allowance = allowance
        #: On whose account it keeps something: that of all strangers first, and that of its user once it has one.
        self.owner = owner
        #: What the layers below hold of packets that are not complete, which the shell knows; and what is counted on
        #: that account: unparsed, unsent, topic aliases, remembered rights.
        self.framed_bytes = self.unparsed_bytes = self.unsent_bytes = self.alias_bytes = self.right_bytes = 0
        #: What it is measured by; empty while it may send as fast as it can.
        self.meters: tuple[Meter, ...] = ()
        #: A topic may have to be refused: only those in ``publishable`` take the short way.
        self.is_guarded = False
        self.state = OPENED
        #: 4 or 5 after CONNECT, 0 before; and the version whose PUBLISH packets can be passed on unchanged, 0 for none.
        self.version = self.raw_version = 0
        self.session: Session | None = None
        self.login: Login | None = None
        #: When bytes last arrived; and a timer, for the connect timeout first and for the keep-alive afterwards.
        self.last_in = now
        self.timer: Timer | None = None
        self.keep_alive_s = 0
        #: The beginning of a packet whose end has not arrived, and how many bytes are needed to go on.
        self.partial = Unparsed()
        self.need = 0
        #: Why reading is suspended, None while it is not; and the receiver that has no room for what it sent.
        self.hold: Hold | None = None
        self.hold_timer: Timer | None = None
        self.waits_for: Receiver | None = None
        #: A packet handled in portions, while others have their turn, before anything behind it; what its parts take.
        self.unfinished: Portions | None = None
        self.unfinished_bytes = 0
        #: Whose conditions the message meets that is parsed next, where to find out was handled in portions.
        self.foreseen: list[ActiveSubscription] | None = None
        #: When the log was last told of a hold, and of a refusal.
        self.told_hold = self.told_refusal = -10.0
        #: Verdicts that were pending, by what was asked, for when the held packet is parsed again; and what each token
        #: that is pending answers.
        self.verdicts: dict[tuple[str, str], Verdict] = {}
        self.asked: dict[int, tuple[str, str]] = {}
        #: Topics this client is known to be allowed to publish to.
        self.publishable: set[bytes] = set()
        #: Answers ready to be written, before any queued message; and the number of PUBACKs that wait for the store.
        self.control: list[bytes] = []
        self.control_bytes = self.unacknowledged = 0
        #: Packet ids to send again after a reconnection, oldest first.
        self.resend: deque[int] = deque()
        #: Packet ids of QoS 2 messages that the store has, in the order in which they go out for the first time.
        self.departing: deque[int] = deque()
        #: Unacknowledged messages the client takes at once, how many of those are free now, and the largest packet.
        self.window = self.quota = 0
        self.max_packet = UNLIMITED
        #: The node's own level, for messages that nothing else gives one; and the highest its listener lets it claim.
        self.level, self.max_level = 1, 3
        #: Tokens left for claims, by rule: (tokens, when).
        self.buckets: dict[int, tuple[float, float]] | None = None
        #: Every packet carries the extra header byte of the second paper, in both directions; the client has said
        #: goodbye: it sends nothing more, and hears nothing more; it has said that it may be sent to another broker.
        self.has_header = self.has_left = self.is_movable = False
        #: When an urgent message last came from it; the shell looks at such connections more often.
        self.urgent_at = -1e9
        #: What is known of the way to the client.
        self.path = UNKNOWN
        #: Request Problem Information: whether reason strings may be sent on acknowledgements.
        self.problem_information = True
        #: Numbers of producers that were refused and have to come first, by producer; None while there are none.
        self.stopped: dict[str, int] | None = None
        #: Topic aliases set by the client, and those we set towards it.
        self.alias_in: dict[int, bytes] = {}
        self.alias_out: dict[bytes, int] = {}
        self.alias_out_max = 0
        #: The shell holds bytes that the network has not taken, and nothing may be written past them; it is in the list
        #: of changed connections; what is written at once can only be read at once (a TLS record, a WebSocket frame).
        self.is_blocked = self.is_dirty = self.is_wrapped = False
        #: The shell's own object, and who the client's certificate says it is, which the shell knows.
        self.link: Outlet | None = None
        self.identify: Callable[[], str | None] | None = None

    def move(self, state: State) -> None:
        """Go on to another state."""
        self.state = step(CONNECTION, self.state, state)

    @property
    def closing(self) -> bool:
        """The shell closes the network connection once there is nothing left to write."""
        return self.state is CLOSING

    @property
    def client_id(self) -> str:
        """For the log; empty before CONNECT."""
        return self.session.client_id if self.session else self.login.client_id if self.login else ""

    @property
    def user(self) -> str | None:
        """Who the client is, once it was let in; None for nobody in particular."""
        return self.login.user if self.login else None

    def takes_raw(self, version: int, size: int, grant: Grant) -> bool:
        """Whether a QoS 0 packet of this protocol version and size can be sent to the client as it is."""
        return version == self.raw_version and size <= self.max_packet and not grant.identifiers

    @property
    def waiting_bytes(self) -> int:
        """What it has sent and is not done with: packets that are not complete, and one that is handled in portions."""
        return len(self.partial) + self.framed_bytes + self.unfinished_bytes

    def release(self) -> tuple[bytes, Timer | None]:
        """End the hold: what arrived and was not parsed, and the deadline that the hold had."""
        data = self.partial.take()
        deadline, self.hold_timer = self.hold_timer, None
        self.hold = None
        self.need = 0
        return data, deadline

    def say(self, data: bytes) -> None:
        """Queue an answer, which is written before any message that waits."""
        if self.has_header:
            data = stamp(data, self.level)
        self.control.append(data)
        self.control_bytes += len(data)

    def __repr__(self) -> str:
        return f"<Connection {self.peer} {self.client_id or '?'} {self.state.value}>"


class Changed:
    """The connections that the shell should look at; each is in it once, and knows so."""

    __slots__ = ("connections",)

    def __init__(self) -> None:
        self.connections: list[Connection] = []

    def mark(self, conn: Connection) -> None:
        """There is something to write, a hold begins or ends, or the connection is to be closed."""
        if not conn.is_dirty:
            conn.is_dirty = True
            self.connections.append(conn)

    def take(self) -> list[Connection]:
        """All of them, which are then no longer in it; the shell clears the mark of each as it comes to it."""
        taken, self.connections = self.connections, []
        return taken


class Dispatcher(Protocol):
    """What a session needs of those who look after all queues together."""

    changed: Changed
    #: What most messages have; a queue in which others wait is no longer first in, first out.
    default_level: int

    def queue_with_care(self, session: Session, item: Queued, grant: Grant, now: float) -> None:
        """Queue a message that is not for the usual connected client."""

    def make_room(self, session: Session, now: float) -> None:
        """Drop from a queue until it is within its bounds."""

    def settle(self, session: Session) -> None:
        """Queue what was put off for a session whose client is away; its queue is as it should be then."""

    def turn_away(self, session: Session, item: Item, why: Drop, now: float) -> None:
        """Name what a session should have got and is not in its queue."""

    def refuses(self, session: Session, item: Item) -> bool:
        """Whether somebody is refused when a session has no room in memory for a message."""

    def is_half_empty(self, session: Session) -> bool:
        """Whether there is room worth telling those who wait for it."""


class Session:
    """One client's subscriptions, waiting messages and flow state; a :class:`~tieline.core.receiver.Receiver`."""

    is_broker = False

    __slots__ = (
        "_dispatcher",
        "backlog",
        "client_id",
        "connection",
        "dropped",
        "ends",
        "expiry_s",
        "groups",
        "inbound",
        "inflight",
        "is_awaited",
        "is_diverted",
        "is_doomed",
        "is_kept",
        "is_known",
        "is_replaying",
        "last_id",
        "left",
        "number",
        "oldest",
        "origin",
        "owner",
        "patience",
        "presence",
        "queue",
        "spill",
        "subscription_bytes",
        "subscriptions",
        "user",
        "weight",
        "will",
        "will_timer",
    )

    def __init__(self, client_id: str, number: int, queue: Queue[Entry], dispatcher: Dispatcher, owner: Owner) -> None:
        self.client_id = client_id
        self._dispatcher = dispatcher
        #: On whose account everything of it is kept.
        self.owner = owner
        #: Whose session it is, and nobody else's; None for nobody in particular.
        self.user: str | None = None
        self.presence = Presence.NEW
        #: The connection that speaks for the session; None while the client is away.
        self.connection: Connection | None = None
        #: Since when the client has been away; None while it is connected.
        self.left: float | None = None
        self.renumber(number)
        #: Whether the store keeps what waits for it, and whether it knows of it at all.
        self.is_kept = self.is_known = False
        #: It had no room for a message while its client was away, and ends in the next turn.
        self.is_doomed = False
        #: It has come from another broker, and what comes for it may have to wait for what is on its way from there.
        self.is_diverted = False
        #: Seconds the session outlives its connection; ``NEVER`` for ever.
        self.expiry_s = 0
        #: Set while the client is away and the session will end.
        self.ends: Timer | None = None
        #: By filter as the client wrote it, ``$share/…`` included.
        self.subscriptions: dict[str, ActiveSubscription] = {}
        #: What the subscriptions count towards their limit, and what they take.
        self.weight = self.subscription_bytes = 0
        #: How many of them are shared.
        self.groups = 0
        self.queue = queue
        #: What waits for it in the store alone; None while there is nothing.
        self.spill: Spill | None = None
        #: Retained messages are still to be queued for new subscriptions.
        self.is_replaying = False
        #: Our packet ids in use, in the order in which they must be sent again.
        self.inflight: dict[int, Flight] = {}
        self.last_id = 0
        #: Their packet ids of QoS 2 messages that were accepted and not released yet: a separate id space.
        self.inbound = PacketIds()
        #: While the client is congested: the policy that holds what waits.
        self.backlog: Backlog | None = None
        #: What the client asked for its low classes; None for the broker's own.
        self.patience: Patience | None = None
        #: The will of the current or last connection, while it may still be published.
        self.will: Will | None = None
        self.will_timer: Timer | None = None
        #: Publishers are held until there is room in its queue again.
        self.is_awaited = False
        #: Messages discarded that this session should have got.
        self.dropped = 0
        #: Since when the queue has not been empty.
        self.oldest = 0.0

    def __repr__(self) -> str:
        state = "connected" if self.connection else "away"
        return f"<Session {self.client_id} {state}, {len(self.queue)} queued, {len(self.inflight)} in flight>"

    # -- whose it is

    def renumber(self, number: int) -> None:
        """Take the number under which the store knows the session; none is used twice."""
        self.number = number
        #: Who the messages are from that come through it.
        self.origin = Origin(self.client_id, number, self.owner)

    def attach(self, conn: Connection) -> None:
        """A connection speaks for it from now on."""
        self._dispatcher.settle(self)
        self.presence = step(SESSION, self.presence, Presence.ATTACHED)
        self.connection = conn
        conn.session = self

    def detach(self) -> None:
        """Nobody speaks for it any more."""
        self.presence = step(SESSION, self.presence, Presence.AWAY)
        self.connection = None

    def divert(self, dispatcher: Dispatcher) -> None:
        """Let somebody else see to what is queued for it from now on."""
        self._dispatcher.settle(self)
        self._dispatcher = dispatcher
        self.is_diverted = dispatcher.default_level < 0

    def end(self) -> None:
        """Nothing is kept of it any more."""
        self.presence = step(SESSION, self.presence, Presence.ENDED)

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and will take nothing any more."""
        return self.presence is Presence.ENDED

    # -- as a receiver

    @property
    def is_present(self) -> bool:
        """Whether its client is connected."""
        return self.connection is not None

    def offer(self, item: Queued, grant: Grant, now: float) -> None:
        """Queue a message; this is the hot path of every fan-out, and what it cannot do is done with care."""
        conn = self.connection
        queue = self.queue
        dispatcher = self._dispatcher
        if (
            conn is None
            or item.level != dispatcher.default_level
            or (item.qos and self.is_kept)
            or grant.marks
            or queue.pool.bytes > queue.pool.most
        ):
            dispatcher.queue_with_care(self, item, grant, now)
            return
        if not queue.push((item, grant), item.messages, item.size):
            dispatcher.make_room(self, now)
        if not conn.is_dirty:
            dispatcher.changed.mark(conn)

    def unbundle_ends(self) -> None:
        """Take the bundles at the ends of its queue apart: something has to be known of their messages."""
        entries = self.queue.entries
        if entries and isinstance(entries[0][0], Bundle):
            item, grant = entries.popleft()
            assert isinstance(item, Bundle)
            entries.extendleft([(burst, grant) for burst in reversed(list(item.bursts()))])
        if entries and isinstance(entries[-1][0], Bundle):
            item, grant = entries.pop()
            assert isinstance(item, Bundle)
            entries.extend((burst, grant) for burst in item.bursts())

    def has_room(self, item: Item, copies: int = 0) -> bool:
        """Whether its queue takes a message within its bounds, once so many copies of it wait there."""
        if self.connection is None:
            self._dispatcher.settle(self)
        queue = self.queue
        held = queue.bytes + queue.sent_bytes + (copies + 1) * item.size
        has_place = self.spill is None and queue.messages + copies < queue.max_messages
        return has_place and held <= queue.max_bytes and not self.is_over

    def lacks_room(self, item: Item) -> bool:
        """Whether its queue is full, or is not small while the memory of all is; not if it spills, or ends."""
        if self.connection is None:
            self._dispatcher.settle(self)
        queue = self.queue
        if self.spill is None:
            if queue.has_room(item.size) and not queue.is_squeezed():
                return False
            if self.connection is not None:
                return True
        return self._dispatcher.refuses(self, item)

    def turn_away(self, item: Item, why: Drop, now: float) -> None:
        """Name a message that it does not get."""
        self._dispatcher.turn_away(self, item, why, now)

    @property
    def is_half_empty(self) -> bool:
        """Whether publishers that wait for room can go on."""
        return self._dispatcher.is_half_empty(self)

    def promise(self, size: int) -> None:
        """Keep room for a message that will come."""
        if self.connection is None:
            self._dispatcher.settle(self)
        self.queue.promise(size)

    def redeem(self, size: int) -> None:
        """The message comes now, into the room that was kept for it."""
        self.queue.redeem(size)

    def ready_outlet(self, version: int, size: int, grant: Grant) -> Outlet | None:
        """The client's outlet if a QoS 0 packet may be written to it now, past the queue; None if it may not."""
        conn = self.connection
        if (
            conn is None
            or not conn.takes_raw(version, size, grant)
            or conn.is_blocked
            or conn.is_dirty
            or conn.hold is _COMMIT  # its CONNACK comes first
            or self.queue.messages
            or conn.resend
            or self.is_replaying
            or self.is_diverted
        ):
            return None
        return conn.link

    # -- packet ids

    def hold_id(self, packet_id: int) -> None:
        """A packet id of the client's is taken until it releases it."""
        before = self.inbound.bytes
        self.inbound.add(packet_id)
        if self.inbound.bytes != before:
            self.owner.take(Kind.SESSIONS, self.inbound.bytes - before)

    def hold_ids(self, packet_ids: Iterable[int]) -> None:
        """The same for all that a session brings from another broker."""
        before = self.inbound.bytes
        for packet_id in packet_ids:
            self.inbound.add(packet_id)
        self.owner.take(Kind.SESSIONS, self.inbound.bytes - before)

    def free_id(self, packet_id: int) -> None:
        """A packet id of the client's is free again."""
        before = self.inbound.bytes
        self.inbound.discard(packet_id)
        if self.inbound.bytes != before:
            self.owner.take(Kind.SESSIONS, self.inbound.bytes - before)

    def next_id(self) -> int:
        """A packet id that is not in use; the caller has made sure that one is free.

        [MQTT-2.2.1-4], [MQTT-4.3.2-1], [MQTT-4.3.3-1], [MQTT311-2.3.1-4].
        """
        packet_id = self.last_id
        inflight = self.inflight
        while True:
            packet_id = packet_id + 1 if packet_id < 65_535 else 1
            if packet_id not in inflight:
                self.last_id = packet_id
                return packet_id
