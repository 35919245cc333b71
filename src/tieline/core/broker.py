"""One broker without I/O: the few doors through which a shell drives its rooms.

A shell opens a connection, feeds it what it reads, writes what :meth:`Broker.fill` returns, and says when the network
connection is gone.  ``dirty`` lists the connections on which something changed: bytes to write, a hold begun or ended,
or the connection is to be closed.  When a turn is over it calls :meth:`Broker.seal`.  Time comes in as an argument;
:meth:`Broker.timer` says when :meth:`Broker.tick` is due.
"""

from __future__ import annotations

from collections.abc import Callable, KeysView

from tieline.conf.quantities import bound
from tieline.conf.schema import Settings
from tieline.core.account import Event
from tieline.core.client import CLOSING, CONNECTED, Connection, Hold, Session
from tieline.core.elsewhere import Elsewhere
from tieline.core.inbound.will import delay_s
from tieline.core.message import Message
from tieline.core.ports import Access, Allowed, Aside, Everyone, Memory, Portion, Refused, Store, at_once
from tieline.core.receiver import Entry, Outlet
from tieline.core.restore import Restoring, StoredState, grant_of, message_of
from tieline.core.rooms import Rooms
from tieline.wire.errors import ProtocolError
from tieline.wire.reason import Reason

#: What a client still gets of its queue when the server shuts down.
LAST_BYTES = 1_048_576


