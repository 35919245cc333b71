"""All network connections of a broker: how they are opened, watched and closed."""

from __future__ import annotations

from tieline.core.account import Account, Event
from tieline.core.allowance import Allowances
from tieline.core.client import CLOSING, CONNECTED, OPENED, Changed, Connection, Hold
from tieline.core.durable.chronicle import Chronicle
from tieline.core.holdings import CONNECTION_BYTES, Holdings, Kind, Owner
from tieline.core.inbound.holds import Holds
from tieline.core.inbound.questions import Questions
from tieline.core.inbound.sessions import Sessions
from tieline.core.states import State
from tieline.core.timers import Timers
from tieline.sched.queue import KEEPS_UP
from tieline.wire.encode import encode
from tieline.wire.errors import ProtocolError
from tieline.wire.packets import Connack, Disconnect
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason

#: The end of a connection that is no trouble.
_ORDERLY = ("disconnect", "server_shutdown", "drained", "moved")


class Connections:
    """Every connection that the shell has opened and not yet reported closed."""

    __slots__ = (
        "_account",
        "_allowances",
        "_changed",
        "_chronicle",
        "_default_level",
        "_holdings",
        "_holds",
        "_questions",
        "_sessions",
        "_timers",
        "all",
        "apart",
    )

    def __init__(  # a connection ends in every room
        self,
        sessions: Sessions,
        questions: Questions,
        holds: Holds,
        holdings: Holdings,
        allowances: Allowances,
        changed: Changed,
        timers: Timers,
        account: Account,
        chronicle: Chronicle | None,
        default_level: int,
    ) -> None:
        self._sessions = sessions
        self._questions = questions
        self._holds = holds
        self._holdings = holdings
        self._allowances = allowances
        self._changed = changed
        self._timers = timers
        self._account = account
        self._chronicle = chronicle
        self._default_level = default_level
        #: In the order in which they were opened, so that what is done to all of them is done in the same order always.
        self.all: dict[Connection, None] = {}
        #: How many have another level than most: only then is it worth serving higher nodes first.
        self.apart = 0

    def open(  # what the shell knows of a listener
        self, now: float, listener: str, peer: str, max_level: int, node_level: int | None, *, has_header: bool
    ) -> Connection:
        """A network connection was accepted; the levels are those of its listener."""
        allowance = self._allowances.of(listener, is_known=False)
        conn = Connection(now, listener, peer, allowance, self._holdings.strangers, self._account.connections)
        conn.owner.take(Kind.CONNECTIONS, CONNECTION_BYTES)
        conn.max_level = max_level
        conn.level = min(max_level, self._default_level if node_level is None else node_level)
        conn.has_header = has_header
        self.all[conn] = None
        self._account.connections += 1
        conn.timer = self._timers.at(
            now + self._allowances.connect_timeout_s(listener),
            lambda due: self.shut(conn, "connect_timeout", due, text="no complete CONNECT in time"),
        )
        return conn

    def own(self, conn: Connection, owner: Owner) -> None:
        """It is known who a client is: what is kept of its connection is kept for its user."""
        for kind, size in _kept(conn):
            conn.owner.give(kind, size)
            owner.take(kind, size)
        conn.owner = owner

    def note_unparsed(self, conn: Connection, now: float) -> None:
        """Count what a connection has sent and was not parsed; where that is too much, somebody has to go."""
        size, owner = conn.waiting_bytes, conn.owner
        owner.take(Kind.UNPARSED, size - conn.unparsed_bytes)
        conn.unparsed_bytes = size
        if owner is self._holdings.strangers:
            if owner.kept[Kind.UNPARSED] > owner.bounds.bytes:
                # whoever holds most of it: an honest CONNECT is short, and comes whole
                largest = max((each for each in self.all if each.owner is owner), key=_unparsed)
                text = f"unfinished packets of {owner.name} may take {owner.bounds.bytes} bytes"
                self.shut(largest, "too_much_unknown", now, text=text)
        elif size > KEEPS_UP and conn.state is CONNECTED:
            text = owner.refusal(0) or ""
            if text:
                self.shut(conn, "quota_exceeded", now, reason=Reason.QUOTA_EXCEEDED, text=text)

    @staticmethod
    def note_unsent(conn: Connection, size: int) -> None:
        """Count what the shell has encoded for a connection and the network has not taken."""
        if size != conn.unsent_bytes:
            conn.owner.take(Kind.UNSENT, size - conn.unsent_bytes)
            conn.unsent_bytes = size

    def begin(self, conn: Connection) -> None:
        """A client was let in."""
        conn.move(State.CONNECTED)
        self.apart += conn.level != self._default_level
        self._timers.cancel(conn.timer)
        conn.timer = None

    def set_level(self, conn: Connection, level: int) -> None:
        """A client has another level as a node."""
        if conn.state is CONNECTED:
            self.apart += (level != self._default_level) - (conn.level != self._default_level)
        conn.level = level

    def watch(self, conn: Connection, now: float) -> None:
        """[MQTT-3.1.2-22]: silence for one and a half keep-alive intervals ends the connection."""
        deadline = conn.last_in + conn.keep_alive_s * 1.5
        if conn.hold is not None and conn.hold is not Hold.NOT_READING:
            # it is us who do not read; that has a limit of its own
            deadline = max(deadline, now + 1.0)
        if deadline <= now:
            text = f"nothing received for {now - conn.last_in:.1f} s, keep-alive is {conn.keep_alive_s} s"
            self.shut(conn, "keep_alive_timeout", now, reason=Reason.KEEP_ALIVE_TIMEOUT, text=text)
        else:
            conn.timer = self._timers.at(deadline, lambda due: self.watch(conn, due))

    # -- the end

    def closed(self, conn: Connection, now: float) -> None:
        """The network connection is gone."""
        if conn in self.all:
            if conn.state is not CLOSING:
                self._end(conn, "connection_lost", now, "")
            del self.all[conn]
            for kind, size in _kept(conn):
                conn.owner.give(kind, size)
            conn.unparsed_bytes = conn.unsent_bytes = conn.alias_bytes = conn.right_bytes = 0
            self._holdings.forget_idle(conn.user)

    def shut(  # who, under which name, and what is said about it
        self,
        conn: Connection,
        name: str,
        now: float,
        *,
        reason: Reason = Reason.SUCCESS,
        text: str = "",
        is_private: bool = False,
        server_reference: str = "",
    ) -> None:
        """Close a connection from our side; an MQTT 5 client is told why, unless the text is for the log alone."""
        if conn.state is CLOSING:
            return
        is_admitted = conn.state is CONNECTED and conn.hold is not Hold.COMMIT
        if is_admitted and conn.version == 5 and reason >= Reason.UNSPECIFIED_ERROR:
            conn.say(_farewell(conn, reason, "" if is_private else text, server_reference))
        self._end(conn, name, now, text)
        self._changed.mark(conn)

    def give_up(self, conn: Connection, text: str, names_another: bool, now: float) -> None:
        """A connection was held for too long; who else is there is not everybody's business where there are rules."""
        is_private = names_another and not self._questions.access.is_open
        self.shut(conn, "paused_too_long", now, reason=Reason.SERVER_BUSY, text=text, is_private=is_private)

    def refuse(self, conn: Connection, reason: Reason, text: str, now: float, *, server_reference: str = "") -> None:
        """[MQTT-3.1.4-2]: CONNACK with a reason, and perhaps where else to go, then close ([MQTT-3.2.2-7])."""
        # mosquitto's bridges set the top bit of the level and understand only the 3.1.1 answer
        version = 4 if conn.version & 0x7F < 5 else 5
        properties: Properties = {"reason_string": text[:1_024]} if text else {}
        elsewhere: Properties = {"server_reference": server_reference} if server_reference else {}
        data = encode(Connack(reason=reason, properties=properties | elsewhere), version)
        if len(data) > conn.max_packet:
            # [MQTT-3.2.2-19]
            data = encode(Connack(reason=reason, properties=elsewhere), version)
        if len(data) <= conn.max_packet:
            conn.say(data)
        self.shut(conn, f"refused_{reason.name.lower()}", now, text=text)

    def answer_violation(self, conn: Connection, error: ProtocolError, now: float) -> None:
        """[MQTT-4.13.1-1], [MQTT311-4.8.0-1]: close with the reason; before CONNACK the reason goes into CONNACK."""
        is_unsupported = error.reason is Reason.UNSUPPORTED_PROTOCOL_VERSION
        if conn.state is OPENED and (conn.version >= 5 or is_unsupported):
            # also for an older protocol name, such as MQIsdp: the answer of its time
            self.refuse(conn, error.reason, str(error), now)
        else:
            self.shut(conn, error.reason.name.lower(), now, reason=error.reason, text=str(error))

    def _end(self, conn: Connection, name: str, now: float, text: str) -> None:
        was_connected = conn.state is CONNECTED
        conn.move(State.CLOSING)
        self._account.closed[name] += 1
        said = f"{name}{': ' if text else ''}{text}"
        self._account.tell(Event("closed", conn.client_id, conn.peer, said, name not in _ORDERLY, name))
        self._questions.forget(conn)
        self._holds.forget(conn)
        self._timers.cancel(conn.timer)
        conn.timer = None
        conn.partial.clear()
        conn.owner.give(Kind.UNPARSED, conn.unparsed_bytes)
        conn.unparsed_bytes = 0
        if was_connected:
            self.apart -= conn.level != self._default_level
            if self._chronicle is not None:
                self._chronicle.happened(now, "disconnect", conn.client_id, why=name, text=text, peer=conn.peer)
            self._allowances.leave(conn.user, self._timers, now)
            self._sessions.detach(conn, now)


def _kept(conn: Connection) -> tuple[tuple[Kind, int], ...]:
    """What is counted of a connection, while it is open."""
    return (
        (Kind.CONNECTIONS, CONNECTION_BYTES + conn.alias_bytes),
        (Kind.UNPARSED, conn.unparsed_bytes),
        (Kind.UNSENT, conn.unsent_bytes),
        (Kind.RIGHTS, conn.right_bytes),
    )


def _unparsed(conn: Connection) -> int:
    return conn.unparsed_bytes


def _farewell(conn: Connection, reason: Reason, text: str, server_reference: str) -> bytes:
    """DISCONNECT with a reason, perhaps where else to go, and the reason in words if there is room for it."""
    elsewhere: Properties = {"server_reference": server_reference} if server_reference else {}
    properties: Properties = {"reason_string": text[:1_024]} if text else {}
    data = encode(Disconnect(reason=reason, properties=properties | elsewhere), 5)
    if len(data) > conn.max_packet:
        # [MQTT-3.14.2-3]
        data = encode(Disconnect(reason=reason, properties=elsewhere), 5)
    return data if len(data) <= conn.max_packet else encode(Disconnect(reason=reason), 5)
