"""How a connection begins and ends: CONNECT, take-over, keep-alive, DISCONNECT, and the end of sessions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tieline.conf.schema import UNLIMITED, bound
from tieline.core.account import Drop, Event
from tieline.core.connection import Hold, State
from tieline.core.inbound import will as wills
from tieline.core.inbound.acknowledge import landed
from tieline.core.message import Message
from tieline.core.outbound.backlog import disengage
from tieline.core.outbound.deliver import discard, offer, turn_away
from tieline.core.ports import Allowed, Login, Refused
from tieline.core.routing.classes import claimed_level
from tieline.core.routing.content_match import heirs
from tieline.core.session import NEVER, Session
from tieline.wire.codec import encode
from tieline.wire.errors import Violation
from tieline.wire.packets import Connack, Connect, Disconnect
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason
from tieline.wire.topics import check_name

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.connection import Connection
    from tieline.core.message import Item
    from tieline.core.session import Grant


def peek_version(data: bytes, start: int, end: int) -> int:
    """The protocol level of a CONNECT, readable even when the rest of it is not; 0 when there is none."""
    if data[start : start + 6] == b"\x00\x04MQTT" and start + 6 < end:
        return data[start + 6]
    return 0


def on_connect(broker: Broker, conn: Connection, packet: Connect, now: float) -> None:
    """Admit a client, or refuse it with a reason.

    Who it is comes first: what it may claim, and whose session it may continue, depends on that.
    """
    conn.version = packet.version
    conn.max_packet = packet.properties.get("maximum_packet_size", UNLIMITED)
    client_id = packet.client_id
    if not client_id:
        if packet.version == 4 and not packet.clean_start:
            # [MQTT311-3.1.3-8]
            refuse(broker, conn, Reason.CLIENT_IDENTIFIER_NOT_VALID, "an empty client id needs a clean session", now)
            return
        # [MQTT-3.1.3-6], [MQTT-3.1.3-7]
        client_id = conn.login.client_id if conn.login else broker.new_client_id()
    conn.login = Login(
        client_id=client_id,
        username=packet.username,
        password=packet.password,
        listener=conn.listener,
        peer=conn.peer,
        certificate_user=conn.identify() if conn.identify is not None else None,
    )
    verdict = _admit(broker, conn, packet, now)
    if isinstance(verdict, Refused):
        refuse(broker, conn, verdict.reason, verdict.rule, now)
        return
    # the header byte, where there is one, has already set the level
    claimed = conn.level if conn.has_header else claimed_level(packet.properties) if packet.properties else None
    if claimed == -1:
        broker.account.unknown_levels += 1
    elif claimed is not None:
        conn.level = broker.claims.judge(conn, "", claimed, 0, now)
    conn.level = min(conn.level, conn.max_level)
    if conn.level != broker.default_level:
        broker.has_levels = True
    refusal = _why_not(broker, conn, packet, now)
    if refusal is not None:
        refuse(broker, conn, refusal.reason, refusal.rule, now)
        return
    expiry_s, keep_alive_s = _terms(broker, packet)
    answer = Connack(properties=_announce(broker, conn, packet, client_id, expiry_s, keep_alive_s))
    if len(encode(answer, conn.version)) > conn.max_packet:
        # [MQTT-3.1.2-24] a client that cannot take our CONNACK cannot be told our terms
        refuse(broker, conn, Reason.PACKET_TOO_LARGE, "the CONNACK is larger than the client allows", now)
        return
    session, was_present = _take_session(broker, conn, client_id, packet, now)
    session.expiry_s = expiry_s
    conn.keep_alive_s = keep_alive_s
    _attach(broker, conn, session, packet, now)
    # [MQTT-3.1.4-5], [MQTT-3.2.0-2], [MQTT-3.2.2-2], [MQTT-3.2.2-3], [MQTT311-3.2.2-2], [MQTT311-3.2.2-3]
    answer.session_present = was_present
    if broker.journal.noted:
        # a client that is told of its session, or of the end of an old one, must find it so after a crash
        broker.journal.acknowledge(conn, encode(answer, conn.version))
        broker.suspend(conn, Hold.COMMIT, now)
    else:
        conn.say(encode(answer, conn.version))
    broker.mark(conn)
    if broker.chronicle is not None:
        assert conn.login is not None
        broker.chronicle.happened(
            now,
            "connect",
            client_id,
            peer=conn.peer,
            listener=conn.listener,
            user=conn.login.user,
            version=packet.version,
            epoch=session.number,
            session_present=was_present,
        )
    version = "5" if packet.version == 5 else "3.1.1"
    text = f"MQTT {version}, {'session resumed' if was_present else 'new session'}"
    if conn.login.user is not None:
        text += f", user {conn.login.user}"
    broker.account.tell(Event("connected", client_id, conn.peer, text))


def _admit(broker: Broker, conn: Connection, packet: Connect, now: float) -> Allowed | Refused:
    """Who the client is, and what it is allowed; or why it is not let in."""
    login = conn.login
    assert login is not None
    if "authentication_method" in packet.properties:
        # [MQTT-4.12.0-1]
        return Refused("no enhanced authentication is configured", Reason.BAD_AUTHENTICATION_METHOD)
    verdict = broker.ask(conn, "connect", "", now)
    if isinstance(verdict, Refused):
        return verdict
    user = None if verdict.is_anonymous else verdict.user or login.username
    # the password is not kept any longer than it is needed
    conn.login = replace(login, user=user, password=None)
    conn.allowance = broker.allowances.of(conn.listener, user)
    return verdict


def _why_not(broker: Broker, conn: Connection, packet: Connect, now: float) -> Refused | None:
    """Why a client that may come in is refused all the same; None when it is not."""
    login = conn.login
    assert login is not None
    settings = broker.settings
    old = broker.sessions.get(login.client_id)
    if old is not None and old.user is not None and old.user != login.user:
        # otherwise a client id, which is no secret, would give away what waits for somebody else
        return Refused("this client id belongs to another user", Reason.CLIENT_IDENTIFIER_NOT_VALID)
    if old is None and len(broker.sessions) >= bound(settings.limits.sessions):
        return Refused(f"the broker keeps {settings.limits.sessions} sessions", Reason.QUOTA_EXCEEDED)
    most = broker.allowances.most_connections(login.user)
    takes_over = old is not None and old.connection is not None and old.user == login.user
    if broker.allowances.connections(login.user) - takes_over >= bound(most):
        return Refused(f"a user may have {most} connections", Reason.QUOTA_EXCEEDED)
    will = packet.will
    if will is not None:
        if will.qos > settings.mqtt.maximum_qos:
            # [MQTT-3.2.2-12]
            return Refused(f"will QoS {will.qos} is not supported", Reason.QOS_NOT_SUPPORTED)
        if will.retain and not settings.mqtt.retain_available:
            # [MQTT-3.2.2-13]
            return Refused("retained messages are not supported", Reason.RETAIN_NOT_SUPPORTED)
        check_name(will.topic, conn.allowance.topic_levels)
        if will.topic.startswith("$SYS/"):
            return Refused("a will cannot be published to $SYS")
        verdict = broker.ask(conn, "publish", will.topic, now)
        if isinstance(verdict, Refused):
            return Refused(f"will: {verdict.rule}", verdict.reason)
    return None


def _take_session(
    broker: Broker, conn: Connection, client_id: str, packet: Connect, now: float
) -> tuple[Session, bool]:
    """The session this connection continues or begins, and whether it was there before."""
    assert conn.login is not None
    old = broker.sessions.get(client_id)
    if old is not None:
        if old.connection is not None:
            # [MQTT-3.1.4-3]; the old connection's will is sent unless it is delayed and the session goes on
            broker.shut(old.connection, "taken_over", now, reason=Reason.SESSION_TAKEN_OVER)
            old = broker.sessions.get(client_id)
        if old is not None:
            # what waits for nobody in particular was not meant for a user who comes later with that id
            if not packet.clean_start and old.user == conn.login.user:
                broker.timers.cancel(old.ends)
                old.ends = None
                # [MQTT-3.1.3-9] back in time: the delayed will is not sent
                wills.forget(broker, old)
                # [MQTT-3.1.2-5]
                return old, True
            # [MQTT-3.1.2-4]
            end_session(broker, old, now)
    limits = broker.settings.limits
    session = Session(client_id, bound(limits.queue_messages), bound(limits.queue_bytes))
    session.number = broker.journal.next_session()
    broker.sessions[client_id] = session
    broker.account.sessions_most = max(broker.account.sessions_most, len(broker.sessions))
    # [MQTT-3.1.2-6]
    return session, False


def _terms(broker: Broker, packet: Connect) -> tuple[int, int]:
    """Session expiry and keep-alive as this server grants them, in seconds."""
    mqtt = broker.settings.mqtt
    longest = min(NEVER, bound(mqtt.session_expiry_max_s))
    if packet.version == 5:
        expiry_s = min(packet.properties.get("session_expiry_interval", 0), longest)
    else:
        expiry_s = 0 if packet.clean_start else longest
    keep_alive_s = packet.keep_alive
    if mqtt.keep_alive_max_s != "none":
        keep_alive_s = min(keep_alive_s, mqtt.keep_alive_max_s) if keep_alive_s else mqtt.keep_alive_max_s
    return expiry_s, keep_alive_s


def _attach(broker: Broker, conn: Connection, session: Session, packet: Connect, now: float) -> None:
    """Tie connection and session together."""
    settings = broker.settings
    properties = packet.properties
    session.connection = conn
    session.will = packet.will
    conn.session = session
    conn.state = State.CONNECTED
    _own(broker, conn, session)
    conn.window = min(settings.limits.inflight, properties.get("receive_maximum", 65_535))
    conn.quota = conn.window
    conn.problem_information = properties.get("request_problem_information", 1) == 1
    # [MQTT-3.1.2-26], [MQTT-3.1.2-27]
    conn.alias_out_max = min(settings.limits.topic_alias_outgoing, properties.get("topic_alias_maximum", 0))
    conn.raw_version = 0 if conn.alias_out_max or conn.has_header else conn.version
    conn.resend.extend(session.inflight)
    broker.timers.cancel(conn.timer)
    conn.timer = None
    conn.last_in = now
    if conn.keep_alive_s:
        _watch(broker, conn, now)
    if not broker.journal.is_volatile:
        _keep(broker, session)


def _keep(broker: Broker, session: Session) -> None:
    """Let the store know the session: all of it if it outlives its connection, its will in any case."""
    session.left = None
    if not session.expiry_s and session.is_kept:
        # it ends with this connection, so nothing of it would be restored
        broker.journal.forget(session)
        session.is_known = session.is_kept = False
        session.number = broker.journal.next_session()
    if session.expiry_s or session.will is not None:
        session.is_known = True
        session.is_kept = session.expiry_s > 0
        broker.journal.session(session)


def _own(broker: Broker, conn: Connection, session: Session) -> None:
    """The session and its limits are those of the connection's user."""
    assert conn.login is not None
    user = conn.login.user
    session.user = user
    session.queue.limit(max_bytes=conn.allowance.queue_bytes)
    conn.meters = broker.allowances.enter(conn.listener, user)
    broker.guard(conn)


