"""A broker in virtual time does what a broker on sockets does."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.core.conversation import Outcome, Step, conversations, outcome_of
from tests.kits.check_store import LateStore
from tests.kits.invariants import check
from tests.kits.ledger import Model
from tests.kits.world import GENESIS, configured
from tieline.conf.schema import Class
from tieline.core.broker import Broker
from tieline.net import loop as loops
from tieline.net.link import SocketLink
from tieline.net.loop import Loop
from tieline.net.turns import Watched
from tieline.sim.client import Client
from tieline.sim.clock import Clock
from tieline.sim.endpoint import Endpoint, pair
from tieline.sim.link import Way
from tieline.sim.node import VirtualBroker
from tieline.sim.port import LINGER_S, Port
from tieline.wire.packets import Disconnect, Puback
from tieline.wire.reason import Reason

_CLIENTS = 3


def quiet(**options: Any) -> Broker:
    """A broker that says nothing of itself, and begins with the clocks."""
    return Broker(configured(**options), now=GENESIS)


def told_over_sockets(steps: list[Step]) -> Outcome:
    """What comes of a conversation over real sockets; every step is over before the next begins."""
    faults: list[Exception] = []

    def on_fault(watched: Watched | None, error: Exception) -> None:
        faults.append(error)

    broker = quiet(topic_alias_maximum=2)
    loop = Loop(broker, on_fault)
    sent = [b""] * _CLIENTS
    with ExitStack() as stack:
        stack.callback(loop.close)
        clients: list[socket.socket | None] = []
        for number in range(_CLIENTS):
            theirs, ours = socket.socketpair()
            for one in (theirs, ours):
                stack.callback(one.close)
                one.setblocking(False)
            conn = broker.open(GENESIS, peer=f"{number}")
            conn.link = link = SocketLink(loop, ours, conn, None, lambda: None)
            loop.watch(link)
            clients.append(theirs)

        def settle() -> None:
            for _ in range(20):
                loop.turn()
                loop.catch_up()
                for number, client in enumerate(clients):
                    if client is not None:
                        try:
                            data = client.recv(1 << 20)
                        except BlockingIOError:
                            continue
                        sent[number] += data
                        if not data:
                            client.close()
                            clients[number] = None

        for number, data in steps:
            client = clients[number]
            if client is not None:
                client.send(data)
            settle()
        for client in clients:
            if client is not None:
                client.close()
        clients = [None] * _CLIENTS
        settle()
    assert not faults
    assert not broker.connections
    return outcome_of(broker, sent)


def told_in_virtual_time(steps: list[Step]) -> Outcome:
    """The same over links."""
    clock = Clock(GENESIS)
    node = VirtualBroker(clock, quiet(topic_alias_maximum=2))
    sent = [b""] * _CLIENTS
    clients: list[Endpoint | None] = []
    for number in range(_CLIENTS):
        theirs, ours = pair(clock)
        node.accept(ours, peer=f"{number}")
        clients.append(theirs)
    for number, data in steps:
        client = clients[number]
        if client is not None:
            client.write(data)
        clock.run_for(0)
        for number, client in enumerate(clients):
            if client is not None:
                sent[number] += client.read(1 << 20)
                if client.is_over:
                    client.close()
                    clients[number] = None
        clock.run_for(0)
        check(node.broker)
    for client in clients:
        if client is not None:
            client.close()
    clock.run_for(0)
    assert not node.broker.connections
    return outcome_of(node.broker, sent)


@given(conversations())
def test_it_tells_the_same_as_on_sockets(steps: list[Step]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "monotonic", lambda: GENESIS)
        real = told_over_sockets(steps)
    assert told_in_virtual_time(steps) == real


def connected(node: VirtualBroker, name: str, *filters: str, version: int = 5, **fields: Any) -> Client:
    """A client over an ideal connection, with subscriptions."""
    client = Client(node.clock, name, version=version)
    client.connect(node.dial(), **fields)
    if filters:
        client.subscribe(*filters)
    node.clock.run_for(0)
    assert client.is_connected
    return client


def test_a_message_that_arrives_alone_is_passed_on_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    node = VirtualBroker(Clock(), quiet())
    subscriber = connected(node, "s", "#")
    one, other = connected(node, "a"), connected(node, "b")
    passed: list[str] = []
    write = Port.write

    def count(port: Port, data: bytes, now: float) -> None:
        passed.append(port.conn.client_id)
        write(port, data, now)

    monkeypatch.setattr(Port, "write", count)
    one.publish("t", b"first")
    node.clock.run_for(1)
    one.publish("t", b"alone")
    node.clock.run_for(1)
    assert passed == ["s", "s"]
    one.publish("t", b"together")
    other.publish("t", b"with another")
    node.clock.run_for(1)
    assert passed == ["s", "s"]
    assert [message.payload for _, message in subscriber.messages] == [b"first", b"alone", b"together", b"with another"]


def test_higher_nodes_are_served_first() -> None:
    clock = Clock()
    node = VirtualBroker(clock, quiet())
    subscriber = connected(node, "s", "#")
    clients = []
    for level in (0, 3, 1):
        theirs, ours = pair(clock)
        node.accept(ours, node_level=level)
        client = Client(clock, f"level {level}")
        client.connect(theirs)
        clients.append(client)
    clock.run_for(0)
    for client in clients:
        client.publish(client.client_id)
    clock.run_for(0)
    assert [message.topic for _, message in subscriber.messages] == ["level 3", "level 1", "level 0"]


def test_nothing_is_passed_on_past_bytes_that_a_connection_has_not_taken() -> None:
    clock = Clock()
    node = VirtualBroker(clock, quiet())
    subscriber, publisher = Client(clock, "s"), connected(node, "p")
    subscriber.connect(node.dial(back=Way(rate=1_000, buffer=300)))
    subscriber.subscribe("#")
    clock.run_for(1)
    for number in range(10):
        publisher.publish("t", b"%0400d" % number)
        clock.run_for(0.125)
    clock.run_for(10)
    assert [int(message.payload) for _, message in subscriber.messages] == list(range(10))


def test_a_publisher_is_held_while_a_queue_is_full_and_nothing_is_lost() -> None:
    """MQTT 3.1.1 cannot refuse: the publisher's own buffer fills, and goes on when the subscriber reads again."""
    clock = Clock()
    node = VirtualBroker(clock, quiet(queue_messages=10, inflight=5))
    subscriber = Client(clock, "s", version=4)
    subscriber.connect(node.dial(back=Way(buffer=2_000, window=2_000)))
    subscriber.subscribe("#", qos=1)
    publisher = Client(clock, "p", version=4)
    end = node.dial(Way(buffer=5_000, window=5_000))
    publisher.connect(end)
    clock.run_for(1)
    subscriber.stall()
    for number in range(100):
        publisher.publish("t", b"%0500d" % number, qos=1)
    clock.run_for(5)
    assert node.broker.account.publishes_in < 20
    assert len(end.out.unread) == 5_000, "it is not read"
    assert not end.is_writable, "and so cannot write"
    assert len(node.broker.sessions["s"].queue) == 10
    assert [conn.hold for conn in node.broker.connections if conn.client_id == "p"] == ["queue_full"]
    subscriber.resume()
    clock.run_for(60)
    assert publisher.is_idle
    assert [int(message.payload) for _, message in subscriber.messages] == list(range(100))
    assert not node.broker.account.drops


