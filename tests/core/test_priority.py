"""Priority from end to end in one broker: levels, heat, inheritance, floors, expiry, late binding, every policy."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.test_backlog import AWHILE, CLASSES, pair, publish, session_of
from tests.core.test_backlog import settings as configured
from tests.kits.examples import examples
from tests.kits.world import Client, World, payloads, topics
from tieline.conf.schema import Class
from tieline.core.account import Drop
from tieline.core.message import Bundle
from tieline.sched.policies import names
from tieline.wire.packets import Disconnect, Puback, Pubcomp, Publish, Pubrec, Subscribe, Subscription, Unsubscribe


def claim(level: int) -> dict[str, Any]:
    return {"user_property": [("priority", str(level))]}


# --- one chunk --------------------------------------------------------------------------------------------------------


def chunk(*what: str) -> list[Publish]:
    return [Publish(topic=topic, payload=b"about " + topic.encode()) for topic in what]


def known(publisher: Client, *what: str) -> None:
    """Publish to topics once, so that the broker remembers their routes."""
    publish(publisher, *what)


@pytest.mark.parametrize("version", [4, 5])
def test_a_chunk_is_dispatched_by_class(version: int) -> None:
    world = World(configured())
    subscriber, publisher = world.client("s"), world.client("p", version=version)
    subscriber.subscribe("#")
    known(publisher, "0/a", "1/a", "2/a", "3/a")
    subscriber.take()
    publisher.send(*chunk("0/a", "1/a", "3/a", "2/a", "0/a", "2/a", "3/a"))
    assert topics(subscriber.messages()) == ["3/a", "3/a", "2/a", "2/a", "1/a", "0/a", "0/a"]
    assert world.broker.account.congestions == 0, "nobody had to wait"


def test_without_levels_a_chunk_keeps_its_order() -> None:
    world = World()
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("#")
    known(publisher, "0/a", "1/a", "3/a")
    subscriber.take()
    publisher.send(*chunk("0/a", "1/a", "3/a", "0/a"))
    assert topics(subscriber.messages()) == ["0/a", "1/a", "3/a", "0/a"]


def test_a_message_of_the_general_way_does_not_pass_its_own_flow() -> None:
    """The same topic by shortcut and, for its properties, by the general way."""
    world = World(configured())
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("#")
    known(publisher, "1/a")
    subscriber.take()
    publisher.send(
        Publish(topic="1/a", payload=b"number 0"),
        Publish(topic="1/a", payload=b"number 1", properties={"content_type": "x"}),
        Publish(topic="1/a", payload=b"number 2"),
        Publish(topic="1/a", payload=b"number 3", properties={"user_property": [("priority", "3")]}),
        Publish(topic="1/a", payload=b"number 4"),
    )
    assert payloads(subscriber.messages()) == [b"number %d" % number for number in range(5)]


@pytest.mark.parametrize("last", [Disconnect(), b"\xff\xff", Unsubscribe(packet_id=1, filters=("#",))])
def test_what_was_parsed_is_dispatched_whatever_comes_next(last: Any) -> None:
    world = World(configured())
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("#")
    known(publisher, "1/a")
    subscriber.take()
    publisher.send(*chunk("1/a", "1/a"), last)
    assert topics(subscriber.messages()) == ["1/a", "1/a"]


def test_a_chunk_that_also_subscribes_reaches_who_was_there_before() -> None:
    world = World(configured())
    client, publisher = world.client("c"), world.client("p")
    known(publisher, "1/a")
    wish = Subscribe(packet_id=1, subscriptions=(Subscription(filter="#"),))
    client.send(*chunk("1/a"), wish, *chunk("0/a", "1/a"))
    assert len([packet for packet in client.take() if isinstance(packet, Publish)]) == 2


# --- heat -------------------------------------------------------------------------------------------------------------


def heats(client: Client) -> dict[str, float]:
    queued = [item for item, _ in session_of(client).queue.entries]
    items = [each for item in queued for each in (item.bursts() if isinstance(item, Bundle) else (item,))]
    return {item.topic.decode(): item.heat for item in items}


def test_heat_is_the_number_of_subscribers_a_topic_has() -> None:
    world = World(configured())
    watcher, publisher = pair(world)
    others = [world.client(f"o{number}") for number in range(4)]
    others[0].subscribe("a/+")
    others[0].subscribe("a/#")  # one client, whatever the number of its subscriptions
    others[1].subscribe("a/1")
    others[2].subscribe("$share/g/a/1")
    others[3].subscribe("$share/g/a/1")
    publish(publisher, "a/1", "a/2", "b")
    publish(publisher, "a/1", "a/2", "b")
    assert heats(watcher) == {"a/1": 5, "a/2": 2, "b": 1}


@examples(40)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(["a/1", "a/+", "#", "$share/g/a/1"]), st.booleans()), max_size=40
    )
)
def test_heat_is_exact_under_churn(steps: list[tuple[int, str, bool]]) -> None:
    world = World(configured())
    clients = [world.client(f"c{number}") for number in range(6)]
    publisher = world.client("p")
    held: set[tuple[int, str]] = set()
    for number, filter_, is_wanted in steps:
        if is_wanted:
            clients[number].subscribe(filter_)
            held.add((number, filter_))
        else:
            clients[number].unsubscribe(filter_)
            held.discard((number, filter_))
        publisher.publish("a/1")
        plain = {number for number, filter_ in held if not filter_.startswith("$")}
        shared = {number for number, filter_ in held if filter_.startswith("$")}
        assert world.broker.routes.known[b"a/1"].heat == len(plain) + len(shared)


def test_churn_leaves_the_heat_of_other_topics_alone() -> None:
    world = World(configured())
    client, publisher = world.client("c"), world.client("p")
    client.subscribe("t")
    publisher.publish("t")
    route = world.broker.routes.known[b"t"]
    for number in range(1_000):
        client.subscribe(f"churn/{number % 100}")
        client.unsubscribe(f"churn/{number % 100}")
    assert world.broker.routes.known[b"t"] is route, "it was not even looked for again"


def test_in_a_class_the_hotter_topic_goes_first_then_the_shallower_then_the_older() -> None:
    world = World(configured(floor=0.0))
    subscriber, publisher = pair(world)
    for number in range(3):
        world.client(f"o{number}").subscribe("1/hot/#")
    publish(publisher, "1/deep/a/b", "1/cold", "1/colder", "1/hot/a/b/c", "2/cold", "1/hot/a")
    world.advance(AWHILE)
    subscriber.resume()
    assert topics(subscriber.messages()) == ["2/cold", "1/hot/a", "1/hot/a/b/c", "1/cold", "1/colder", "1/deep/a/b"]


def test_heat_may_count_deliveries_as_well() -> None:
    world = World(configured(floor=0.0, heat_deliveries=1.0, period="1s"))
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("1/busy")
    subscriber.subscribe("1/quiet")
    for _ in range(20):
        publisher.publish("1/busy", b"payload")
    publisher.publish("1/quiet", b"payload")
    subscriber.take()
    world.advance(1)
    subscriber.stall()
    publish(publisher, "1/quiet", "1/busy")
    assert heats(subscriber) == {"1/quiet": 2, "1/busy": 21}
    world.advance(AWHILE)
    subscriber.resume()
    assert topics(subscriber.messages()) == ["1/busy", "1/quiet"]


def test_deliveries_of_one_topic_do_not_heat_another_that_has_the_same_subscribers() -> None:
    world = World(configured(floor=0.0, heat_deliveries=1.0, period="1s"))
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("1/+")
    for _ in range(20):
        publisher.publish("1/busy", b"payload")
    publisher.publish("1/quiet", b"payload")
    subscriber.take()
    world.advance(1)
    subscriber.stall()
    publish(publisher, "1/quiet", "1/busy")
    assert heats(subscriber) == {"1/quiet": 2, "1/busy": 21}


# --- what is written together -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_an_urgent_message_is_not_wrapped_together_with_bulk(is_wrapped: bool) -> None:
    """A TLS record or a WebSocket frame can only be read when all of it is there."""
    world = World(configured(floor=0.0))
    subscriber, publisher = pair(world)
    subscriber.connection.is_wrapped = is_wrapped
    publish(publisher, "1/bulk", "1/bulk", "3/alarm", "3/fire")
    world.advance(AWHILE)
    data = b"".join(world.broker.fill(subscriber.connection, 10_000, world.now))
    assert (b"bulk" in data) is not is_wrapped
    assert b"3/alarm" in data and b"3/fire" in data
    if is_wrapped:
        assert subscriber.connection in world.broker.dirty, "the rest follows at once"
        assert b"".join(world.broker.fill(subscriber.connection, 10_000, world.now)).count(b"\0001/bulk") == 2


def test_a_class_that_has_run_empty_is_not_congested_any_more() -> None:
    world = World(configured(floor=0.0))
    subscriber, publisher = pair(world)
    publish(publisher, "1/bulk", "1/bulk", "3/alarm")
    world.advance(AWHILE)
    world.broker.fill(subscriber.connection, 1, world.now)
    backlog = session_of(subscriber).backlog
    assert backlog is not None and backlog.policy.waits(1)
    assert not backlog.congestion.states[3]


# --- order and inheritance --------------------------------------------------------------------------------------------


def test_an_urgent_message_takes_its_predecessors_along() -> None:
    world = World(configured(floor=0.0))
    subscriber, publisher = pair(world)
    publish(publisher, "2/other")
    for number, level in enumerate((0, 1, 0, 3, 0)):
        publisher.publish("t", b"%d" % number, **claim(level))
    world.advance(AWHILE)
    subscriber.resume()
    assert payloads(subscriber.messages()) == [b"0", b"1", b"2", b"3", b"2/other", b"4"]


def test_others_of_the_topic_are_not_taken_along() -> None:
    world = World(configured(floor=0.0))
    subscriber, publisher = pair(world, qos=1)
    other = world.client("other")
    other.publish("t", b"other's", **claim(0))
    publisher.publish("t", b"QoS 1", qos=1, **claim(0))
    publisher.publish("t", b"QoS 0", **claim(0))
    publisher.publish("t", b"urgent", **claim(3))
    world.advance(AWHILE)
    subscriber.resume()
    assert payloads(subscriber.messages()) == [b"QoS 0", b"urgent", b"other's", b"QoS 1"]


def test_beyond_the_cap_an_urgent_message_waits_and_is_counted() -> None:
    world = World(configured(floor=0.0, inheritance=3))
    subscriber, publisher = pair(world)
    publish(publisher, "2/other")
    for number in range(5):
        publisher.publish("t", b"%d" % number, **claim(0))
    publisher.publish("t", b"urgent", **claim(3))
    world.advance(AWHILE)
    assert world.broker.fill(subscriber.connection, 1, world.now)
    backlog = session_of(subscriber).backlog
    assert backlog is not None and backlog.policy.capped == 1
    subscriber.stall()
    data = b"".join(world.broker.fill(subscriber.connection, 65_536, world.now))
    got = payloads(subscriber._framer.feed(data))  # type: ignore[arg-type]  # nothing but messages waits
    assert got == [b"0", b"1", b"2", b"3", b"4", b"urgent"], "2/other went first, order was kept"


def test_a_topic_that_need_not_keep_its_order() -> None:
    world = World(configured(floor=0.0, unordered=("free/#",)))
    subscriber, publisher = pair(world)
    for topic in ("free/a", "tied/a"):
        for number, level in enumerate((0, 3)):
            publisher.publish(topic, b"%s %d" % (topic.encode(), number), **claim(level))
    world.advance(AWHILE)
    subscriber.resume()
    assert payloads(subscriber.messages()) == [b"free/a 1", b"tied/a 0", b"tied/a 1", b"free/a 0"]


@examples(60)
@given(
    st.sampled_from(names()),
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 3), st.integers(0, 8)),
        max_size=60,
    ),
    st.integers(1, 8),
)
def test_every_policy_keeps_the_order_of_a_flow_and_loses_nothing(
    policy: str, steps: list[tuple[int, str, int, int, int]], window: int
) -> None:
    """Whatever the levels, the publishers, the QoS, the window and the moments at which the subscriber reads."""
    world = World(configured(policy=policy))
    subscriber = world.client("s", receive_maximum=window)
    subscriber.subscribe("#", qos=2)
    subscriber.stall()
    publishers = [world.client("p0"), world.client("p1", version=5)]
    got: list[Publish] = []

    def read(limit: int) -> None:
        data = b"".join(world.broker.fill(subscriber.connection, limit, world.now))
        for packet in subscriber._framer.feed(data):
            if isinstance(packet, Publish):
                got.append(packet)
                if packet.qos == 1:
                    subscriber.send(Puback(packet_id=packet.packet_id))
                elif packet.qos == 2:
                    subscriber.send(Pubrec(packet_id=packet.packet_id), Pubcomp(packet_id=packet.packet_id))

    for number, (who, topic, qos, level, pause) in enumerate(steps):
        publishers[who].publish(topic, b"%d %d" % (who, number), qos=qos, **claim(level))
        world.now += pause * 1e-3
        if pause % 3 == 2:
            read(40)
    for _ in range(500):
        world.now += 0.001
        read(200)
    numbers = [int(message.payload.split()[1]) for message in got]
    assert sorted(numbers) == list(range(len(steps)))
    flows: dict[tuple[bytes, str, int], list[int]] = {}
    for message, number in zip(got, numbers, strict=True):
        flows.setdefault((message.payload[:1], message.topic, message.qos), []).append(number)
    assert all(flow == sorted(flow) for flow in flows.values())
    assert world.broker.queued_bytes == 0


# --- what the low classes are promised --------------------------------------------------------------------------------


def test_low_classes_share_the_floor() -> None:
    world = World(configured(floor=0.2))
    subscriber, publisher = pair(world)
    for _ in range(2_000):
        publisher.publish("2/bulk", bytes(100))
    for _ in range(500):
        publisher.publish("0/slow", bytes(100))
    world.advance(AWHILE)
    got: list[str] = []
    for _ in range(1_000):
        data = b"".join(world.broker.fill(subscriber.connection, 1, world.now))
        got += topics(subscriber._framer.feed(data))  # type: ignore[arg-type]
    assert 180 <= got.count("0/slow") <= 220


def test_when_the_high_classes_are_empty_the_low_ones_are_flushed() -> None:
    world = World(configured())
    subscriber, publisher = pair(world)
    publish(publisher, "3/a", *["0/a"] * 100)
    world.advance(AWHILE)
    subscriber.resume()
    assert topics(subscriber.messages()) == ["3/a"] + ["0/a"] * 100


def test_a_low_message_is_sent_before_its_timeout_whatever_comes() -> None:
    classes = (Class(name="low", filter="0/#", level=0, timeout="3s"), *CLASSES[:3])
    world = World(configured(classes=classes, floor=0.0, period="1s", frequency=1))
    subscriber, publisher = pair(world)
    publish(publisher, "0/a")
    sent_at = None
    for tick in range(500):
        publish(publisher, "2/a", "3/a")
        world.now += 0.01
        data = b"".join(world.broker.fill(subscriber.connection, 1, world.now))
        if b"0/a" in data:
            sent_at = (tick + 1) * 0.01
            break
    assert sent_at is not None and 1.9 <= sent_at <= 3.0


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("frequency", [1, 4])
def test_in_one_period_go_as_many_late_messages_as_the_frequency_says(frequency: int, version: int) -> None:
    classes = (Class(name="low", filter="0/#", level=0, timeout="3s"), *CLASSES[:3])
    world = World(configured(classes=classes, floor=0.0, period="1s", frequency=frequency))
    subscriber, publisher = pair(world)
    publisher.publish("2/a", bytes(100))
    low = world.client("low", version=version)
    low.send(*(Publish(topic="0/a", payload=b"%02d" % number) for number in range(50)))
    assert len(world.broker.sessions["s"].queue.entries) == 2, "they are one burst"
    got: list[list[bytes]] = []
    for _ in range(5):  # periods, while there is always something more important
        publisher.send(*(Publish(topic="2/a", payload=bytes(100)) for _ in range(200)))
        world.now += 1.0
        data = b"".join(world.broker.fill(subscriber.connection, 8_000, world.now))
        packets = subscriber._framer.feed(data)
        got.append([packet.payload for packet in packets if isinstance(packet, Publish) and packet.topic == "0/a"])
    numbers = [b"%02d" % number for number in range(50)]
    assert got == [[], *(numbers[at * frequency : (at + 1) * frequency] for at in range(4))]


def test_an_expired_message_is_not_sent_whatever_its_level() -> None:
    world = World(configured())
    subscriber, publisher = pair(world)
    publisher.publish("3/a", b"late", message_expiry_interval=5)
    publisher.publish("3/a", b"in time", message_expiry_interval=50)
    publisher.publish("0/a", b"for ever")
    world.advance(10)
    subscriber.resume()
    got = subscriber.messages()
    assert payloads(got) in ([b"in time", b"for ever"], [b"for ever", b"in time"])
    assert {message.payload: message.properties.get("message_expiry_interval") for message in got} == {
        b"in time": 40,
        b"for ever": None,
    }
    assert world.broker.account.drops == {Drop.EXPIRED: 1}


# --- late binding -----------------------------------------------------------------------------------------------------


def test_packet_ids_follow_the_order_of_sending() -> None:
    world = World(configured(floor=0.0))
    subscriber, publisher = pair(world, qos=1)
    publish(publisher, "0/a", "1/a", "2/a", "3/a", qos=1)
    world.advance(AWHILE)
    subscriber.resume()
    assert [(message.topic, message.packet_id) for message in subscriber.messages()] == [
        ("3/a", 1),
        ("2/a", 2),
        ("1/a", 3),
        ("0/a", 4),
    ]


def test_a_message_never_overtakes_the_one_that_sets_its_alias() -> None:
    world = World(configured(floor=0.0))
    subscriber, publisher = pair(world, topic_alias_maximum=10)
    publish(publisher, "0/a", "0/a")
    publisher.publish("0/a", b"urgent", **claim(3))
    other = world.client("other")
    other.publish("0/a", b"first", **claim(3))
    world.advance(AWHILE)
    subscriber.resume()
    aliases: dict[int, str] = {}
    for message in subscriber.messages():
        alias = message.properties["topic_alias"]
        if message.topic:
            aliases[alias] = message.topic
        assert aliases[alias] == "0/a"


# --- every policy, chosen by configuration ----------------------------------------------------------------------------

ARRIVE = ("0/a/b", "1/a", "0/hot", "2/a", "3/a", "1/b")
ORDERS = {
    "fifo": list(ARRIVE),
    "taxonomy": ["3/a", "2/a", "1/a", "1/b", "0/a/b", "0/hot"],
    "strict": ["3/a", "2/a", "1/a", "1/b", "0/a/b", "0/hot"],
    "heat": ["3/a", "0/hot", "1/a", "2/a", "1/b", "0/a/b"],
    "feedback": ["3/a", "2/a", "1/a", "1/b", "0/hot", "0/a/b"],
    "edf": ["3/a", "2/a", "1/a", "1/b", "0/a/b", "0/hot"],
}


def test_every_policy_is_tested() -> None:
    assert sorted(ORDERS) == names()


@pytest.mark.parametrize("policy", ORDERS)
def test_the_configured_policy_decides(policy: str) -> None:
    world = World(configured(policy=policy, floor=0.0))
    subscriber, publisher = pair(world)
    world.client("fan").subscribe("0/hot")
    publish(publisher, *ARRIVE)
    world.advance(AWHILE)
    subscriber.resume()
    assert topics(subscriber.messages()) == ORDERS[policy]


def test_taxonomy_goes_by_the_operators_rules_alone() -> None:
    world = World(configured(policy="taxonomy"))
    subscriber, publisher = pair(world)
    publisher.publish("0/a", b"claimed", **claim(3))
    publish(publisher, "2/a")
    world.advance(AWHILE)
    subscriber.resume()
    assert payloads(subscriber.messages()) == [b"2/a", b"claimed"]


def test_edf_goes_by_deadline_so_age_beats_level_in_the_end() -> None:
    world = World(configured(policy="edf"))
    subscriber, publisher = pair(world)
    publish(publisher, "0/a")
    world.advance(11)
    publish(publisher, "1/a")
    world.advance(AWHILE)
    subscriber.resume()
    assert topics(subscriber.messages()) == ["0/a", "1/a"]


# --- watching ---------------------------------------------------------------------------------------------------------


def test_waiting_times_are_counted_by_class() -> None:
    world = World(configured(floor=0.0))
    subscriber, publisher = pair(world)
    publish(publisher, "1/a", "1/a")
    world.advance(0.9)
    publish(publisher, "3/a")
    world.advance(0.1)
    subscriber.resume()
    account = world.broker.account
    assert account.wait_quantile(1, 0.5) == pytest.approx(1.024)
    assert account.wait_quantile(3, 0.99) == pytest.approx(0.128)
    assert account.wait_quantile(0, 0.5) == 0.0
