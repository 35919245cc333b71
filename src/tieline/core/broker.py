"""One broker without I/O: the state, and the few doors through which a shell drives it.

A shell opens a connection, feeds it what it reads, writes what :meth:`Broker.fill` returns, and says when the network
connection is gone.  ``dirty`` lists the connections on which something changed: bytes to write, a hold begun or
ended, or the connection is to be closed.  Time comes in as an argument; :meth:`timer` says when :meth:`tick` is due.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieline.conf.schema import Settings, bound, seconds
from tieline.core.account import Account, Event
from tieline.core.answers.demand import Demand
from tieline.core.answers.system import System
from tieline.core.connection import CLOSING, CONNECTED, OPENED, Connection, Hold
from tieline.core.durable.capture import Capture
from tieline.core.durable.chronicle import Chronicle
from tieline.core.durable.journal import Journal
from tieline.core.errors import Again
from tieline.core.inbound import connect, will
from tieline.core.inbound.allowance import Allowances
from tieline.core.inbound.chunk import ingest
from tieline.core.inbound.meter import pace
from tieline.core.inbound.producers import Producers
from tieline.core.inbound.taken_over import Unrouted
from tieline.core.outbound import writer as egress
from tieline.core.outbound.retained import Retained
from tieline.core.ports import (
    Access,
    Allowed,
    Aside,
    Everyone,
    Judge,
    Memory,
    Pending,
    Refused,
    Store,
    Verdict,
    at_once,
)
from tieline.core.routing.classes import Claims, Classes
from tieline.core.routing.heat import HeatSource
from tieline.core.routing.routes import Routes
from tieline.core.timers import Timers
from tieline.match.change import Memory as References
from tieline.match.events import Events
from tieline.wire.codec import encode
from tieline.wire.errors import ProtocolError
from tieline.wire.packets import Disconnect
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from tieline.core.routing.routes import Route
    from tieline.core.session import Session
    from tieline.match.index import AdaptiveIndex


#: What a client still gets of its queue when the server shuts down.
LAST_BYTES = 1_048_576


class Broker:
    """Sessions, subscriptions and connections of one broker."""

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
        self.settings = settings or Settings()
        limits = self.settings.limits
        self.access: Access = access or Everyone()
        #: What each client is allowed, by its listener and its user.
        self.allowances = Allowances(self.settings)
        self.journal = Journal(store or Memory())
        #: QoS 2 messages that are routed when they are permanent.
        self.unrouted = Unrouted(self)
        #: Who publishes messages that may be sent again, and how far each has got.
        self.producers = Producers(self.journal, bound(limits.producers))
        self.account = Account()
        self.timers = Timers()
        self.classes = Classes(self.settings)
        self.claims = Claims(self.settings)
        #: Order may matter: topic rules exist, a policy was chosen, or somebody has claimed a level.  Until then every
        #: queue is first in, first out, and nothing is spent on it.
        self.has_levels = (
            len(self.classes) > 0 or not self.claims.is_open or self.settings.priority.policy != "feedback"
        )
        self.default_level = self.settings.priority.default_level
        self.heat_deliveries = self.settings.priority.heat_deliveries
        self.events = Events(self.settings)
        #: What subscriptions with changed() or delta() were sent last.
        self.memory = References(bound(self.settings.content.change_topics), bound(self.settings.content.change_total))
        self.routes = Routes(
            limits.route_cache,
            self.classes,
            self.events,
            tend=self._tend,
            counts_deliveries=self.heat_deliveries > 0,
        )
        #: Whether topics are as hot as the broker finds them, or as somebody says.
        self.heat_source = HeatSource(self)
        self._heat_period_s = seconds(self.settings.priority.period)
        self.retained = Retained(bound(limits.retained_messages), bound(limits.retained_bytes))
        #: Every session, by client id, whether its client is connected or not.
        self.sessions: dict[str, Session] = {}
        #: Every connection that the shell has opened and not yet reported closed.
        self.connections: set[Connection] = set()
        #: Connections that the shell should look at; each is in it once and knows so.
        self.dirty: list[Connection] = []
        #: The sum of the bytes in all queues.
        self.queued_bytes = 0
        self.max_queued_bytes = bound(limits.queue_bytes_total)
        self.max_packet = limits.packet_bytes
        self.allows_qos_1 = self.settings.mqtt.maximum_qos > 0
        self.refuses_when_full = self.settings.mqtt.full != "oldest"
        self._aside = aside
        self._name_client = name_client
        self._named = 0
        #: Pending access questions: token to connection.
        self._asked: dict[int, Connection] = {}
        #: Connections that wait for the store.
        self._behind: list[Connection] = []
        if not self.journal.is_volatile:
            self.retained.on_expired = lambda topic: self.journal.cleared(topic.encode())
        self.system = System(self, now)
        log = self.settings.log
        is_kept = not self.journal.is_volatile
        #: Writes down messages of captured topics, and what happens; None where nothing is.
        self.capture = Capture(self, log.capture) if log.capture and is_kept else None
        self.chronicle = Chronicle(self, now) if log.events == "on" and is_kept else None
        #: Counts who publishes what, while somebody has asked for it.
        self.demand = Demand(self)
        #: Who is shown every message that is accepted; None where nobody looks.
        self.witness: Capture | Demand | None = self.capture
        #: Nothing may take a way past those.
        self.is_observed = self.capture is not None or self.chronicle is not None
        if self.chronicle is not None:
            self.account.on_drop = self.chronicle.dropped
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
        allowance = self.allowances.of(listener, is_known=False)
        conn = Connection(now, listener, peer, allowance, self.account.connections)
        conn.max_level = max_level
        conn.level = min(max_level, self.default_level if node_level is None else node_level)
        conn.has_header = has_header
        self.connections.add(conn)
        self.account.connections += 1
        conn.timer = self.timers.at(
            now + self.allowances.connect_timeout_s(listener),
            lambda due: self.shut(conn, "connect_timeout", due, text="no complete CONNECT in time"),
        )
        return conn

    def receive(self, conn: Connection, data: bytes, now: float) -> None:
        """Bytes arrived."""
        if conn.state is CLOSING or not data:
            return
        self.account.bytes_in += len(data)
        if not self.journal.is_volatile and self._is_behind and conn.hold is None:
            self.hold_for_store(conn, now)
        messages, waiting = self.account.publishes_in, len(conn.partial) + len(data)
        try:
            ingest(self, conn, data, now)
        except ProtocolError as error:
            self._answer_violation(conn, error, now)
        if conn.meters:
            pace(self, conn, self.account.publishes_in - messages, waiting - len(conn.partial), now)
        if not self.journal.is_volatile:
            self.seal()

    def seal(self) -> None:
        """Hand over to the store what has changed."""
        self._let_go(self.journal.seal())

    def fill(self, conn: Connection, limit: int, now: float) -> bytes:
        """What to write next, about ``limit`` bytes; fewer when nothing more may be sent now."""
        data = egress.fill(self, conn, limit, now)
        if not self.journal.is_volatile:
            self.seal()
        if conn.hold is Hold.NOT_READING and not conn.control_bytes:
            self.timers.at(now, lambda due: self.resume(conn, due))
        return data

    def closed(self, conn: Connection, now: float) -> None:
        """The network connection is gone."""
        if conn in self.connections:
            if conn.state is not CLOSING:
                self._end(conn, "connection_lost", now, "")
                if not self.journal.is_volatile:
                    self.seal()
            self.connections.discard(conn)

    def timer(self) -> float | None:
        """When :meth:`tick` should be called at the latest."""
        return self.timers.next()

    def tick(self, now: float) -> None:
        """Do what is due."""
        self.timers.fire(now)
        if not self.journal.is_volatile:
            self.seal()

    def committed(self, token: int) -> None:
        """The store has made everything up to this token permanent."""
        self._let_go(self.journal.committed(token))
        self.catch_up()

    def catch_up(self) -> None:
        """Let those go on that were held because there was too much to be made permanent or to be routed."""
        if self._behind and not self._is_behind and not self.journal.trouble:
            behind, self._behind = self._behind, []
            for conn in behind:
                self.timers.at(0.0, lambda due, conn=conn: self._go_on(conn, Hold.STORE, due))  # type: ignore[misc]

    def store_is(self, trouble: str, now: float) -> None:
        """The store has no room, for this reason, or has room again."""
        self.journal.trouble = trouble
        self.account.tell(Event("store", "", "", trouble or "the store has room again", is_trouble=bool(trouble)))
        self.system.publish("$SYS/broker/tieline/store", trouble or "in order", now)
        if not trouble:
            self.catch_up()

    @property
    def _is_behind(self) -> bool:
        return self.journal.is_behind or self.unrouted.is_behind

    def _let_go(self, changed: list[Connection]) -> None:
        """The store has made permanent what these connections waited for, and perhaps messages to be routed."""
        if self.journal.routable:
            # first: what a client sends after its next CONNACK must not come before what it sent earlier
            self.unrouted.ready(self.journal.routable)
            self.journal.routable = []
        for conn in changed:
            self.mark(conn)
            if conn.hold is Hold.COMMIT:
                self.timers.at(0.0, lambda due, conn=conn: self._go_on(conn, Hold.COMMIT, due))  # type: ignore[misc]

    def _go_on(self, conn: Connection, why: Hold, now: float) -> None:
        if conn.hold is why:
            self.resume(conn, now)

    def decided(self, token: int, verdict: Allowed | Refused, now: float) -> None:
        """A pending access question was answered."""
        conn = self._asked.pop(token, None)
        if conn is None or conn.state is CLOSING:
            return
        conn.verdicts[conn.asked.pop(token)] = verdict
        if conn.hold is Hold.VERDICT:
            self.resume(conn, now)

    def stop(self, now: float) -> None:
        """The server shuts down: wills are published while their receivers are still connected, then all are told.

        A will with a delay waits for the restart if the store keeps its session (3.1.2.5 allows that); without a store
        the delay cannot be waited for.
        """
        while len(self.unrouted):
            self.unrouted.route(now)
        for session in list(self.sessions.values()):
            if not (session.is_kept and will.is_delayed(session)):
                will.publish(self, session, now)
        for conn in list(self.connections):
            if conn.state is CONNECTED:
                # what waits for the client goes out before the goodbye; afterwards its session may be gone
                last = egress.fill(self, conn, LAST_BYTES, now)
                self.account.bytes_out -= len(last)  # counted when it is written
                conn.control.append(last)
                conn.control_bytes += len(last)
            self.shut(conn, "server_shutdown", now, reason=Reason.SERVER_SHUTTING_DOWN)
        if self.chronicle is not None:
            self.chronicle.close(now)

    # -- what the core's own parts call

    def judge_anew(self) -> None:
        """Access decides otherwise than before, or for the first time: nothing remembered of its verdicts holds."""
        access = self.access
        self.routes.judge = access if isinstance(access, Judge) and not access.is_open else None
        self.routes.reset()
        for conn in self.connections:
            self.guard(conn)

    def guard(self, conn: Connection) -> None:
        """Look at the topics of a connection one by one where they may have to be refused."""
        conn.publishable.clear()
        is_shallow = conn.allowance.topic_levels < self.settings.limits.topic_levels
        conn.is_guarded = is_shallow or not self.access.is_open

    def heat(self, route: Route, messages: int, now: float) -> float:
        """How hot the topic of these messages is."""
        if not self.heat_deliveries or route.is_given:
            return route.heat
        return route.heat_with(self.heat_deliveries, messages, int(now / self._heat_period_s))

    def mark(self, conn: Connection) -> None:
        """The shell should look at this connection."""
        if not conn.is_dirty:
            conn.is_dirty = True
            self.dirty.append(conn)

    def shut(  # who, under which name, and what is said about it
        self,
        conn: Connection,
        name: str,
        now: float,
        *,
        reason: Reason = Reason.SUCCESS,
        text: str = "",
        is_private: bool = False,
    ) -> None:
        """Close a connection from our side; an MQTT 5 client is told why, unless the text is for the log alone."""
        if conn.state is CLOSING:
            return
        is_admitted = conn.state is CONNECTED and conn.hold is not Hold.COMMIT
        if is_admitted and conn.version == 5 and reason >= Reason.UNSPECIFIED_ERROR:
            conn.say(_farewell(conn, reason, "" if is_private else text))
        self._end(conn, name, now, text)
        self.mark(conn)

    def _end(self, conn: Connection, name: str, now: float, text: str) -> None:
        was_connected = conn.state is CONNECTED
        conn.state = CLOSING
        self.account.closed[name] += 1
        is_trouble = name not in ("disconnect", "server_shutdown")
        said = f"{name}{': ' if text else ''}{text}"
        self.account.tell(Event("closed", conn.client_id, conn.peer, said, is_trouble, name))
        for token in conn.asked:
            self._asked.pop(token, None)
        if conn.waits_for is not None:
            conn.waits_for.blocked_publishers.remove(conn)
            conn.waits_for = None
        if was_connected and self.chronicle is not None:
            self.chronicle.happened(now, "disconnect", conn.client_id, why=name, text=text, peer=conn.peer)
        if was_connected or conn.timer:
            connect.detach(self, conn, now)

    def _answer_violation(self, conn: Connection, error: ProtocolError, now: float) -> None:
        """[MQTT-4.13.1-1], [MQTT311-4.8.0-1]: close with the reason; before CONNACK the reason goes into CONNACK."""
        if conn.state is OPENED and (
            conn.version >= 5 or (conn.version and error.reason is Reason.UNSUPPORTED_PROTOCOL_VERSION)
        ):
            connect.refuse(self, conn, error.reason, str(error), now)
        elif conn.state is OPENED and error.reason is Reason.UNSUPPORTED_PROTOCOL_VERSION:
            # an older protocol name, such as MQIsdp: the answer of its time
            connect.refuse(self, conn, error.reason, str(error), now)
        else:
            self.shut(conn, error.reason.name.lower(), now, reason=error.reason, text=str(error))

    def hold_for_store(self, conn: Connection, now: float) -> None:
        """Stop reading from a connection until the store has caught up."""
        self.suspend(conn, Hold.STORE, now)
        self._behind.append(conn)

    def suspend(self, conn: Connection, why: Hold, now: float, waits_for: Session | None = None) -> None:
        """Stop reading from a connection until :meth:`resume`."""
        conn.hold = why
        self.account.holds[why] += 1
        # every client of a store waits for it once: nothing to tell
        if now >= conn.told_hold + 1.0 and why is not Hold.COMMIT:
            conn.told_hold = now
            self.account.tell(Event("held", conn.client_id, conn.peer, why.value, why=why.value))
        if waits_for is not None and conn.waits_for is not waits_for:
            conn.waits_for = waits_for
            waits_for.blocked_publishers.append(conn)
        if why not in (Hold.NOT_READING, Hold.RATE) and conn.hold_timer is None:
            what = "no access decision came"
            names_another = False
            if waits_for:
                what = f"the queue of {waits_for.client_id} stayed full"
                names_another = not self.access.is_open
            elif why in (Hold.COMMIT, Hold.STORE):
                what = "the store did not keep up"
            conn.hold_timer = self.timers.at(
                now + self.settings.mqtt.pause_max_s,
                lambda due: self.shut(
                    conn, "paused_too_long", due, reason=Reason.SERVER_BUSY, text=what, is_private=names_another
                ),
            )
        self.mark(conn)

    def postpone(self, conn: Connection, now: float) -> None:
        """Go on with a connection after the others have had their turn."""
        conn.hold = Hold.TURN
        self.timers.at(now, lambda due: self.resume(conn, due))
        self.mark(conn)

    def tell_refusal(self, conn: Connection, text: str, now: float, *, why: str) -> None:
        """Add a refusal to the story, at most once a second for one connection."""
        if now >= conn.told_refusal + 1.0:
            conn.told_refusal = now
            self.account.tell(Event("refused", conn.client_id, conn.peer, text, is_trouble=True, why=why))

    def resume(self, conn: Connection, now: float) -> None:
        """Go on with a connection that was held: what it had sent is parsed now."""
        if conn.hold is None or conn.state is CLOSING:
            return
        data, patience = conn.release()
        if data:
            self.account.bytes_in -= len(data)  # counted when it arrived
            self.receive(conn, data, now)
        if conn.hold_timer is not None and len(conn.partial) == len(data):
            # held again, without any progress: the first deadline stands
            self.timers.cancel(conn.hold_timer)
            conn.hold_timer = patience
        else:
            self.timers.cancel(patience)
        self.mark(conn)

    def release_publishers(self, session: Session, now: float) -> None:
        """There is room in a queue again: its waiting publishers go on, one after the other while the room lasts.

        From the timer, not from inside a write.
        """
        while session.blocked_publishers:
            conn = session.blocked_publishers.popleft()
            conn.waits_for = None
            if conn.hold is Hold.QUEUE_FULL:
                self.timers.at(now, lambda due, conn=conn: self._release(conn, session, due))  # type: ignore[misc]
                return

    def _release(self, conn: Connection, session: Session, now: float) -> None:
        self.resume(conn, now)
        if session.queue.is_half_empty or self.sessions.get(session.client_id) is not session:
            self.release_publishers(session, now)

    def ask(self, conn: Connection, what: str, subject: str, now: float) -> Allowed | Refused:
        """The verdict on what a client wants; raises Again, with the connection held, while it is pending."""
        login = conn.login
        assert login is not None
        verdict: Verdict | None = conn.verdicts.get((what, subject))
        if verdict is None:
            if what == "connect":
                verdict = self.access.connect(login)
            elif what == "publish":
                verdict = self.access.publish(login, subject)
            else:
                verdict = self.access.subscribe(login, subject)
        if isinstance(verdict, Pending):
            conn.asked[verdict.token] = (what, subject)
            self._asked[verdict.token] = conn
            self.suspend(conn, Hold.VERDICT, now)
            raise Again
        return verdict

    def new_client_id(self) -> str:
        """A client id for a client that brought none."""
        while True:
            self._named += 1
            name = self._name_client() if self._name_client else f"auto-{self._named}"
            if name not in self.sessions:
                return name

    def _tend(self, index: AdaptiveIndex) -> None:
        """Let an index that has grown, shrunk or worn be made anew, beside everything else."""
        job = index.begin_rebuild()

        def done(error: Exception | None) -> None:
            if error is None:
                index.adopt(job)
            else:
                index.give_up(job)
                self.account.tell(Event("index_rebuild_failed", "", "", repr(error), is_trouble=True))

        self._aside(job.run, done)


def _farewell(conn: Connection, reason: Reason, text: str) -> bytes:
    """DISCONNECT with a reason, and the reason in words if there is room for it."""
    properties: Properties = {"reason_string": text[:1_024]} if text else {}
    data = encode(Disconnect(reason=reason, properties=properties), 5)
    if len(data) > conn.max_packet:
        # [MQTT-3.14.2-3]
        data = encode(Disconnect(reason=reason), 5)
    return data
