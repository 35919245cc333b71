"""CONNECT and DISCONNECT: who is let in, on which terms, and with which session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from msgspec import structs

from tieline.conf.quantities import UNLIMITED, bound
from tieline.conf.schema import Settings
from tieline.core.account import Account, Event
from tieline.core.allowance import Allowances
from tieline.core.client import NEVER, Changed, Connection, Hold, Session
from tieline.core.durable.chronicle import Chronicle
from tieline.core.durable.journal import Journal
from tieline.core.holdings import session_bytes, will_bytes
from tieline.core.inbound.connections import Connections
from tieline.core.inbound.holds import Holds
from tieline.core.inbound.questions import Questions
from tieline.core.inbound.sessions import Sessions
from tieline.core.inbound.will import Wills
from tieline.core.ports import Allowed, Login, Refused
from tieline.core.routing.classes import UNKNOWN, claimed_level
from tieline.core.routing.priorities import Priorities
from tieline.wire.encode import encode
from tieline.wire.errors import Violation
from tieline.wire.packets import Connack, Connect, Disconnect, Will
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason
from tieline.wire.topics import check_name

_MQTT_5: Final = 5
#: The user property of a CONNECT that lets this broker send the client to another one for the sake of links.
MOVABLE: Final = ("$move", "yes")


class Connecting:
    """Handles CONNECT and DISCONNECT, and renews the terms of those who are in."""

    def __init__(  # a client is let into every room
        self,
        settings: Settings,
        connections: Connections,
        sessions: Sessions,
        wills: Wills,
        questions: Questions,
        holds: Holds,
        allowances: Allowances,
        priorities: Priorities,
        journal: Journal,
        changed: Changed,
        account: Account,
        chronicle: Chronicle | None,
        name_client: Callable[[], str] | None,
    ) -> None:
        self.settings = settings
        self._connections = connections
        self._sessions = sessions
        self._wills = wills
        self._questions = questions
        self._holds = holds
        self._allowances = allowances
        self._priorities = priorities
        self._journal = journal
        self._changed = changed
        self._account = account
        self._chronicle = chronicle
        self._name_client = name_client
        self._named = 0

    def on_connect(self, conn: Connection, packet: Connect, now: float) -> None:
        """Admit a client, or refuse it with a reason.

        Who it is comes first: what it may claim, and whose session it may continue, depends on that.
        """
        conn.version = packet.version
        conn.is_movable = packet.version == _MQTT_5 and MOVABLE in packet.properties.get("user_property", ())
        conn.max_packet = packet.properties.get("maximum_packet_size", UNLIMITED)
        refuse = self._connections.refuse
        client_id = packet.client_id
        if not client_id:
            if packet.version == 4 and not packet.clean_start:
                # [MQTT311-3.1.3-8]
                refuse(conn, Reason.CLIENT_IDENTIFIER_NOT_VALID, "an empty client id needs a clean session", now)
                return
            # [MQTT-3.1.3-6], [MQTT-3.1.3-7]
            client_id = conn.login.client_id if conn.login else self._new_client_id()
        conn.login = Login(
            client_id=client_id,
            username=packet.username,
            password=packet.password,
            listener=conn.listener,
            peer=conn.peer,
            certificate_user=conn.identify() if conn.identify is not None else None,
        )
        verdict = self._admit(conn, packet, now)
        if isinstance(verdict, Refused):
            refuse(conn, verdict.reason, verdict.rule, now)
            return
        self._claim_level(conn, packet, now)
        refusal = self._why_not(conn, packet, now)
        if refusal is None:
            refusal = self._sessions.elsewhere.seek(conn, now, is_clean=packet.clean_start)
        if refusal is not None:
            is_sent_elsewhere = refusal.reason is Reason.USE_ANOTHER_SERVER
            reference = self._reference() if is_sent_elsewhere else ""
            refuse(conn, refusal.reason, refusal.rule, now, server_reference=reference)
            return
        expiry_s, keep_alive_s = self._terms(packet)
        answer = Connack(properties=self._announce(conn, packet, client_id, expiry_s, keep_alive_s))
        if conn.max_packet < UNLIMITED and len(encode(answer, conn.version)) > conn.max_packet:
            # [MQTT-3.1.2-24] a client that cannot take our CONNACK cannot be told our terms
            refuse(conn, Reason.PACKET_TOO_LARGE, "the CONNACK is larger than the client allows", now)
            return
        session, was_present = self._take_session(conn, packet, now)
        session.expiry_s = expiry_s
        conn.keep_alive_s = keep_alive_s
        self._attach(conn, session, packet, now)
        # [MQTT-3.1.4-5], [MQTT-3.2.0-2], [MQTT-3.2.2-2], [MQTT-3.2.2-3], [MQTT311-3.2.2-2], [MQTT311-3.2.2-3]
        answer.session_present = was_present
        if self._journal.noted:
            # a client that is told of its session, or of the end of an old one, must find it so after a crash
            self._journal.acknowledge(conn, encode(answer, conn.version))
            self._holds.suspend(conn, Hold.COMMIT, now)
        else:
            conn.say(encode(answer, conn.version))
        self._changed.mark(conn)
        self._tell(conn, session, now, was_present=was_present)

    def _tell(self, conn: Connection, session: Session, now: float, *, was_present: bool) -> None:
        client_id, user = session.client_id, conn.user
        if self._chronicle is not None:
            self._chronicle.happened(
                now,
                "connect",
                client_id,
                peer=conn.peer,
                listener=conn.listener,
                user=user,
                version=conn.version,
                epoch=session.number,
                session_present=was_present,
            )
        version = "5" if conn.version == 5 else "3.1.1"
        text = f"MQTT {version}, {'session resumed' if was_present else 'new session'}"
        if user is not None:
            text += f", user {user}"
        self._account.tell(Event("connected", client_id, conn.peer, text))

    # -- whether

    def _admit(self, conn: Connection, packet: Connect, now: float) -> Allowed | Refused:
        """Who the client is, and what it is allowed; or why it is not let in."""
        login = conn.login
        assert login is not None
        if "authentication_method" in packet.properties:
            # [MQTT-4.12.0-1]
            return Refused("no enhanced authentication is configured", Reason.BAD_AUTHENTICATION_METHOD)
        verdict = self._questions.ask(conn, "connect", "", now)
        if isinstance(verdict, Refused):
            return verdict
        user = verdict.name_of(login)
        # the password is not kept any longer than it is needed
        conn.login = structs.replace(login, user=user, password=None)
        conn.allowance = self._allowances.of(conn.listener, user)
        return verdict

    def _claim_level(self, conn: Connection, packet: Connect, now: float) -> None:
        """The node's own level: as its header byte or its user property claims, lowered to what it may."""
        # the header byte, where there is one, has already set the level
        claimed = conn.level if conn.has_header else claimed_level(packet.properties) if packet.properties else None
        if claimed == UNKNOWN:
            self._account.unknown_levels += 1
        elif claimed is not None:
            self.claim_node_level(conn, claimed, now)
        conn.level = min(conn.level, conn.max_level)

    def claim_node_level(self, conn: Connection, level: int, now: float) -> None:
        """A client says how urgent it is as a node; it gets what its listener and its claims allow."""
        self._connections.set_level(conn, self._priorities.claims.judge(conn, "", level, 0, now))

    def _reference(self) -> str:
        """Where clients are sent that cannot stay here; empty if there is no such place."""
        return self.settings.mqtt.server_reference or self._sessions.elsewhere.reference()

    def _why_not(self, conn: Connection, packet: Connect, now: float) -> Refused | None:
        """Why a client that may come in is refused all the same; None when it is not."""
        login = conn.login
        assert login is not None
        limits = self.settings.limits
        sessions = self._sessions.by_id
        old = sessions.get(login.client_id)
        if old is not None and old.user is not None and old.user != login.user:
            # otherwise a client id, which is no secret, would give away what waits for somebody else
            return Refused("this client id belongs to another user", Reason.CLIENT_IDENTIFIER_NOT_VALID)
        if old is None and len(sessions) >= bound(limits.sessions):
            # 4.11: another broker may have room; 3.1.1 has no words for that
            is_sent_elsewhere = packet.version == 5 and self._reference()
            reason = Reason.USE_ANOTHER_SERVER if is_sent_elsewhere else Reason.QUOTA_EXCEEDED
            return Refused(f"the broker keeps {limits.sessions} sessions", reason)
        owner = self._sessions.owner(login.user)
        if old is None and owner.sessions >= owner.bounds.sessions:
            return Refused(f"{owner.name} may have {owner.bounds.sessions} sessions", Reason.QUOTA_EXCEEDED)
        size = 0 if old is not None else session_bytes(login.client_id)
        text = owner.refusal(size if packet.will is None else size + will_bytes(packet.will))
        if text is not None and (size or packet.will is not None):
            return Refused(text, Reason.QUOTA_EXCEEDED)
        most = self._allowances.most_connections(login.user)
        takes_over = old is not None and old.connection is not None and old.user == login.user
        if self._allowances.connections(login.user) - takes_over >= bound(most):
            return Refused(f"a user may have {most} connections", Reason.QUOTA_EXCEEDED)
        return None if packet.will is None else self._why_not_will(conn, packet.will, now)

    def _why_not_will(self, conn: Connection, will: Will, now: float) -> Refused | None:
        mqtt = self.settings.mqtt
        if will.qos > mqtt.maximum_qos:
            # [MQTT-3.2.2-12]
            return Refused(f"will QoS {will.qos} is not supported", Reason.QOS_NOT_SUPPORTED)
        if will.retain and not mqtt.retain_available:
            # [MQTT-3.2.2-13]
            return Refused("retained messages are not supported", Reason.RETAIN_NOT_SUPPORTED)
        check_name(will.topic, conn.allowance.topic_levels)
        verdict = self._questions.ask(conn, "publish", will.topic, now)
        return Refused(f"will: {verdict.rule}", verdict.reason) if isinstance(verdict, Refused) else None

    def _new_client_id(self) -> str:
        """A client id for a client that brought none."""
        while True:
            self._named += 1
            name = self._name_client() if self._name_client else f"auto-{self._named}"
            if name not in self._sessions.by_id:
                return name

    # -- on which terms

    def _terms(self, packet: Connect) -> tuple[int, int]:
        """Session expiry and keep-alive as this server grants them, in seconds."""
        mqtt = self.settings.mqtt
        longest = min(NEVER, bound(mqtt.session_expiry_max_s))
        if packet.version == 5:
            expiry_s = min(packet.properties.get("session_expiry_interval", 0), longest)
        else:
            expiry_s = 0 if packet.clean_start else longest
        keep_alive_s = packet.keep_alive
        if mqtt.keep_alive_max_s != "none":
            keep_alive_s = min(keep_alive_s, mqtt.keep_alive_max_s) if keep_alive_s else mqtt.keep_alive_max_s
        return expiry_s, keep_alive_s

    def _announce(
        self, conn: Connection, packet: Connect, client_id: str, expiry_s: int, keep_alive_s: int
    ) -> Properties:
        """Everything a client needs to know about this server; nothing in 3.1.1."""
        properties: Properties = {}
        if packet.version == 4:
            return properties
        mqtt, limits = self.settings.mqtt, self.settings.limits
        if expiry_s != packet.properties.get("session_expiry_interval", 0):
            properties["session_expiry_interval"] = expiry_s
        properties["receive_maximum"] = limits.receive_maximum
        if mqtt.maximum_qos < 2:
            properties["maximum_qos"] = mqtt.maximum_qos
        if not mqtt.retain_available:
            properties["retain_available"] = 0
        properties["maximum_packet_size"] = conn.allowance.packet_bytes
        if not packet.client_id:
            properties["assigned_client_identifier"] = client_id
        properties["topic_alias_maximum"] = limits.topic_alias_maximum
        if not mqtt.wildcard_available:
            properties["wildcard_subscription_available"] = 0
        if not mqtt.shared_available:
            properties["shared_subscription_available"] = 0
        if keep_alive_s != packet.keep_alive:
            # [MQTT-3.1.2-21], [MQTT-3.2.2-21]
            properties["server_keep_alive"] = keep_alive_s
        return properties

    # -- with which session

    def _take_session(self, conn: Connection, packet: Connect, now: float) -> tuple[Session, bool]:
        """The session this connection continues or begins, and whether it was there before."""
        assert conn.login is not None
        client_id = conn.login.client_id
        old = self._sessions.by_id.get(client_id)
        if old is not None and old.connection is not None:
            # [MQTT-3.1.4-3]; the old connection's will is sent unless it is delayed and the session goes on
            self._connections.shut(old.connection, "taken_over", now, reason=Reason.SESSION_TAKEN_OVER)
        return self._sessions.take_up(client_id, conn.login.user, now, is_clean=packet.clean_start)

    def _attach(self, conn: Connection, session: Session, packet: Connect, now: float) -> None:
        """Tie connection and session together."""
        limits = self.settings.limits
        properties = packet.properties
        session.attach(conn)
        self._wills.forget(session)
        self._wills.adopt(session, packet.will)
        self._connections.begin(conn)
        self._own(conn, session)
        conn.window = min(limits.inflight, properties.get("receive_maximum", 65_535))
        conn.quota = conn.window
        conn.problem_information = properties.get("request_problem_information", 1) == 1
        # [MQTT-3.1.2-26], [MQTT-3.1.2-27]
        conn.alias_out_max = min(limits.topic_alias_outgoing, properties.get("topic_alias_maximum", 0))
        conn.raw_version = 0 if conn.alias_out_max or conn.has_header else conn.version
        conn.resend.extend(session.inflight)
        conn.last_in = now
        if conn.keep_alive_s:
            self._connections.watch(conn, now)
        self._sessions.keep(session)
        self._sessions.elsewhere.attached(session, now, is_clean=packet.clean_start)

    def _own(self, conn: Connection, session: Session) -> None:
        """The session and its limits are those of the connection's user."""
        self._connections.own(conn, session.owner)
        session.queue.limit(max_bytes=conn.allowance.queue_bytes)
        conn.meters = self._allowances.enter(conn.listener, conn.user)
        self._questions.guard(conn)

    def renew_terms(self, conn: Connection) -> None:
        """Other limits hold for a client that is connected already."""
        assert conn.session is not None
        # the largest packet was announced when it connected, and a promise is kept
        packet_bytes = conn.allowance.packet_bytes
        conn.allowance = replace(self._allowances.of(conn.listener, conn.user), packet_bytes=packet_bytes)
        conn.meters = self._allowances.meters(conn.listener, conn.user)
        conn.session.queue.limit(max_bytes=conn.allowance.queue_bytes)

    # -- the farewell

    def on_disconnect(self, conn: Connection, packet: Disconnect, now: float) -> None:
        """The client says goodbye: its connection ends, and with a normal goodbye its will is forgotten."""
        session = conn.session
        assert session is not None
        expiry = packet.properties.get("session_expiry_interval")
        if expiry is not None:
            if expiry and not session.expiry_s:
                raise Violation("a session that ends with its connection cannot be kept by DISCONNECT", "3.14.2.2.2")
            session.expiry_s = min(expiry, bound(self.settings.mqtt.session_expiry_max_s))
        if packet.reason is Reason.SUCCESS:
            # [MQTT-3.14.4-3]
            self._wills.forget(session)
        conn.has_left = True
        self._connections.shut(conn, "disconnect", now)