class Broker(Rooms):
    """The doors through which a shell drives a broker."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        access: Access | None = None,
        store: Store | None = None,
        aside: Aside = at_once,
        name_client: Callable[[], str] | None = None,
        now: float = 0.0,
    ) -> None:
        super().__init__(settings or Settings(), access or Everyone(), store or Memory(), aside, name_client, now)
        self.holds.parse = self._parse
        self.taken_over.on_caught_up = self._catch_up
        self.judge_anew()

    # -- what a shell calls

    def open(
        self,
        now: float,
        *,
        listener: str = "",
        peer: str = "",
        max_level: int = 3,
        node_level: int | None = None,
        has_header: bool = False,
    ) -> Connection:
        """A network connection was accepted; the levels are those of its listener."""
        return self._connections.open(now, listener, peer, max_level, node_level, has_header=has_header)

    def receive(self, conn: Connection, data: bytes, now: float) -> None:
        """Parse what a connection has sent, and queue what follows from it; what comes after its end is ignored."""
        if conn.state is not CLOSING and data:
            self.account.bytes_in += len(data)
            self._parse(conn, data, now)

    def pass_on(self, conn: Connection, data: bytes, now: float) -> list[Outlet] | None:
        """To whom these bytes, which have just arrived, may be written as they are; None if they must be received."""
        return self._passing.pass_on(conn, data, now)

    def take(self, conn: Connection, data: bytes, now: float, is_alone: bool) -> None:
        """Bytes have arrived: where nothing else has, what can be passed on at once is; all else is received."""
        outlets = self._passing.pass_on(conn, data, now) if is_alone else None
        if outlets is None:
            self.receive(conn, data, now)
            return
        for outlet in outlets:
            outlet.write(data, now)

    def fill(self, conn: Connection, limit: int, now: float) -> list[bytes]:
        """What to write next, in pieces, about ``limit`` bytes; fewer when nothing more may be sent now."""
        pieces = self.writer.fill(conn, limit, now)
        if conn.hold is Hold.NOT_READING and not conn.control_bytes:
            self.holds.resume_soon(conn, Hold.NOT_READING)
        return pieces

    def closed(self, conn: Connection, now: float) -> None:
        """The network connection is gone; it may be said twice."""
        self._connections.closed(conn, now)

    def shut(self, conn: Connection, name: str, now: float, *, reason: Reason = Reason.SUCCESS, text: str = "") -> None:
        """Close a connection for a reason that the shell knows."""
        is_sent_elsewhere = reason is Reason.USE_ANOTHER_SERVER
        reference = ""
        if is_sent_elsewhere:
            reference = self.settings.mqtt.server_reference or self._sessions.elsewhere.reference()
        self._connections.shut(conn, name, now, reason=reason, text=text, server_reference=reference)

    def move(self, conn: Connection, where: str, now: float) -> bool:
        """Send a client to another broker, if it has said that it may be; it says itself whether it goes."""
        if not conn.is_movable or conn.session is None:
            return False
        text = "its messages have a shorter way there"
        self._connections.shut(conn, "moved", now, reason=Reason.SERVER_MOVED, text=text, server_reference=where)
        return True

    def note_unsent(self, conn: Connection, size: int) -> None:
        """The shell has encoded so much for a connection that the network has not taken."""
        if conn in self._connections.all:
            self._connections.note_unsent(conn, size)

    def note_framed(self, conn: Connection, framed: int, now: float) -> None:
        """The layers between a connection and the network hold so much of what it has sent."""
        if framed != conn.framed_bytes and conn.state is not CLOSING:
            conn.framed_bytes = framed
            self._connections.note_unparsed(conn, now)

    def take_dirty(self) -> list[Connection]:
        """The connections on which something changed; the caller clears the mark of each as it comes to it."""
        return self.delivery.changed.take()

    def mark(self, conn: Connection) -> None:
        """The shell wants to look at a connection in its next turn."""
        self.delivery.changed.mark(conn)

    def timer(self) -> float | None:
        """When :meth:`tick` should be called at the latest."""
        return self.timers.next()

    def tick(self, now: float) -> None:
        """Do what is due by now; what that sets for now or earlier waits for the next call."""
        self.timers.fire(now)

    def seal(self) -> None:
        """A turn is over: hand over to the store what has changed in it."""
        if not self.journal.is_volatile:
            self._let_go(self.journal.seal())

    def committed(self, token: int) -> None:
        """The store has made everything up to this token permanent."""
        self._let_go(self.journal.committed(token))
        self._catch_up()

    def read_back(self, portion: Portion, now: float) -> None:
        """The store brings a part of what waited in it alone: for a client that is back, or of a session that ended."""
        session = self.spills.sessions.get(portion.session)
        if session is None:
            return
        kept_s = self.journal.kept_s
        entries: list[Entry] = [
            (message_of(row, kept_s, self._sessions, now), grant_of(session, terms)) for row, terms in portion.entries
        ]
        self.spills.took(session, portion, [item.size for item, _ in entries])
        if session.is_over:
            self.estates.settle(session, entries, now)
            return
        for item, grant in entries:
            assert isinstance(item, Message), "what is stored is no burst"
            self.delivery.requeue(session, item, grant)
        session.queue.may_hold()
        if session.connection is not None:
            self.mark(session.connection)

    def store_is(self, trouble: str, now: float) -> None:
        """The store has no room, for this reason, or has room again."""
        self.journal.trouble = trouble
        self.account.tell(Event("store", "", "", trouble or "the store has room again", is_trouble=bool(trouble)))
        self.system.publish("$SYS/broker/tieline/store", trouble or "in order", now)
        if not trouble:
            self._catch_up()

    def decided(self, token: int, verdict: Allowed | Refused, now: float) -> None:
        """A pending access question was answered: the client who waited for it goes on."""
        self.questions.decided(token, verdict, now)

    def restore(self, state: StoredState, now: float) -> None:
        """Begin with what the predecessor left, before the first client is let in."""
        restoring = Restoring(
            self._sessions,
            self._subscribing,
            self.wills,
            self.delivery,
            self.retained,
            self.replays,
            self.window,
            self.producers,
            self.spills,
            self.estates,
            self.taken_over,
            self.journal,
            self.account,
        )
        restoring.restore(state, now)
        restoring.go_on(now, self._sessions.elsewhere.restored(now))

    def end_session(self, session: Session, now: float) -> None:
        """End a session whose client is away, for a reason that the caller knows."""
        self._sessions.end(session, now)

    def meet(self, elsewhere: Elsewhere) -> None:
        """Other brokers keep sessions too: they are asked for those that are not here."""
        self._sessions.elsewhere = elsewhere

    def stop(self, now: float) -> None:
        """The server shuts down: wills are published while their receivers are still connected, then all are told.

        A will with a delay waits for the restart if the store keeps its session (3.1.2.5 allows that); without a store
        the delay cannot be waited for.
        """
        while len(self.taken_over):
            self.taken_over.route(now)
        for session in list(self.sessions.values()):
            if not (session.is_kept and delay_s(session)):
                self.wills.publish(session, now)
        self.wills.finish(now)
        self.delivery.late.finish(now)
        for conn in list(self.connections):
            if conn.state is CONNECTED:
                # what waits for the client goes out before the goodbye; afterwards its session may be gone
                last = b"".join(self.writer.fill(conn, LAST_BYTES, now))
                self.account.bytes_out -= len(last)  # counted when it is written
                conn.control.append(last)
                conn.control_bytes += len(last)
            self._connections.shut(conn, "server_shutdown", now, reason=Reason.SERVER_SHUTTING_DOWN)
        if self.chronicle is not None:
            self.chronicle.close(now)

    def renew(self, settings: Settings) -> None:
        """Act by other settings from now on, as far as they can change under connected clients; access is renewed.

        Which settings those are is decided by whoever calls this (:mod:`tieline.net.reload`); the others are as before.
        """
        self.settings = settings
        for room in (self._connecting, self.objections, self._publishing, self._subscribing, self.system):
            room.settings = settings
        self.delivery.pool.most = bound(settings.limits.queue_bytes_total)
        self.delivery.absent = settings.mqtt.absent
        self.spills.renew(settings.limits)
        self.holds.pause_max_s = settings.mqtt.pause_max_s
        self.allowances.renew(settings)
        self.holdings.renew()
        self.producers.limit(bound(settings.limits.producers))
        self.priorities.renew(settings)
        self.routes.classify(self.priorities.classes)
        for conn in self.connections:
            if conn.state is CONNECTED:
                self._connecting.renew_terms(conn)
        self._sessions.renew(settings)
        self.judge_anew()

    def judge_anew(self) -> None:
        """Access decides otherwise than before: nothing remembered of its verdicts holds."""
        self.questions.begin_anew(self.connections, self.settings.limits.topic_levels)

    # -- what others look at

    @property
    def sessions(self) -> dict[str, Session]:
        """Every session, by client id, whether its client is connected or not."""
        return self._sessions.by_id

    @property
    def connections(self) -> KeysView[Connection]:
        """Every connection that the shell has opened and not yet reported closed, oldest first."""
        return self._connections.all.keys()

    @property
    def dirty(self) -> list[Connection]:
        """Connections that the shell should look at."""
        return self.delivery.changed.connections

    @property
    def access(self) -> Access:
        """Whom the broker asks who may do what."""
        return self.questions.access

    @property
    def queued_bytes(self) -> int:
        """The sum of the bytes in all queues."""
        return self.delivery.pool.bytes

    @property
    def serves_by_level(self) -> bool:
        """Whether some connections should be served before others."""
        return self._connections.apart > 0

    # -- what the rooms call through the broker, because they stand below one another

    def _parse(self, conn: Connection, data: bytes, now: float) -> None:
        """Parse what arrived, just now or while the connection was held."""
        if not self.journal.is_volatile and self._is_behind and conn.hold is None:
            self.holds.wait_for_store(conn, now)
        messages, waiting = self.account.publishes_in, len(conn.partial) + len(data)
        try:
            self._chunks.take(conn, data, now)
        except ProtocolError as error:
            self._connections.answer_violation(conn, error, now)
        if conn.waiting_bytes != conn.unparsed_bytes and conn.state is not CLOSING:
            self._connections.note_unparsed(conn, now)
        if conn.meters:
            self.holds.pace(conn, self.account.publishes_in - messages, waiting - len(conn.partial), now)

    @property
    def _is_behind(self) -> bool:
        return self.journal.is_behind or self.taken_over.is_behind

    def _catch_up(self) -> None:
        """Let those go on that were held because there was too much to be made permanent or to be routed."""
        if not self._is_behind and not self.journal.trouble:
            self.holds.resume_those_behind()

    def _let_go(self, changed: list[Connection]) -> None:
        """The store has made permanent what these connections waited for, and perhaps messages to be routed."""
        if self.journal.routable:
            # first: what a client sends after its next CONNACK must not come before what it sent earlier
            self.taken_over.ready(self.journal.routable)
            self.journal.routable = []
        for conn in changed:
            self.mark(conn)
            if conn.hold is Hold.COMMIT:
                self.holds.resume_soon(conn, Hold.COMMIT)
