"""One network connection, as the core sees it."""

from __future__ import annotations

from collections import deque
from enum import Enum, StrEnum
from typing import TYPE_CHECKING

from tieline.conf.schema import UNLIMITED
from tieline.sched.congestion import UNKNOWN
from tieline.wire.header import stamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from tieline.core.inbound.allowance import Allowance
    from tieline.core.inbound.meter import Meter
    from tieline.core.ports import Login, Verdict
    from tieline.core.session import Session
    from tieline.core.timers import Timer


class State(Enum):
    """How far a connection has come."""

    OPENED = "opened"  # nothing but CONNECT is legal
    CONNECTED = "connected"  # everything but CONNECT is legal
    CLOSING = "closing"  # nothing is read any more; what is queued for writing goes out first


#: Looking a member up in its class costs as much as the rest of a comparison; the hot path compares with these.
OPENED = State.OPENED
CONNECTED = State.CONNECTED
CLOSING = State.CLOSING


class Hold(StrEnum):
    """Why a connection is not read at the moment."""

    VERDICT = "verdict"  # an access decision is pending
    QUEUE_FULL = "queue_full"  # a subscriber's QoS 1 or 2 queue is full (MQTT 3.1.1: we cannot say so)
    TURN = "turn"  # what it sent has caused much work; the others are served first
    NOT_READING = "not_reading"  # the client does not read our answers
    COMMIT = "commit"  # its session is being made permanent; CONNACK follows
    STORE = "store"  # the store cannot keep up, or has no room
    RATE = "rate"  # it, or its user, sends faster than it may


class Connection:
    """Parsing state, limits and aliases of one connection, and the answers that wait to be written."""

    __slots__ = (
        "alias_in",
        "alias_out",
        "alias_out_max",
        "allowance",
        "asked",
        "buckets",
        "control",
        "control_bytes",
        "departing",
        "has_header",
        "hold",
        "hold_timer",
        "identify",
        "is_blocked",
        "is_dirty",
        "is_guarded",
        "is_sealed",
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
        "partial",
        "path",
        "peer",
        "problem_information",
        "publishable",
        "quota",
        "raw_version",
        "resend",
        "serial",
        "session",
        "state",
        "stopped",
        "timer",
        "told_hold",
        "told_refusal",
        "unacknowledged",
        "urgent_at",
        "verdicts",
        "version",
        "waits_for",
        "window",
    )

    def __init__(self, now: float, listener: str, peer: str, allowance: Allowance, serial: int = 0) -> None:
        #: Position in the order of connection.
        self.serial = serial
        self.listener = listener
        self.peer = peer
        #: Its limits: those of the listener first, and those of its user once it has one.
        self.allowance = allowance
        #: What it is measured by; empty while it may send as fast as it can.
        self.meters: tuple[Meter, ...] = ()
        #: Who its certificate says it is; the shell knows.
        self.identify: Callable[[], str | None] | None = None
        #: A topic may have to be refused: only those in ``publishable`` take the short way.
        self.is_guarded = False
        self.state = State.OPENED
        #: 4 or 5 after CONNECT; 0 before.
        self.version = 0
        #: The version whose PUBLISH packets can be passed on unchanged; 0 when aliases must be bound.
        self.raw_version = 0
        self.session: Session | None = None
        self.login: Login | None = None
        #: When bytes last arrived.
        self.last_in = now
        #: Connect timeout first, keep-alive afterwards.
        self.timer: Timer | None = None
        self.keep_alive_s = 0
        #: The beginning of a packet whose end has not arrived, and how many bytes are needed to go on.
        self.partial = bytearray()
        self.need = 0
        #: Why reading is suspended; None while it is not.
        self.hold: Hold | None = None
        self.hold_timer: Timer | None = None
        #: The session whose full queue it waits for.
        self.waits_for: Session | None = None
        #: When the log was last told of a hold.
        self.told_hold = -10.0
        #: When the log was last told of a refusal.
        self.told_refusal = -10.0
        #: Verdicts that were pending, by what was asked; used when the held packet is parsed again.
        self.verdicts: dict[tuple[str, str], Verdict] = {}
        #: Which question each pending token answers.
        self.asked: dict[int, tuple[str, str]] = {}
        #: Topics this client is known to be allowed to publish to.
        self.publishable: set[bytes] = set()
        #: Answers ready to be written, before any queued message.
        self.control: list[bytes] = []
        self.control_bytes = 0
        #: PUBACKs that wait for the store.
        self.unacknowledged = 0
        #: Packet ids to send again after a reconnection, oldest first.
        self.resend: deque[int] = deque()
        #: Packet ids of QoS 2 messages that the store has, in the order in which they go out for the first time.
        self.departing: deque[int] = deque()
        #: Unacknowledged messages the client takes at once, and how many of those are free now.
        self.window = 0
        self.quota = 0
        #: Largest packet the client takes.
        self.max_packet = UNLIMITED
        #: The node's own level, for messages that nothing else gives one; and the highest its listener lets it claim.
        self.level = 1
        self.max_level = 3
        #: Tokens left for claims, by rule: (tokens, when).
        self.buckets: dict[int, tuple[float, float]] | None = None
        #: Every packet carries the extra header byte of the second paper, in both directions.
        self.has_header = False
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
        #: The shell holds bytes that the network has not taken yet: nothing may be written past them.
        self.is_blocked = False
        #: Whether the connection is in the broker's list of changed connections.
        self.is_dirty = False
        #: What is written at once can only be read at once: a TLS record, a WebSocket frame.
        self.is_sealed = False
        #: The shell's own object.
        self.link: object = None

    @property
    def closing(self) -> bool:
        """The shell closes the network connection once there is nothing left to write."""
        return self.state is CLOSING

    @property
    def client_id(self) -> str:
        """For the log; empty before CONNECT."""
        return self.session.client_id if self.session else self.login.client_id if self.login else ""

    def release(self) -> tuple[bytes, Timer | None]:
        """End the hold: what arrived and was not parsed, and the deadline that the hold had."""
        data, self.partial = bytes(self.partial), bytearray()
        deadline, self.hold_timer = self.hold_timer, None
        self.hold = None
        self.need = 0
        return data, deadline

    def say(self, data: bytes) -> None:
        """Queue an answer."""
        if self.has_header:
            data = stamp(data, self.level)
        self.control.append(data)
        self.control_bytes += len(data)

    def __repr__(self) -> str:
        return f"<Connection {self.peer} {self.client_id or '?'} {self.state.value}>"
