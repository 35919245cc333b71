"""Who is looked at first, who is read and written first, and how much work lies between two looks."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import pytest

from tests.kits.interpreted import skip_if_compiled
from tieline.conf.schema import Class, Mqtt, Settings
from tieline.core.broker import Broker
from tieline.core.client import Connection
from tieline.native import is_compiled
from tieline.net import urgent
from tieline.net.link import SocketLink
from tieline.net.loop import Loop
from tieline.net.turns import Watched
from tieline.net.urgent import BUDGET, SMALL_BUDGET
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import Connect, Disconnect, Packet, Publish, Subscribe, Subscription

RULES = (Class(name="alarm", filter="alarm", level=3),)


class Peer:
    """The far end of a connection."""

    def __init__(self, bench: Bench, client_id: str, level: int | None) -> None:
        near, self.sock = socket.socketpair()
        near.setblocking(False)
        self.sock.setblocking(False)
        self.conn: Connection = bench.broker.open(monotonic(), listener="pair", peer=client_id)
        self.link = SocketLink(bench.loop, near, self.conn, None, lambda: None)
        self.conn.link = self.link
        bench.loop.watch(self.link)
        self._framer = Framer(1 << 20, 5)
        properties: Any = {} if level is None else {"user_property": [("priority", str(level))]}
        self.send(Connect(version=5, client_id=client_id, clean_start=True, keep_alive=0, properties=properties))

    def send(self, *packets: Packet) -> None:
        data = b"".join(encode(packet, 5) for packet in packets)
        assert self.sock.send(data) == len(data), "the test sends more than a socket takes"

    def is_urgent(self) -> bool:
        return self.link.is_urgent

    def received(self) -> list[Packet]:
        try:
            return self._framer.feed(self.sock.recv(1 << 20))
        except BlockingIOError:
            return []


class Bench:
    """A loop whose turns the test calls, and a record of what each turn did."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
        self.broker = Broker(Settings(mqtt=Mqtt(sys_interval_s=0), **settings), now=monotonic())
        self.faults: list[Exception] = []
        self.loop = Loop(self.broker, self._fault)
        self.peers: dict[str, Peer] = {}
        self._story: list[tuple[str, str, int]] = []
        #: Called before each chunk is handed to the core.
        self.before: Callable[[str], None] | None = None
        if not is_compiled():
            self._spy(monkeypatch)

    @property
    def story(self) -> list[tuple[str, str, int]]:
        """("read", client, bytes), ("write", client, 0) and ("look", "", 0), in order."""
        skip_if_compiled()
        return self._story

    def _spy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        receive, flush, look = self.broker.receive, SocketLink.flush, self.loop._urgent.look

        def spy_receive(conn: Connection, data: bytes, now: float) -> None:
            if self.before is not None:
                self.before(conn.peer)
            self._story.append(("read", conn.peer, len(data)))
            receive(conn, data, now)

        def spy_flush(link: SocketLink, now: float) -> None:
            self._story.append(("write", link.conn.peer, 0))
            flush(link, now)

        def spy_look(now: float) -> None:
            self._story.append(("look", "", 0))
            look(now)

        monkeypatch.setattr(self.broker, "receive", spy_receive)
        monkeypatch.setattr(SocketLink, "flush", spy_flush)
        monkeypatch.setattr(self.loop._urgent, "look", spy_look)

    def _fault(self, watched: Watched | None, error: Exception) -> None:
        self.faults.append(error)

    def peer(self, client_id: str, level: int | None = None) -> Peer:
        peer = self.peers[client_id] = Peer(self, client_id, level)
        self.turn()
        peer.received()
        return peer

    def turn(self) -> None:
        self.loop.turn()
        self.loop.catch_up()
        assert not self.faults

    def of(self, kind: str) -> list[str]:
        return [client for what, client, _ in self.story if what == kind]

    def close(self) -> None:
        for peer in self.peers.values():
            peer.link.abort(monotonic())
            peer.sock.close()
        self.loop.close()


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def one(**settings: Any) -> Bench:
        bench = Bench(monkeypatch, **settings)
        made.append(bench)
        return bench

    yield one
    for bench in made:
        bench.close()