def test_a_client_that_is_shown_out_hears_why_and_one_that_does_not_hang_up_is_hung_up_on() -> None:
    clock = Clock()
    node = VirtualBroker(clock, quiet())
    polite = connected(node, "polite")
    stubborn, ours = pair(clock, Way(delay_s=0.5), Way(delay_s=0.5))
    conn = node.accept(ours)
    stubborn.write(b"\xf0\x00")
    before = clock.now
    clock.run_for(0.5)
    assert conn.closing
    assert conn not in node.broker.connections
    links = [conn.link]
    clock.run_until(before + 0.5 + LINGER_S)
    links.append(conn.link)
    assert [type(link) for link in links] == [Port, type(None)], "it lingers for a while"
    (left,) = node.broker.connections
    node.broker.shut(left, "test", clock.now, reason=Reason.SERVER_BUSY)
    node.poke()
    clock.run_for(0)
    assert polite.heard[-1].packet == Disconnect(reason=Reason.SERVER_BUSY)
    assert not polite.is_connected
    assert not node.broker.connections


def test_goodbyes_are_said_in_the_order_of_connection() -> None:
    clock = Clock()
    node = VirtualBroker(clock, quiet())
    clients = [connected(node, f"{number}") for number in range(50)]
    order: list[str] = []
    for client in clients:
        client.on_end = lambda now, name=client.client_id: order.append(name)
    node.broker.stop(clock.now)
    node.poke()
    clock.run_for(0)
    assert order == [client.client_id for client in clients]


