"""When a queue is handed to the policy, what the window keeps for urgent messages, who goes for want of room."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kits.sessions import lone_session
from tests.kits.world import Client, World, payloads, topics
from tieline.conf.schema import Class, Mqtt, Priority, Settings
from tieline.core.account import Drop
from tieline.core.backlog import is_congested, split
from tieline.core.client import Session
from tieline.core.message import Burst, Message, Origin
from tieline.core.receiver import Grant
from tieline.sched.congestion import Path
from tieline.sched.policy import WindowState
from tieline.wire.packets import Puback, Publish, Subscribe, Subscription
from tieline.wire.reason import Reason

CLASSES = (
    Class(name="urgent", filter="3/#", level=3),
    Class(name="important", filter="2/#", level=2),
    Class(name="normal", filter="1/#", level=1),
    Class(name="low", filter="0/#", level=0),
)
#: Long enough to be congested on a path of which nothing is known.
AWHILE = 0.01


def settings(*, classes: tuple[Class, ...] = CLASSES, mqtt: Mqtt | None = None, **priority: Any) -> Settings:
    return Settings(mqtt=mqtt or Mqtt(sys_interval_s=0), class_=classes, priority=Priority(**priority))


def pair(world: World, qos: int = 0, **connect: Any) -> tuple[Client, Client]:
    """A subscriber that does not read, and a publisher."""
    subscriber, publisher = world.client("s", **connect), world.client("p")
    subscriber.subscribe("#", qos=qos)
    subscriber.stall()
    return subscriber, publisher


def session_of(client: Client) -> Session:
    assert client.connection.session is not None
    return client.connection.session


def publish(publisher: Client, *what: str, qos: int = 0) -> None:
    for topic in what:
        publisher.publish(topic, topic.encode(), qos=qos)


# --- when -------------------------------------------------------------------------------------------------------------


def entry(at: float, size: int, *, is_retained: bool = False) -> tuple[Message, Grant]:
    message = Message(b"t", bytes(size), at=at)
    message.size = size
    return message, Grant(lone_session("s", 10, 1_000), 0, set_retain=is_retained)


@pytest.mark.parametrize(
    ("path", "size", "delay_s"),
    [
        (Path(), 1_000, 0.001),
        (Path(rtt_s=0.2), 1_000, 0.1),
        (Path(rate=10_000.0), 500, 0.05),
        (Path(rtt_s=0.02, rate=10_000.0), 500, 0.06),
        (Path(rate=1e-6), 500, 0.1),
        (Path(rtt_s=1e-5, rate=1e9), 500, 0.001),
    ],
)
def test_congestion_begins_at_half_of_the_delay_of_a_free_path(path: Path, size: int, delay_s: float) -> None:
    now = 5_000.0
    assert not is_congested(path, entry(now - 0.49 * delay_s, size), now)
    assert is_congested(path, entry(now - 0.51 * delay_s, size), now)
    assert not is_congested(path, entry(now - 100 * delay_s, size, is_retained=True), now)


def test_without_congestion_the_order_is_that_of_arrival() -> None:
    world = World(settings())
    subscriber, publisher = pair(world)
    sent = ["0/a", "3/a", "1/a", "2/a", "3/b", "0/a"]
    publish(publisher, *sent)
    subscriber.resume()
    assert topics(subscriber.messages()) == sent
    assert world.broker.account.congestions == 0
    assert session_of(subscriber).backlog is None


def test_under_congestion_the_urgent_overtakes() -> None:
    world = World(settings(floor=0.0))
    subscriber, publisher = pair(world)
    publish(publisher, "0/a", "1/a", "3/a", "2/a", "3/b", "1/b")
    world.advance(AWHILE)
    subscriber.resume()
    assert topics(subscriber.messages()) == ["3/a", "3/b", "2/a", "1/a", "1/b", "0/a"]
    assert world.broker.account.congestions == 1
    assert session_of(subscriber).backlog is None, "empty: first in, first out again"


def test_a_policy_stays_until_nothing_waits_any_more() -> None:
    world = World(settings(floor=0.0))
    subscriber, publisher = pair(world)
    publish(publisher, *["1/a"] * 50)
    world.advance(AWHILE)
    assert world.broker.fill(subscriber.connection, 1, world.now)
    backlog = session_of(subscriber).backlog
    assert backlog is not None and len(backlog.policy) == 49
    publish(publisher, "3/a")
    subscriber.resume()
    got = topics(subscriber.messages())
    assert got == ["3/a"] + ["1/a"] * 49
    assert session_of(subscriber).backlog is None
    publish(publisher, "0/a", "3/a")
    assert topics(subscriber.messages()) == ["0/a", "3/a"]
    assert world.broker.account.congestions == 1


def test_nothing_new_goes_past_a_backlog() -> None:
    """One entry alone in the queue is the case of a shortcut; here others have been handed to the policy before it."""
    world = World(settings(), queue_messages=5)
    subscriber, publisher = pair(world)
    for number in range(6):
        publisher.publish("1/a", b"number %d" % number)
    assert session_of(subscriber).backlog is not None
    subscriber.connection.session.queue.max_messages = 100  # type: ignore[union-attr]
    publisher.publish("1/a", b"number 6")
    subscriber.resume()
    assert payloads(subscriber.messages()) == [b"number %d" % number for number in range(1, 7)]


def test_what_waited_for_an_absent_client_is_sorted_when_it_returns() -> None:
    world = World(settings(floor=0.0))
    client, publisher = world.durable("d"), world.client("p")
    client.subscribe("#", qos=1)
    client.drop()
    publish(publisher, "0/a", "1/a", "3/a", qos=1)
    world.advance(1)
    back = world.durable("d")
    assert topics(back.messages()) == ["3/a", "1/a", "0/a"]


def test_retained_messages_are_not_taken_for_congestion() -> None:
    world = World(settings())
    publisher = world.client("p")
    for number in range(2_500):  # more than one portion
        publisher.publish(f"{number % 4}/{number}", retain=True)
    world.advance(3_600)
    subscriber = world.client("s")
    subscriber.subscribe("#")
    assert len(subscriber.messages()) == 2_500
    assert world.broker.account.congestions == 0
    assert sum(map(sum, world.broker.account.waits)) == 0


def test_retained_messages_wait_from_when_they_were_asked_for() -> None:
    world = World(settings(floor=0.0))
    publisher = world.client("p")
    publisher.publish("0/old", retain=True)
    world.advance(3_600)
    subscriber = world.client("s")
    subscriber.stall()
    subscriber.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="#"),)))
    publish(publisher, "1/a", "3/a")
    world.advance(1)
    subscriber.resume()
    subscriber.take()
    buckets = world.broker.account.waits[0]
    assert sum(buckets[12:]) == 0, "not an hour, about a second"


def test_the_brokers_own_reports_are_not_taken_for_congestion() -> None:
    world = World(settings(mqtt=Mqtt(sys_interval_s=1)))
    subscriber = world.client("s")
    subscriber.subscribe("$SYS/#")
    world.advance(10)
    assert subscriber.take()
    assert world.broker.account.congestions == 0


# --- bursts -----------------------------------------------------------------------------------------------------------


def burst(messages: int, size: int = 10) -> Burst:
    return Burst(bytes(messages * size), messages, 5, b"t", 4, Origin("p"), 1, 0.0, 1, 1)


@pytest.mark.parametrize(
    ("messages", "room", "taken"),
    [(10, 1_000, 10), (10, 100, 10), (10, 99, 9), (10, 35, 3), (10, 9, 1), (10, -5, 1), (1, 0, 1)],
)
def test_a_burst_is_cut_to_what_fits_and_at_least_one_packet_goes(messages: int, room: int, taken: int) -> None:
    part, rest = split(burst(messages), room)
    assert part.messages == taken
    assert (rest.messages if rest else 0) == messages - taken


@pytest.mark.parametrize(
    ("room", "most", "taken"), [(1_000, 10, 10), (1_000, 9, 9), (35, 9, 3), (35, 2, 2), (0, 2, 1), (100, 1, 1)]
)
def test_a_burst_is_cut_to_what_may_go(room: int, most: int, taken: int) -> None:
    part, rest = split(burst(10), room, most)
    assert part.messages == taken
    assert (rest.messages if rest else 0) == 10 - taken


@pytest.mark.parametrize("is_congested_", [False, True])
@pytest.mark.parametrize("version", [4, 5])
def test_a_write_is_no_longer_than_it_may_be_by_more_than_a_packet(is_congested_: bool, version: int) -> None:
    world = World(settings())
    subscriber, publisher = pair(world)
    other = world.client("other", version=version)
    publisher.publish("1/a", bytes(100))
    subscriber.resume()
    subscriber.stall()
    packets = [Publish(topic="1/a", payload=b"%03d" % number + bytes(97)) for number in range(500)]
    other.send(*packets)
    assert len(session_of(subscriber).queue.entries) == 1, "one burst"
    if is_congested_:
        world.advance(AWHILE)
    got, sizes = b"", []
    while data := b"".join(world.broker.fill(subscriber.connection, 1_000, world.now)):
        sizes.append(len(data))
        got += data
    assert max(sizes) < 1_000 + 120 and min(sizes[:-1]) >= 1_000
    subscriber.inbox.clear()
    subscriber.inbox += subscriber._framer.feed(got)
    assert [int(payload[:3]) for payload in payloads(subscriber.messages())] == list(range(500))


def test_an_urgent_message_waits_for_one_packet_of_a_burst_not_for_all_of_it() -> None:
    world = World(settings(floor=0.0))
    subscriber, publisher = pair(world)
    publisher.send(*(Publish(topic="1/a", payload=bytes(100)) for _ in range(500)))
    world.advance(AWHILE)
    world.broker.fill(subscriber.connection, 1_000, world.now)
    publish(publisher, "3/a")
    data = b"".join(world.broker.fill(subscriber.connection, 1, world.now))
    assert b"3/a" in data and b"1/a" not in data
    assert session_of(subscriber).queue.messages == 490


# --- the in-flight window ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("window", "kept"), [(1, 0), (2, 1), (8, 1), (15, 1), (16, 2), (256, 32)])
def test_one_place_in_eight_is_kept_for_urgent_messages(window: int, kept: int) -> None:
    world = World(settings())
    client = world.client("c", receive_maximum=window)
    order, session = world.broker.order, session_of(client)
    assert order.reserve_of(session, client.connection) == kept
    client.connection.quota = kept
    assert order.window_of(session, client.connection) is (WindowState.URGENT_ONLY if kept else WindowState.CLOSED)
    client.connection.quota = kept + 1 if kept < window else window
    assert order.window_of(session, client.connection) is WindowState.OPEN
    client.connection.quota = 0
    assert order.window_of(session, client.connection) is WindowState.CLOSED
    client.connection.quota = client.connection.window
    session.inflight = dict.fromkeys(range(1, 65_536))
    assert order.window_of(session, client.connection) is WindowState.CLOSED
    session.inflight.clear()


def test_nothing_is_kept_while_nobody_uses_levels() -> None:
    world = World()
    subscriber, publisher = world.client("s", receive_maximum=8), world.client("p")
    subscriber.subscribe("#", qos=1)
    for _ in range(20):
        publisher.publish("t", qos=1)
    assert len(subscriber.messages()) == 8


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("waits", [0.0, AWHILE])
def test_bulk_never_takes_the_last_places_and_urgent_messages_do(qos: int, waits: float) -> None:
    world = World(settings())
    subscriber, publisher = world.client("s", receive_maximum=16), world.client("p")
    subscriber.subscribe("#", qos=qos)
    publish(publisher, *["1/a"] * 30, qos=qos)
    assert topics(subscriber.messages()) == ["1/a"] * 14
    world.advance(waits)
    publish(publisher, "3/a", qos=qos)
    assert topics(subscriber.messages()) == ["3/a"]
    publish(publisher, "2/a", qos=qos)
    subscriber.expect_nothing()
    publish(publisher, "3/b", qos=qos)
    assert topics(subscriber.messages()) == ["3/b"]
    publish(publisher, "3/c", qos=qos)
    subscriber.expect_nothing()
    assert subscriber.connection.quota == 0


@pytest.mark.parametrize("waits", [0.0, AWHILE])
def test_a_place_that_becomes_free_goes_to_the_urgent_message(waits: float) -> None:
    world = World(settings())
    subscriber, publisher = world.client("s", receive_maximum=2), world.client("p")
    subscriber.subscribe("#", qos=1)
    publish(publisher, "1/a", "1/b", "3/a", "1/c", "3/b", "3/c", qos=1)
    first, urgent = subscriber.messages()
    assert (first.topic, urgent.topic) == ("1/a", "3/a")
    world.advance(waits)
    for topic in ("3/b", "3/c"):
        subscriber.acknowledge(urgent)
        (urgent,) = subscriber.messages()
        assert urgent.topic == topic
    subscriber.acknowledge(urgent)
    subscriber.expect_nothing()
    subscriber.acknowledge(first)
    assert topics(subscriber.messages()) == ["1/b"], "two are free, one is kept"


def test_qos_0_goes_on_while_the_window_is_closed() -> None:
    world = World(settings())
    subscriber, publisher = world.client("s", receive_maximum=2), world.client("p")
    subscriber.subscribe("#", qos=1)
    publish(publisher, "1/a", "1/b", "3/a", "3/b", qos=1)
    subscriber.messages()
    world.advance(AWHILE)
    publish(publisher, "0/x", "1/a")
    assert topics(subscriber.messages()) == ["0/x", "1/a"]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_window_of_one_still_works(qos: int) -> None:
    world = World(settings(floor=0.0))
    subscriber, publisher = world.client("s", receive_maximum=1), world.client("p")
    subscriber.subscribe("#", qos=qos)
    publish(publisher, "1/a", "0/a", "1/b", "3/a", "2/a", qos=qos)
    world.advance(AWHILE)
    got = []
    while messages := subscriber.messages():
        got += topics(messages)
        for message in messages:
            subscriber.acknowledge(message)
    assert got == ["1/a", "3/a", "2/a", "1/b", "0/a"]


def test_order_is_kept_for_each_flow_however_the_window_moves() -> None:
    world = World(settings())
    subscriber, publisher = world.client("s", receive_maximum=3), world.client("p")
    subscriber.subscribe("#", qos=2)
    got: dict[tuple[str, int], list[int]] = {}

    def read() -> int:
        messages = subscriber.messages()
        for message in messages:
            got.setdefault((message.topic, message.qos), []).append(int(message.payload))
        for message in messages:
            subscriber.acknowledge(message)
        return len(messages)

    for number in range(300):
        publisher.publish(f"{number % 7 % 4}/{number % 5}", b"%d" % number, qos=number % 3)
        if number % 11 == 0:
            world.advance(AWHILE)
        if number % 17 == 0:
            read()
    while read():
        pass
    assert sum(map(len, got.values())) == 300
    assert all(numbers == sorted(numbers) for numbers in got.values())


# --- no room ----------------------------------------------------------------------------------------------------------


def with_full(full: str) -> tuple[Class, ...]:
    return (Class(name="low", filter="0/#", level=0, full=full), *CLASSES[:3])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("full", "kept"),
    [
        ("oldest", [b"a1", b"b1", b"c0", b"c1"]),
        ("newest", [b"a0", b"a1", b"b0", b"c0"]),
        ("coalesce", [b"a1", b"b1", b"c0", b"c1"]),
    ],
)
def test_the_victim_comes_from_the_lowest_class_by_its_rule(full: str, kept: list[bytes]) -> None:
    world = World(settings(classes=with_full(full), policy="strict"), queue_messages=6)
    subscriber, publisher = pair(world)
    for payload in (b"a0", b"b0", b"c0", b"a1", b"b1"):
        publisher.publish(f"0/{payload[:1].decode()}", payload)
    publish(publisher, "3/x", "1/x")
    publisher.publish("0/c", b"c1")
    # eight came, six may wait: two of the lowest class had to go
    assert world.broker.account.drops == {Drop.QUEUE_FULL: 2}
    world.advance(AWHILE)
    subscriber.resume()
    got = payloads(subscriber.messages())
    assert got[:2] == [b"3/x", b"1/x"]
    assert sorted(got[2:]) == kept
    assert {record.topic for record in world.broker.account.last_drops} <= {"0/a", "0/b", "0/c"}


def test_coalescing_keeps_the_last_word_of_every_topic() -> None:
    world = World(settings(classes=with_full("coalesce")), queue_messages=10)
    subscriber, publisher = pair(world)
    for round_ in range(20):
        for topic in "abcdefgh":
            publisher.publish(f"0/{topic}", b"%d" % round_)
    subscriber.resume()
    last = {message.topic: message.payload for message in subscriber.messages()}
    assert last == {f"0/{topic}": b"19" for topic in "abcdefgh"}


@pytest.mark.parametrize("full", ["oldest", "newest"])
def test_a_part_of_a_burst_is_a_victim_and_the_order_is_kept(full: str) -> None:
    world = World(settings(classes=with_full(full)), queue_messages=100)
    subscriber, publisher = pair(world)
    publisher.publish("0/a", b"number 000")
    for start in (1, 71):
        publisher.send(*(Publish(topic="0/a", payload=b"number %03d" % n) for n in range(start, start + 70)))
    assert world.broker.account.drops == {Drop.QUEUE_FULL: 41}
    subscriber.resume()
    got = [int(payload[-3:]) for payload in payloads(subscriber.messages())]
    assert got == (list(range(41, 141)) if full == "oldest" else list(range(100)))


def test_nothing_urgent_goes_as_long_as_anything_else_can() -> None:
    world = World(settings(), queue_messages=10)
    subscriber, publisher = pair(world)
    publish(publisher, *["3/a"] * 8, *["1/a"] * 20, *["0/a"] * 20, *["3/b"] * 2)
    subscriber.resume()
    got = topics(subscriber.messages())
    assert got.count("3/a") == 8 and got.count("3/b") == 2
    publish(publisher, "1/z")
    assert topics(subscriber.messages()) == ["1/z"]


def test_feedback_spares_a_class_that_holds_no_more_than_its_share() -> None:
    sparing, strict = World(settings(), queue_messages=100), World(settings(policy="strict"), queue_messages=100)
    kept = []
    for world in (sparing, strict):
        subscriber, publisher = pair(world)
        publish(publisher, "0/a")
        publish(publisher, *["1/a"] * 500)
        world.advance(AWHILE)
        subscriber.resume()
        kept.append(topics(subscriber.messages()).count("0/a"))
    assert kept == [1, 0]


def test_where_the_operator_lets_assured_messages_go_the_lowest_goes_first() -> None:
    world = World(settings(mqtt=Mqtt(sys_interval_s=0, full="oldest"), floor=0.0), queue_messages=4)
    subscriber, publisher = pair(world, qos=1)
    for topic in ("3/a", "0/a", "0/b", "2/a", "1/a", "3/b"):
        assert publisher.publish(topic, topic.encode(), qos=1) is Reason.SUCCESS
    world.advance(AWHILE)
    subscriber.resume()
    assert topics(subscriber.messages()) == ["3/a", "3/b", "2/a", "1/a"]
    assert [record.topic for record in world.broker.account.last_drops] == ["0/a", "0/b"]


def test_assured_messages_are_refused_and_qos_0_gives_way() -> None:
    world = World(settings(), queue_messages=4)
    subscriber, publisher = pair(world, qos=1)
    publish(publisher, "0/a", "1/a", "0/b", "1/b", qos=1)
    assert publisher.publish("3/a", qos=1) is Reason.QUOTA_EXCEEDED
    publish(publisher, "3/x")
    assert world.broker.account.drops == {Drop.REFUSED: 1, Drop.QUEUE_FULL: 1}
    subscriber.resume()
    assert sorted(topics(subscriber.messages())) == ["0/a", "0/b", "1/a", "1/b"]


# --- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [0, 1])
def test_a_session_that_ends_with_a_backlog_accounts_for_everything(qos: int) -> None:
    world = World(settings())
    subscriber, publisher = pair(world, qos=1, receive_maximum=4)
    publish(publisher, *[f"{number % 4}/a" for number in range(50)], qos=qos)
    world.advance(AWHILE)
    sent = world.broker.fill(subscriber.connection, 1, world.now)
    assert sent and session_of(subscriber).backlog is not None
    publish(publisher, "1/late", qos=qos)
    session = session_of(subscriber)
    subscriber.drop()
    assert session.backlog is None
    assert world.broker.queued_bytes == 0
    # the one that was sent is delivered with QoS 0; with QoS 1 nobody knows
    assert world.broker.account.drops == {Drop.SESSION_ENDED: 50, **({Drop.UNCONFIRMED: 1} if qos else {})}


def test_a_backlog_of_a_shared_subscription_goes_to_the_others() -> None:
    world = World(settings())
    first, second, publisher = world.client("a"), world.client("b"), world.client("p")
    first.subscribe("$share/g/#", qos=1)
    first.stall()
    publish(publisher, *[f"{number % 4}/a" for number in range(20)], qos=1)
    world.advance(AWHILE)
    world.broker.fill(first.connection, 1, world.now)
    second.subscribe("$share/g/#", qos=1)
    first.drop()
    assert len(second.messages()) == 20
    assert not world.broker.account.drops


def test_a_backlog_outlives_its_connection() -> None:
    world = World(settings(floor=0.0))
    client, publisher = world.durable("d"), world.client("p")
    client.subscribe("#", qos=1)
    client.stall()
    publish(publisher, "0/a", "1/a", "2/a", qos=1)
    world.advance(AWHILE)
    world.broker.fill(client.connection, 1, world.now)
    client.drop()
    publish(publisher, "3/a", qos=1)
    back = world.durable("d")
    got = back.messages()
    assert [(message.topic, message.dup) for message in got] == [
        ("2/a", True),
        ("3/a", False),
        ("1/a", False),
        ("0/a", False),
    ]
    back.send(*(Puback(packet_id=message.packet_id) for message in got))
    assert world.broker.queued_bytes == 0