def bulk(count: int = 500) -> list[Publish]:
    return [Publish(topic="bulk", payload=bytes(80)) for _ in range(count)]


# --- who is urgent ----------------------------------------------------------------------------------------------------


def test_nobody_is_urgent_by_default(make: Callable[..., Bench]) -> None:
    bench = make()
    peer = bench.peer("a")
    peer.send(*bulk())
    bench.turn()
    assert not peer.is_urgent()
    assert bench.loop.read_budget == BUDGET
    assert bench.of("look") == []
    assert [size for what, _, size in bench.story if what == "read"][-1] > 40_000


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_node_of_level_3_is_urgent(make: Callable[..., Bench], level: int) -> None:
    bench = make()
    peer = bench.peer("a", level)
    assert peer.is_urgent() == (level == 3)
    assert bench.loop.read_budget == (SMALL_BUDGET if level == 3 else BUDGET)
    peer.send(Disconnect())
    peer.sock.close()
    bench.turn()
    bench.turn()
    assert bench.loop.read_budget == BUDGET
    assert not bench.loop._urgent.links


def test_a_connection_is_urgent_for_a_while_after_an_urgent_message(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urgent, "PERIOD_S", 3_600.0)  # it is not over before we say so
    bench = make(class_=RULES)
    peer = bench.peer("a")
    assert not peer.is_urgent()
    peer.send(Publish(topic="alarm", payload=b"!"))
    bench.turn()
    assert peer.is_urgent() and bench.loop.read_budget == SMALL_BUDGET
    peer.send(Publish(topic="other", payload=b"."))
    bench.turn()
    assert peer.is_urgent(), "what it sends next is looked at as quickly"
    bench.broker.tick(monotonic() + 2 * urgent.PERIOD_S)
    bench.turn()
    assert not peer.is_urgent() and bench.loop.read_budget == BUDGET
    peer.send(Publish(topic="other", payload=b"."))
    bench.turn()
    assert bench.of("read")[-1] == "a", "it is still heard"


def test_a_message_that_is_passed_on_makes_its_sender_urgent_too(make: Callable[..., Bench]) -> None:
    bench = make(class_=RULES)
    subscriber, peer = bench.peer("s"), bench.peer("a")
    subscriber.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="#"),)))
    bench.turn()
    now = monotonic()
    for _ in range(2):
        peer.send(Publish(topic="alarm", payload=b"alarm!"))
        bench.turn()
    assert len(subscriber.received()) == 3
    assert peer.is_urgent() and peer.conn.urgent_at >= now


def test_one_review_however_often_the_set_fills_and_empties(make: Callable[..., Bench]) -> None:
    bench = make()
    for number in range(20):
        bench.peer(f"a{number}", 3).sock.close()
        bench.turn()
    waiting = [timer for timer in bench.broker.timers._heap if timer.action == bench.loop._urgent._review]
    assert len(waiting) == 1


# --- the bound --------------------------------------------------------------------------------------------------------


def test_the_work_between_two_looks_is_one_piece(make: Callable[..., Bench]) -> None:
    """The stated bound: while there is an urgent connection, others are read in pieces of SMALL_BUDGET."""
    bench = make()
    bench.peer("urgent", 3)
    senders = [bench.peer(f"b{number}") for number in range(10)]
    for sender in senders:
        sender.send(*bulk(400))
    bench.story.clear()
    for _ in range(30):
        bench.turn()
    since, pieces = 0, 0
    for what, _, size in bench.story:
        if what == "look":
            since = 0
        elif what == "read":
            since += size
            pieces += 1
            assert since <= SMALL_BUDGET
    total = sum(size for what, _, size in bench.story if what == "read")
    assert total == 10 * len(b"".join(encode(one, 5) for one in bulk(400)))
    assert pieces >= total // SMALL_BUDGET


