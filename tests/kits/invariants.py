"""What is always true of a broker between two steps, whatever its clients did."""

from __future__ import annotations

from collections import Counter

from tieline.core.broker import Broker
from tieline.core.client import NEVER, Connection, Session
from tieline.core.receiver import Entry
from tieline.core.routing.route import Conditional
from tieline.core.states import State


def check(broker: Broker) -> None:
    """Every counter is the sum of what it counts, and sessions and connections agree about each other."""
    sessions = broker.sessions.values()
    assert broker.queued_bytes == sum(session.queue.bytes + session.queue.sent_bytes for session in sessions)
    subscriptions = [held for session in sessions for held in session.subscriptions.values()]
    assert broker.routes.count == len(subscriptions)
    assert broker.routes.shared == sum(held.options.filter.startswith("$share/") for held in subscriptions)
    conditional = [held for held in subscriptions if isinstance(held, Conditional)]
    assert broker.routes.conditional == len(conditional)
    assert broker.references.kept == sum(len(held.last) for held in conditional if held.last is not None)
    assert broker.references.kept <= broker.references.most
    for client_id, session in broker.sessions.items():
        assert session.client_id == client_id
        _check_queue(session)
        _check_flow(session)
        _check_presence(broker, session)
    _check_promises(broker)
    for connection in broker.connections:
        _check_connection(broker, connection)


def _check_queue(session: Session) -> None:
    queue = session.queue
    waiting = [item for item, _ in (*queue.entries, *queue.blocked, *_in_backlog(session))]
    assert queue.messages == sum(item.messages for item in waiting)
    assert queue.bytes == sum(item.size for item in waiting)
    assert not queue.is_over
    assert all(item.qos and grant.qos for item, grant in queue.blocked), "only QoS 1 and 2 wait for the window"


def _check_promises(broker: Broker) -> None:
    """A queue keeps room for the messages that are on their way to it, and for nothing else."""
    journal = broker.journal
    waiting = [owed for _, _, several in journal._waiting for owed in several]
    promised: Counter[int] = Counter()
    for owed in (*journal._taken_over, *waiting, *journal.routable, *broker.taken_over):
        promised.update({id(receiver): 1 for receiver in owed.receivers})
    for session in broker.sessions.values():
        queue = session.queue
        assert queue.promised == promised[id(session)]
        assert bool(queue.promised) == bool(queue.promised_bytes)


def _in_backlog(session: Session) -> list[Entry]:
    if session.backlog is None:
        return []
    return [waiting.entry for flow in session.backlog.policy._flows.values() for waiting in flow.entries]


def _check_flow(session: Session) -> None:
    assert all(0 < packet_id <= 65_535 for packet_id in (*session.inflight, *session.inbound))
    for flight in session.inflight.values():
        assert flight is None or flight[2] in (1, 2)


def _check_presence(broker: Broker, session: Session) -> None:
    connection = session.connection
    if connection is None:
        assert session.expiry_s, "a session without expiry ends with its connection"
        assert (session.ends is None) == (session.expiry_s == NEVER)
    else:
        assert connection.session is session and connection.state is State.CONNECTED
        assert connection in broker.connections
        assert session.ends is None


def _check_connection(broker: Broker, connection: Connection) -> None:
    assert 0 <= connection.quota <= connection.window
    assert connection.control_bytes == sum(map(len, connection.control))
    assert connection.is_dirty == (connection in broker.dirty)
    if connection.state is State.CONNECTED:
        session = connection.session
        assert session is not None and session.connection is connection
        assert broker.sessions[session.client_id] is session
        assert len(connection.alias_in) <= broker.settings.limits.topic_alias_maximum
        assert len(connection.alias_out) <= connection.alias_out_max