def _watch(broker: Broker, conn: Connection, now: float) -> None:
    """[MQTT-3.1.2-22]: silence for one and a half keep-alive intervals ends the connection."""
    deadline = conn.last_in + conn.keep_alive_s * 1.5
    if conn.hold is not None and conn.hold is not Hold.NOT_READING:
        # it is us who do not read; that has a limit of its own
        deadline = max(deadline, now + 1.0)
    if deadline <= now:
        text = f"nothing received for {now - conn.last_in:.1f} s, keep-alive is {conn.keep_alive_s} s"
        broker.shut(conn, "keep_alive_timeout", now, reason=Reason.KEEP_ALIVE_TIMEOUT, text=text)
    else:
        conn.timer = broker.timers.at(deadline, lambda due: _watch(broker, conn, due))


def _announce(
    broker: Broker, conn: Connection, packet: Connect, client_id: str, expiry_s: int, keep_alive_s: int
) -> Properties:
    """Everything a client needs to know about this server; nothing in 3.1.1."""
    properties: Properties = {}
    if packet.version == 4:
        return properties
    settings = broker.settings
    mqtt = settings.mqtt
    if expiry_s != packet.properties.get("session_expiry_interval", 0):
        properties["session_expiry_interval"] = expiry_s
    properties["receive_maximum"] = settings.limits.receive_maximum
    if mqtt.maximum_qos < 2:
        properties["maximum_qos"] = mqtt.maximum_qos
    if not mqtt.retain_available:
        properties["retain_available"] = 0
    properties["maximum_packet_size"] = conn.allowance.packet_bytes
    if not packet.client_id:
        properties["assigned_client_identifier"] = client_id
    properties["topic_alias_maximum"] = settings.limits.topic_alias_maximum
    if not mqtt.wildcard_available:
        properties["wildcard_subscription_available"] = 0
    if not mqtt.shared_available:
        properties["shared_subscription_available"] = 0
    if keep_alive_s != packet.keep_alive:
        # [MQTT-3.1.2-21], [MQTT-3.2.2-21]
        properties["server_keep_alive"] = keep_alive_s
    return properties


