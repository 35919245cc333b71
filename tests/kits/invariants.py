"""What is always true of a broker between two steps, whatever its clients did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tieline.core.broker import Broker
from tieline.core.client import NEVER, Connection, Session
from tieline.core.holdings import CONNECTION_BYTES, TOPIC_BYTES, Kind, Owner, session_bytes, will_bytes
from tieline.core.message import Message
from tieline.core.receiver import Entry
from tieline.core.routing.route import ConditionalSubscription, subscription_bytes
from tieline.core.states import State
from tieline.match.trees import tree_bytes
from tieline.overlay.joined import Joined
from tieline.overlay.ring_member.member import RingMember
from tieline.sched.queue import RECORD

#: Retained messages and subscriptions above which they are not added up after every step: it would take minutes.
MOST_COUNTED = 200


def check(broker: Broker) -> None:
    """Every counter is the sum of what it counts, and sessions and connections agree about each other."""
    sessions = [*broker.sessions.values(), *broker.remains]
    assert broker.queued_bytes == sum(_queued(session) for session in sessions)
    subscriptions = [held for session in sessions for held in session.subscriptions.values()]
    assert broker.routes.count == len(subscriptions)
    assert broker.routes.shared == sum(held.options.filter.startswith("$share/") for held in subscriptions)
    conditional = [held for held in subscriptions if isinstance(held, ConditionalSubscription)]
    # other brokers ask as well
    assert broker.routes.conditional == len(conditional) or isinstance(broker.routes.neighbours, Joined)
    assert broker.references.kept == sum(len(held.last) for held in conditional if held.last is not None)
    assert broker.references.kept <= broker.references.most
    for client_id, session in broker.sessions.items():
        assert session.client_id == client_id
        _check_queue(broker, session)
        _check_flow(session)
        _check_presence(broker, session)
    _check_promises(broker)
    for connection in broker.connections:
        _check_connection(broker, connection)
    if len(broker.retained) + broker.routes.count < MOST_COUNTED and not list(broker.remains):
        _check_holdings(broker)


def _queued(session: Session) -> int:
    queue = session.queue
    flights = sum(flight is not None for flight in session.inflight.values())
    return queue.bytes + queue.sent_bytes + RECORD * (queue.messages + flights)


def _retained(broker: Broker) -> Iterator[Message]:
    nodes = [broker.retained._tree._root]
    while nodes:
        node = nodes.pop()
        if node.value is not None:
            yield node.value
        nodes += (node.children or {}).values()


def _check_holdings(broker: Broker) -> None:
    """What is counted, by kind and owner, is what is there."""
    found: dict[int, Counter[Kind]] = {}

    def add(owner: Owner, kind: Kind, size: int) -> None:
        found.setdefault(id(owner), Counter())[kind] += size

    for session in broker.sessions.values():
        owner = session.owner
        assert owner is broker.holdings.owner(session.user)
        add(owner, Kind.SESSIONS, session_bytes(session.client_id) + session.inbound.bytes)
        size = sum(map(subscription_bytes, session.subscriptions.values()))
        assert session.subscription_bytes == size
        add(owner, Kind.SUBSCRIPTIONS, size)
        if session.will is not None:
            add(owner, Kind.WILLS, will_bytes(session.will))
    for conn in broker.connections:
        add(conn.owner, Kind.CONNECTIONS, CONNECTION_BYTES + conn.alias_bytes)
        add(conn.owner, Kind.UNPARSED, conn.unparsed_bytes)
        add(conn.owner, Kind.UNSENT, conn.unsent_bytes)
        add(conn.owner, Kind.RIGHTS, sum(len(topic) + TOPIC_BYTES for topic in conn.publishable))
        if not conn.closing:
            assert conn.unparsed_bytes == len(conn.partial) + conn.framed_bytes + conn.unfinished_bytes
    for message in _retained(broker):
        owner = broker.holdings.broker
        if message.origin.owner is not None:
            owner = broker.holdings.owner(message.origin.owner.user)
        add(owner, Kind.RETAINED, message.size + tree_bytes(message.topic.decode()))
    neighbours = broker.routes.neighbours
    if isinstance(neighbours, Joined):
        add(broker.holdings.broker, Kind.OWED, neighbours.outgoing.accounted)
        add(broker.holdings.broker, Kind.LINKS, neighbours.shortage.accounted)
        add(broker.holdings.broker, Kind.RETAINED, neighbours.retaining.convergence.accounted)
    if isinstance(neighbours, RingMember):
        add(broker.holdings.broker, Kind.OWED, neighbours.everybody.accounted)
    total: Counter[Kind] = Counter()
    owners = [owner for _, owner in broker.holdings.owners()]
    for owner in (*owners, broker.holdings.strangers, broker.holdings.broker):
        own = found.get(id(owner), Counter())
        kept = {kind: size for kind, size in owner.kept.items() if size}
        assert kept == {kind: size for kind, size in own.items() if size}, (owner, kept, own)
        assert owner.bytes == sum(kept.values())
        total.update(kept)
        queues = [session.queue for session in broker.sessions.values() if session.owner is owner]
        assert owner.borrowed == sum(queue.borrowed for queue in queues)
        assert owner.sessions == len(queues)
    assert broker.holdings.bytes == total.total()


def _check_queue(broker: Broker, session: Session) -> None:
    queue = session.queue
    waiting = [item for item, _ in (*queue.entries, *queue.blocked, *_in_backlog(session))]
    assert queue.messages == sum(item.messages for item in waiting)
    assert queue.bytes == sum(item.size for item in waiting)
    # what a predecessor had acknowledged waits again, also if its session was about to end
    is_restored = session.number <= broker.journal.sessions >> 32 << 32
    assert is_restored or session.is_doomed or not queue.is_over
    assert all(item.qos and grant.qos for item, grant in queue.blocked), "only QoS 1 and 2 wait for the window"


def _check_promises(broker: Broker) -> None:
    """A queue keeps room for the messages that are on their way to it, and for nothing else."""
    journal = broker.journal
    waiting = [owed for _, _, several, _ in journal._waiting for owed in several]
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
