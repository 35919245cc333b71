"""What the broker keeps for one client, across its connections."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from tieline.sched.queue import Queue

if TYPE_CHECKING:
    from tieline.core.connection import Connection
    from tieline.core.message import Item, Message
    from tieline.core.outbound.backlog import Backlog
    from tieline.core.outbound.replay import Replay
    from tieline.core.routing.groups import Group
    from tieline.core.timers import Timer
    from tieline.match.change import LastValues, References
    from tieline.sched.levels import Patience
    from tieline.wire.packets import Subscription, Will

#: Session Expiry Interval that means "never" (3.1.2.11.2).
NEVER = 0xFFFF_FFFF


class Grant:
    """How one session gets the messages of one topic: its matching subscriptions, folded into one."""

    __slots__ = (
        "group",
        "identifiers",
        "keep_retain",
        "marks",
        "no_local",
        "others",
        "qos",
        "session",
        "set_retain",
        "terms",
    )

    def __init__(  # one argument per subscription option
        self,
        session: Session,
        qos: int,
        *,
        identifiers: bytes = b"",
        keep_retain: bool = False,
        set_retain: bool = False,
        no_local: bool = False,
        group: Group | None = None,
    ) -> None:
        self.session = session
        self.qos = qos
        #: Subscription Identifier properties, encoded; empty in 3.1.1.
        self.identifiers = identifiers
        #: Retain As Published.
        self.keep_retain = keep_retain
        #: The message is sent because it was retained when the client subscribed.
        self.set_retain = set_retain
        #: At least one of the subscriptions has No Local.
        self.no_local = no_local
        #: With ``no_local``: the grant of the remaining subscriptions, which apply to the client's own messages.
        self.others: Grant | None = None
        #: The shared subscription that chose this session.
        self.group = group
        #: References to move when the message is queued: this grant is for one message.
        self.marks: tuple[Mark, ...] = ()
        #: The same in the words of facts; made when the first message is stored under it.
        self.terms: tuple[int, bytes, str] | None = None

    def __repr__(self) -> str:
        return f"<Grant {self.session.client_id} QoS {self.qos}>"

    def unmark(self) -> None:
        """The message was dropped before it was sent."""
        for last, topic, values in self.marks:
            last.forget(topic, values)


#: What a delivery changes: the references of a subscription, the topic, and its values.
Mark = tuple["LastValues", bytes, "References"]
#: A queue entry: the shared record and how this session gets it.
Entry = tuple["Item", Grant]
#: What waits for an acknowledgement: the record, its grant, the QoS it was sent with; None after PUBREC.
Flight = tuple["Message", Grant, int] | None


class Held:
    """One subscription as a session holds it."""

    __slots__ = ("conditions", "grant", "identifier", "options")

    def __init__(self, options: Subscription, identifier: int) -> None:
        self.options = options
        #: Subscription Identifier; 0 for none.
        self.identifier = identifier
        #: Conditions that came with its SUBSCRIBE and are not in its filter.
        self.conditions: tuple[str, ...] = ()
        #: What this subscription alone grants; made when it is needed, shared by every route.
        self.grant: Grant | None = None


class Session:
    """One client's subscriptions, waiting messages and flow state."""

    __slots__ = (
        "backlog",
        "blocked_publishers",
        "client_id",
        "connection",
        "dropped",
        "ends",
        "expiry_s",
        "inbound",
        "inflight",
        "is_kept",
        "is_known",
        "last_id",
        "left",
        "number",
        "oldest",
        "patience",
        "queue",
        "replays",
        "subscriptions",
        "user",
        "weight",
        "will",
        "will_timer",
    )

    def __init__(self, client_id: str, max_messages: int, max_bytes: int) -> None:
        self.client_id = client_id
        #: Whose session it is, and nobody else's; None for nobody in particular.
        self.user: str | None = None
        #: The connection that speaks for the session; None while the client is away.
        self.connection: Connection | None = None
        #: Since when the client has been away; None while it is connected.
        self.left: float | None = None
        #: What the store calls it; never used again.
        self.number = 0
        #: Whether the store keeps what waits for it, and whether it knows of it at all.
        self.is_kept = self.is_known = False
        #: Seconds the session outlives its connection; ``NEVER`` for ever.
        self.expiry_s = 0
        #: Set while the client is away and the session will end.
        self.ends: Timer | None = None
        #: By filter as the client wrote it, ``$share/…`` included.
        self.subscriptions: dict[str, Held] = {}
        #: What the subscriptions count towards their limit.
        self.weight = 0
        self.queue: Queue[Entry] = Queue(max_messages, max_bytes)
        #: Retained messages still to be queued for new subscriptions, by filter.
        self.replays: dict[str, Replay] = {}
        #: Our packet ids in use, in the order in which they must be sent again.
        self.inflight: dict[int, Flight] = {}
        self.last_id = 0
        #: Their packet ids of QoS 2 messages that were accepted and not released yet: a separate id space.
        self.inbound: set[int] = set()
        #: While the client is congested: the policy that holds what waits.
        self.backlog: Backlog | None = None
        #: What the client asked for its low classes; None for the broker's own.
        self.patience: Patience | None = None
        #: The will of the current or last connection, while it may still be published.
        self.will: Will | None = None
        self.will_timer: Timer | None = None
        #: Connections that wait for room in this queue.
        self.blocked_publishers: deque[Connection] = deque()
        #: Messages discarded that this session should have got.
        self.dropped = 0
        #: Since when the queue has not been empty.
        self.oldest = 0.0

    def __repr__(self) -> str:
        state = "connected" if self.connection else "away"
        return f"<Session {self.client_id} {state}, {len(self.queue)} queued, {len(self.inflight)} in flight>"

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