def refuse(broker: Broker, conn: Connection, reason: Reason, text: str, now: float) -> None:
    """[MQTT-3.1.4-2]: CONNACK with a reason, then close ([MQTT-3.2.2-7])."""
    # mosquitto's bridges set the top bit of the level and understand only the 3.1.1 answer
    version = 4 if conn.version & 0x7F < 5 else 5
    properties: Properties = {"reason_string": text[:1_024]} if text else {}
    data = encode(Connack(reason=reason, properties=properties), version)
    if len(data) > conn.max_packet:
        # [MQTT-3.2.2-19]
        data = encode(Connack(reason=reason), version)
    if len(data) <= conn.max_packet:
        conn.say(data)
    broker.shut(conn, f"refused_{reason.name.lower()}", now, text=text)


def on_disconnect(broker: Broker, conn: Connection, packet: Disconnect, now: float) -> None:
    """The client says goodbye."""
    session = conn.session
    assert session is not None
    expiry = packet.properties.get("session_expiry_interval")
    if expiry is not None:
        if expiry and not session.expiry_s:
            raise Violation("a session that ends with its connection cannot be kept by DISCONNECT", "3.14.2.2.2")
        session.expiry_s = min(expiry, bound(broker.settings.mqtt.session_expiry_max_s))
    if packet.reason is Reason.SUCCESS:
        # [MQTT-3.14.4-3]
        wills.forget(broker, session)
    broker.shut(conn, "disconnect", now)