def test_higher_nodes_get_more_pieces_in_their_turn(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.peer("urgent", 3)
    for level in (0, 1, 2):
        bench.peer(f"node {level}", level).send(*bulk(1_500))
    bench.story.clear()
    bench.turn()
    assert bench.of("read") == ["node 2"] * 4 + ["node 1"] * 2 + ["node 0"]


@pytest.mark.parametrize("moment", [0, 3, 7])
def test_an_urgent_message_is_next_whenever_it_comes(make: Callable[..., Bench], moment: int) -> None:
    bench = make()
    alarm = bench.peer("urgent", 3)
    senders = [bench.peer(f"b{number}") for number in range(10)]
    for sender in senders:
        sender.send(*bulk(400))
    seen: list[str] = []

    def interrupt(client: str) -> None:
        seen.append(client)
        if len(seen) == moment + 1:
            alarm.send(Publish(topic="alarm", payload=b"!"))

    bench.story.clear()
    bench.before = interrupt
    bench.turn()
    assert bench.of("read")[moment + 1] == "urgent"


def test_what_an_urgent_message_causes_is_written_at_once(make: Callable[..., Bench]) -> None:
    bench = make()
    alarm, subscriber = bench.peer("urgent", 3), bench.peer("s")
    subscriber.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="alarm"),)))
    bench.turn()
    subscriber.received()
    for number in range(5):
        bench.peer(f"b{number}").send(*bulk(100))
    alarm.send(Publish(topic="alarm", payload=b"!"))
    bench.story.clear()
    bench.turn()
    first = bench.story.index(("write", "s", 0))
    assert [client for what, client, _ in bench.story[:first] if what == "read"] == ["urgent"]
    assert len(subscriber.received()) == 1


def test_urgent_connections_share_a_look(make: Callable[..., Bench]) -> None:
    bench = make()
    alarms = [bench.peer(f"u{number}", 3) for number in range(5)]
    bench.peer("b").send(*bulk(100))
    for alarm in alarms:
        alarm.send(Publish(topic="alarm", payload=b"!"))
    bench.story.clear()
    bench.turn()
    assert set(bench.of("read")[:5]) == {f"u{number}" for number in range(5)}


def test_an_urgent_flood_does_not_shut_the_others_out(make: Callable[..., Bench]) -> None:
    bench = make()
    alarm, other = bench.peer("urgent", 3), bench.peer("b")
    alarm.send(*bulk(1_000))
    other.send(*bulk(10))
    bench.story.clear()
    bench.turn()
    assert "b" in bench.of("read")


# --- node priority ----------------------------------------------------------------------------------------------------


def test_reads_go_by_node_level_then_by_the_order_of_connection(make: Callable[..., Bench]) -> None:
    bench = make()
    peers = [bench.peer(f"{level}{place}", level) for place in "ab" for level in (1, 0, 2)]
    for peer in reversed(peers):
        peer.send(Publish(topic="t", payload=b"x"))
    bench.story.clear()
    bench.turn()
    assert bench.of("read") == ["2a", "2b", "1a", "1b", "0a", "0b"]


def test_writes_go_by_node_level_then_by_the_order_of_connection(make: Callable[..., Bench]) -> None:
    bench = make()
    for place in "ab":
        for level in (1, 0, 2, 3):
            peer = bench.peer(f"{level}{place}", level)
            peer.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t"),)))
            bench.turn()
    publisher = bench.peer("p")
    publisher.send(*(Publish(topic="t", payload=b"x") for _ in range(2)))
    bench.story.clear()
    bench.turn()
    assert bench.of("write") == ["3a", "3b", "2a", "2b", "1a", "1b", "0a", "0b"]


def test_a_link_that_is_gone_leaves_the_set(make: Callable[..., Bench]) -> None:
    bench = make()
    peer = bench.peer("a", 3)
    peer.sock.close()
    bench.turn()
    assert peer.link.fd == -1
    assert not bench.loop._urgent.links
    assert bench.loop.read_budget == BUDGET
    bench.turn()