class Disk:
    """A store whose commits take a while, and what a restart finds of them."""

    def __init__(self, clock: Clock, delay_s: float) -> None:
        self.clock = clock
        self.delay_s = delay_s
        self.model = Model()
        self.store = LateStore()

    def broker(self, **options: Any) -> VirtualBroker:
        broker = Broker(configured(**options), store=self.store, now=self.clock.now)
        node = VirtualBroker(self.clock, broker)
        self.clock.after(self.delay_s, lambda now: self._commit(node))
        return node

    def _commit(self, node: VirtualBroker) -> None:
        if not node.is_alive:
            return
        before = self.store.committed
        token = self.store.commit()
        for batch in self.store.batches[before:token]:
            for fact in batch:
                self.model.apply(fact)
            self.model.sweep()
        node.broker.committed(token)
        node.poke()
        self.clock.after(self.delay_s, lambda now: self._commit(node))

    def restart(self) -> VirtualBroker:
        state = self.model.state
        state.starts = 2
        self.store = LateStore()
        node = self.broker()
        node.broker.restore(state, self.clock.now)
        node.poke()
        return node


def test_a_store_answers_in_virtual_time_and_a_crash_keeps_what_it_has_committed() -> None:
    clock = Clock()
    disk = Disk(clock, 0.5)
    node = disk.broker()
    subscriber, publisher = Client(clock, "s"), Client(clock, "p")
    subscriber.connect(node.dial(), clean_start=False, session_expiry_interval=3_600)
    subscriber.subscribe("#", qos=1)
    publisher.connect(node.dial())
    clock.run_for(2)
    subscriber.drop()
    publisher.publish("t", b"kept", qos=1)
    sent_at = clock.now
    clock.run_for(2)
    answered_at = [heard.at for heard in publisher.heard if isinstance(heard.packet, Puback)]
    assert answered_at == [sent_at + 0.5], "not before it is permanent"
    publisher.publish("t", b"not kept", qos=1)
    clock.run_for(0.25)
    ended: list[float] = []
    publisher.on_end = ended.append
    node.kill()
    clock.run_for(1)
    assert ended, "a crash is noticed"

    node = disk.restart()
    subscriber.connect(node.dial(), clean_start=False, session_expiry_interval=3_600)
    clock.run_for(2)
    assert subscriber.is_resumed
    assert [message.payload for _, message in subscriber.messages] == [b"kept"]
    publisher.connect(node.dial())
    clock.run_for(2)
    assert publisher.is_idle
    assert [message.payload for _, message in subscriber.messages] == [b"kept", b"not kept"]


def test_a_dead_broker_does_nothing_more() -> None:
    clock = Clock()
    node = VirtualBroker(clock, quiet())
    client = connected(node, "c", keep_alive=10)
    client.publish("t")
    node.kill()
    node.poke()
    seen = node.broker.account.publishes_in
    clock.run_for(100)
    assert node.broker.account.publishes_in == seen == 0
    assert not client.is_connected


def test_a_priority_rule_holds_from_the_first_byte() -> None:
    """With a rule for levels, a receiver of which nothing is known gets little: the rule is in the settings."""
    clock = Clock()
    settings = msgspec.structs.replace(configured(), class_=(Class(name="alarm", filter="alarm", level=3),))
    counts = []
    for broker in (quiet(), Broker(settings, now=GENESIS)):
        node = VirtualBroker(clock, broker)
        subscriber = Client(clock, "s")
        subscriber.connect(node.dial(back=Way(rate=16_000)))
        subscriber.subscribe("#")
        clock.run_for(1)
        publisher = connected(node, "p")
        for _ in range(100):
            publisher.publish("bulk", bytes(1_000))
        publisher.publish("alarm", user_property=[("priority", "3")])
        clock.run_for(60)
        topics = [message.topic for _, message in subscriber.messages]
        assert len(topics) == 101
        counts.append(topics.index("alarm"))
    without, with_rule = counts
    assert with_rule <= 6 < without <= 66