def detach(broker: Broker, conn: Connection, now: float) -> None:
    """The session loses its connection: it waits, or ends with it ([MQTT-3.1.2-23], [MQTT311-4.1.0-1])."""
    broker.timers.cancel(conn.timer)
    broker.timers.cancel(conn.hold_timer)
    conn.timer = conn.hold_timer = None
    conn.partial = bytearray()
    session = conn.session
    if session is None or session.connection is not conn:
        return
    assert conn.login is not None
    broker.allowances.leave(conn.login.user, broker.timers, now)
    session.connection = None
    wills.schedule(broker, session, now)
    if not session.expiry_s:
        # [MQTT-4.1.0-2]
        end_session(broker, session, now)
        return
    session.left = now
    if session.is_known:
        broker.journal.session(session)
    if session.expiry_s != NEVER:
        expire_at(broker, session, now + session.expiry_s)


def expire_at(broker: Broker, session: Session, when: float) -> None:
    """End a session then, unless its client comes back before."""
    session.ends = broker.timers.at(when, lambda due: _expire(broker, session, due))


def _expire(broker: Broker, session: Session, now: float) -> None:
    broker.account.sessions_expired += 1
    end_session(broker, session, now)


def end_session(broker: Broker, session: Session, now: float) -> None:
    """Forget everything about a client; what still waited for it is named, or goes to others of its group."""
    broker.timers.cancel(session.ends)
    wills.publish(broker, session, now)
    if session.is_known:
        broker.journal.forget(session)
        session.is_known = session.is_kept = False
    for filter_, held in session.subscriptions.items():
        broker.routes.cancel(session, filter_, held)
    session.subscriptions.clear()
    queue = session.queue
    stranded = [flight for flight in session.inflight.values() if flight is not None]
    for flight in session.inflight.values():
        if flight is not None:
            landed(broker, session, flight[0])
    session.inflight.clear()
    session.replays.clear()
    for message, grant, qos in stranded:
        # [MQTT-4.8.2-5]: a QoS 1 message of a shared subscription goes to another member; one of QoS 2 must not
        for part, other in heirs(broker, message, grant.group if qos == 1 else None):
            if other is not None:
                _hand_on(broker, part, other, now)
            else:
                turn_away(broker, session, part, Drop.UNCONFIRMED, now)
    if session.backlog is not None:
        while (waiting := session.backlog.policy.pop(now)) is not None:
            queue.blocked.append(waiting.entry)
        disengage(session)
    for item, grant in [*queue.blocked, *queue.entries]:
        for part, other in heirs(broker, item, grant.group):
            if other is None:
                discard(broker, (part, grant), Drop.SESSION_ENDED, now)
            else:
                queue.taken(part.messages, part.size)
                broker.queued_bytes -= part.size
                _hand_on(broker, part, other, now)
    queue.clear()
    if broker.sessions.get(session.client_id) is session:
        del broker.sessions[session.client_id]
    broker.release_publishers(session, now)


def _hand_on(broker: Broker, item: Item, heir: Grant, now: float) -> None:
    """Offer what waited for a session that is gone to another one; nothing else may keep it in the store any more."""
    offer(broker, item.afresh() if isinstance(item, Message) and item.number else item, heir, now)
