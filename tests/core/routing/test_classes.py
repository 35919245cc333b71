"""Where a message's level comes from, and who is allowed which."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kits.world import Client, World, payloads
from tieline.conf.schema import Claim, Class, Listener, Mqtt, Priority, Settings
from tieline.core.account import Drop
from tieline.core.routing.classes import NO_RULE, Classes, claimed_level
from tieline.sched.levels import DEFAULTS
from tieline.wire.packets import Puback, Publish, Pubrec, Will
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason

RULES = (
    Class(name="alarm", filter="plant/+/alarm", level=3),
    Class(name="plant", filter="plant/#", level=2),
    Class(name="log", filter="log/#", level=0),
)


def settings(*, classes: tuple[Class, ...] = (), claims: tuple[Claim, ...] = (), **priority: Any) -> Settings:
    return Settings(mqtt=Mqtt(sys_interval_s=0), class_=classes, claim=claims, priority=Priority(**priority))


def priority(value: object) -> dict[str, Any]:
    return {"user_property": [("priority", str(value))]}


def from_listener(
    world: World, client_id: str, *, max_level: int = 3, node_level: int | None = None, **connect: Any
) -> Client:
    """A client that came through a listener with these levels."""
    client = world.open(connect.pop("version", 5))
    connection = client.connection
    connection.max_level = max_level
    connection.level = min(max_level, world.broker.priorities.default_level if node_level is None else node_level)
    client.connect(client_id, **connect)
    return client


def watcher(world: World, qos: int = 1) -> Client:
    """A subscriber to everything that does not read: what it will get stays in its queue."""
    client = world.client("watcher")
    client.subscribe("#", qos=qos)
    client.stall()
    return client


def levels(client: Client) -> list[int]:
    """The level of each waiting message, in the order of arrival."""
    session = client.connection.session
    assert session is not None and session.backlog is None
    return [item.level for item, _ in session.queue.entries for _ in range(item.messages)]


# --- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "level"),
    [
        ("plant/7/alarm", 3),
        ("plant/7/alarm/old", 2),
        ("plant", 2),
        ("plant/7", 2),
        ("log/plant/7/alarm", 0),
        ("other", NO_RULE),
        ("$SYS/broker", NO_RULE),
    ],
)
def test_the_first_rule_that_matches_gives_the_level(topic: str, level: int) -> None:
    assert Classes(settings(classes=RULES)).level(topic) == level


def test_the_order_of_the_rules_decides_not_how_exact_they_are() -> None:
    assert Classes(settings(classes=RULES[::-1])).level("plant/7/alarm") == 2


def test_of_two_rules_with_one_filter_the_first_counts() -> None:
    rules = (Class(name="a", filter="t", level=1), Class(name="b", filter="t", level=3))
    assert Classes(settings(classes=rules)).level("t") == 1


def test_a_wildcard_does_not_match_the_brokers_own_topics() -> None:
    classes = Classes(settings(classes=(Class(name="all", filter="#", level=0),)))
    assert classes.level("t") == 0
    assert classes.level("$SYS/broker/uptime") == NO_RULE


def test_the_treatment_of_a_level_is_that_of_its_first_class_and_the_default_for_the_rest() -> None:
    rules = (
        Class(name="bulk", filter="a", level=1, weight=7.5, timeout="1500ms", max_packet=1_000),
        Class(name="more", filter="b", level=1, weight=9.0, full="coalesce"),
    )
    classes = Classes(settings(classes=rules, floor=0.25, period="2s", frequency=4, inheritance=3))
    normal = classes.rules.classes[1]
    assert (normal.name, normal.weight, normal.timeout_s, normal.max_packet) == ("bulk", 7.5, 1.5, 1_000)
    assert (normal.deadline_s, normal.full) == (DEFAULTS[1].deadline_s, "oldest")
    assert classes.rules.classes[0] == DEFAULTS[0]
    assert classes.names == ("low", "bulk", "important", "urgent")
    assert (classes.rules.floor, classes.rules.inheritance) == (0.25, 3)
    assert (classes.rules.patience.period_s, classes.rules.patience.frequency) == (2.0, 4)


@pytest.mark.parametrize(
    ("properties", "level"),
    [
        ({}, None),
        ({"content_type": "priority"}, None),
        ({"user_property": [("Priority", "3")]}, None),
        ({"user_property": [("x", "3"), ("priority", "2"), ("priority", "0")]}, 2),
        *(({"user_property": [("priority", str(level))]}, level) for level in range(4)),
        *(({"user_property": [("priority", text)]}, -1) for text in ("4", "-1", "", "urgent", " 3", "3.0", "03", "٣")),
    ],
)
def test_what_a_property_claims(properties: Properties, level: int | None) -> None:
    assert claimed_level(properties) == level


# --- where the level comes from ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_rule_gives_the_level_whatever_the_way_a_message_takes(version: int, qos: int) -> None:
    world = World(settings(classes=RULES))
    subscriber, publisher = watcher(world, qos=2), world.client("p", version=version)
    for _ in range(2):  # the first of a topic takes the general way, the next one the shortcut
        for topic in ("log/x", "other", "plant/1", "plant/1/alarm"):
            publisher.publish(topic, qos=qos)
    assert levels(subscriber) == [0, 1, 2, 3] * 2
    assert world.broker.account.received_by_level == [2, 2, 2, 2]


def test_the_property_goes_before_the_rule() -> None:
    world = World(settings(classes=RULES))
    subscriber, publisher = watcher(world), world.client("p")
    for value in range(4):
        publisher.publish("plant/1", **priority(value))
    assert levels(subscriber) == [0, 1, 2, 3]


def test_the_rule_goes_before_the_node() -> None:
    world = World(settings(classes=RULES))
    subscriber, publisher = watcher(world), world.client("p", **priority(3))
    assert publisher.connection.level == 3
    for _ in range(2):
        for qos in (0, 1):
            publisher.publish("log/x", qos=qos)
            publisher.publish("other", qos=qos)
    assert levels(subscriber) == [0, 3] * 4


def test_without_anything_the_level_is_the_default() -> None:
    world = World(settings(default_level=2))
    subscriber, publisher = watcher(world), world.client("p")
    publisher.publish("t")
    publisher.publish("t")
    assert levels(subscriber) == [2, 2]
    assert not world.broker.priorities.always_matter


@pytest.mark.parametrize("qos", [0, 1])
def test_the_node_level_of_a_listener(qos: int) -> None:
    world = World(settings())
    subscriber = watcher(world)
    for version, claim, level in ((4, {}, 3), (5, {}, 3), (5, priority(1), 1)):
        publisher = from_listener(world, f"p{version}{len(claim)}", node_level=3, version=version, **claim)
        assert publisher.connection.level == level
        publisher.publish("t", qos=qos)
        publisher.publish("t", qos=qos)
    assert levels(subscriber) == [3, 3, 3, 3, 1, 1]


def test_a_claim_changes_the_queues_in_which_its_message_waits_and_only_while_it_does() -> None:
    world = World(settings())
    subscriber, publisher = watcher(world), world.client("p")
    bystander = world.client("b")
    bystander.subscribe("other")
    subscriber.stall()
    mixed = []
    waits, stands_by = subscriber.connection.session, bystander.connection.session
    assert waits is not None and stands_by is not None
    for properties in ({}, priority(3), {}):
        publisher.publish("t", **properties)
        publisher.publish("other")
        mixed.append((waits.queue.is_mixed, stands_by.queue.is_mixed))
    assert mixed == [(False, False), (True, False), (True, False)]
    subscriber.resume()
    assert not waits.queue.is_mixed
    assert not world.broker.priorities.always_matter
    assert len(subscriber.messages()) >= 3


def test_a_will_has_the_level_of_its_topic() -> None:
    world = World(settings(classes=RULES))
    subscriber = watcher(world)
    world.client("w", will=Will(topic="plant/1/alarm", payload=b"gone", qos=1)).drop()
    assert levels(subscriber) == [3]


# --- what is no level -------------------------------------------------------------------------------------------------


def test_what_is_no_level_is_ignored_and_counted() -> None:
    world = World(settings(classes=RULES))
    subscriber, publisher = watcher(world), world.client("p")
    assert publisher.publish("plant/1", qos=1, **priority("high")) is Reason.SUCCESS
    publisher.publish("other", **priority(4))
    assert levels(subscriber) == [2, 1]
    assert world.broker.account.unknown_levels == 2


@pytest.mark.parametrize(("qos", "answer"), [(1, Puback), (2, Pubrec)])
def test_what_is_no_level_is_refused_where_configured(qos: int, answer: type[Puback | Pubrec]) -> None:
    world = World(settings(unknown="refuse"))
    subscriber, publisher = watcher(world), world.client("p")
    publisher.put("t", qos=qos, packet_id=9, **priority("high"))
    told = publisher.expect(answer, packet_id=9, reason=Reason.IMPLEMENTATION_SPECIFIC_ERROR)
    assert told.properties["reason_string"] == "the priority is no level"
    publisher.put("t", **priority("high"))  # QoS 0 has no answer
    publisher.expect_nothing()
    assert levels(subscriber) == []
    assert world.broker.account.unknown_levels == 2
    assert publisher.publish("t", qos=qos, **priority("3")) is Reason.SUCCESS
    assert levels(subscriber) == [3]


def test_a_node_level_that_is_none_is_ignored_and_counted() -> None:
    world = World(settings())
    client = world.client("c", **priority("boss"))
    assert client.connection.level == 1
    assert world.broker.account.unknown_levels == 1


# --- who may claim what -----------------------------------------------------------------------------------------------


def test_a_listener_bounds_what_its_clients_reach_by_any_way() -> None:
    # a world opens connections by itself; that a listener in the settings is bounded makes the broker ask
    bounded = Settings(
        mqtt=Mqtt(sys_interval_s=0), class_=RULES, listener=(Listener(url="tcp://127.0.0.1:0", max_level=1),)
    )
    world = World(bounded)
    subscriber = watcher(world)
    publisher = from_listener(world, "p", max_level=1, **priority(3))
    assert publisher.connection.level == 1
    publisher.publish("other", **priority(3))
    for _ in range(2):
        publisher.publish("plant/1/alarm")
        publisher.publish("log/x")
    assert levels(subscriber) == [1, 1, 0, 1, 0]
    assert world.broker.priorities.claims.lowered == 3
    world.client("free").publish("other", **priority(3))
    assert levels(subscriber)[-1] == 3


def test_claims_go_by_user_and_topic_and_the_first_that_matches_counts() -> None:
    claims = (
        Claim(user="operator", filter="#", max_level=3),
        Claim(user="-", filter="#", max_level=0),
        Claim(user="*", filter="plant/#", max_level=2),
        Claim(user="*", filter="#", max_level=1),
    )
    world = World(settings(claims=claims))
    subscriber = watcher(world)
    for name in ("operator", None, "somebody"):
        publisher = world.client(f"p-{name}", username=name)
        publisher.publish("plant/1", **priority(3))
        publisher.publish("other", **priority(3))
    assert levels(subscriber) == [3, 3, 0, 0, 2, 1]
    assert world.broker.priorities.claims.lowered == 4


def test_what_is_within_the_bounds_is_not_counted() -> None:
    world = World(settings(claims=(Claim(max_level=2),)))
    subscriber, publisher = watcher(world), world.client("p")
    publisher.publish("t")
    publisher.publish("t")
    publisher.publish("t", **priority(2))
    assert levels(subscriber) == [1, 1, 2]
    assert (world.broker.priorities.claims.lowered, world.broker.priorities.claims.throttled) == (0, 0)


def test_a_claim_may_lower_the_default() -> None:
    world = World(settings(claims=(Claim(user="guest", max_level=0),)))
    subscriber, publisher = watcher(world), world.client("p", username="guest")
    for qos in (0, 0, 1, 1):
        publisher.publish("t", qos=qos)
    assert levels(subscriber) == [0, 0, 0, 0]


def test_claims_hold_for_the_node_as_well() -> None:
    world = World(settings(claims=(Claim(user="guest", max_level=1),)))
    assert world.client("g", username="guest", **priority(3)).connection.level == 1
    assert world.client("o", username="other", **priority(3)).connection.level == 3


def test_too_many_claims_are_lowered_to_the_ordinary_level_and_counted() -> None:
    world = World(settings(claims=(Claim(per_s=3.0),)))
    subscriber, publisher = watcher(world), world.client("p")
    for _ in range(5):
        publisher.publish("t", **priority(3))
    assert levels(subscriber) == [3, 3, 3, 1, 1]
    assert world.broker.priorities.claims.throttled == 2
    world.advance(1 / 3)
    publisher.publish("t", **priority(2))
    publisher.publish("t", **priority(2))
    assert levels(subscriber)[5:] == [2, 1]
    world.advance(3_600)
    for _ in range(5):
        publisher.publish("t", **priority(3))
    assert levels(subscriber)[7:] == [3, 3, 3, 1, 1], "one second's worth is all that can be saved"
    assert world.broker.priorities.claims.throttled == 5


def test_the_ordinary_level_costs_nothing() -> None:
    world = World(settings(claims=(Claim(per_s=1.0),)))
    subscriber, publisher = watcher(world), world.client("p")
    for _ in range(5):
        publisher.publish("t", **priority(1))
        publisher.publish("t", **priority(0))
    publisher.publish("t", **priority(3))
    assert levels(subscriber) == [1, 0] * 5 + [3]


def test_each_client_and_each_rule_has_a_rate_of_its_own() -> None:
    world = World(settings(claims=(Claim(filter="a", per_s=1.0), Claim(filter="b", per_s=2.0))))
    subscriber = watcher(world)
    for client_id in ("p", "q"):
        publisher = world.client(client_id)
        for topic in ("a", "a", "b", "b", "b"):
            publisher.publish(topic, **priority(3))
    assert levels(subscriber) == [3, 1, 3, 3, 1] * 2


def test_less_than_one_message_per_second_is_still_one_now_and_then() -> None:
    world = World(settings(claims=(Claim(per_s=0.1),)))
    subscriber, publisher = watcher(world), world.client("p")
    for _ in range(3):
        publisher.publish("t", **priority(3))
        world.advance(5)
    assert levels(subscriber) == [3, 1, 3]


def test_a_rate_of_zero_is_zero() -> None:
    world = World(settings(claims=(Claim(per_s=0.0),)))
    subscriber, publisher = watcher(world), world.client("p")
    publisher.publish("t", **priority(3))
    world.advance(100)
    publisher.publish("t", **priority(3))
    assert levels(subscriber) == [1, 1]


@pytest.mark.parametrize("level", [2, 3])
def test_a_rate_never_changes_the_order_of_a_flow(level: int) -> None:
    """A run of equal packets that is over the rate, and a shorter one behind it that would not be."""
    world = World(settings(classes=(Class(name="c", filter="t", level=level),), claims=(Claim(per_s=3.0),)))
    subscriber, publisher = watcher(world, qos=0), world.client("p", version=4)
    publisher.publish("t", b"the first")
    sent = [b"number %d" % number for number in range(5)] + [b"the last", b"the very last"]
    publisher.send(*(Publish(topic="t", payload=payload) for payload in sent))
    subscriber.resume()
    assert payloads(subscriber.messages()) == [b"the first", *sent]
    assert world.broker.priorities.claims.throttled == 5


# --- the largest packet of a class ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_is_too_large_for_its_class_is_refused_by_name(version: int, qos: int) -> None:
    classes = (Class(name="small", filter="s", level=3, max_packet=100), Class(name="any", filter="#", level=1))
    world = World(settings(classes=classes))
    subscriber, publisher = watcher(world, qos=2), world.client("p", version=version)
    for _ in range(2):
        for topic, size in (("s", 99), ("s", 100), ("t", 5_000)):
            is_refused = qos > 0 and version == 5 and size == 100
            told = publisher.publish(topic, bytes(size), qos=qos)
            assert told is (Reason.QUOTA_EXCEEDED if is_refused else Reason.SUCCESS)
    assert world.broker.account.drops == {Drop.CLASS_TOO_LARGE: 2}
    assert {(record.client, record.topic) for record in world.broker.account.last_drops} == {("p", "s")}
    subscriber.resume()
    assert sorted(len(message.payload) for message in subscriber.messages()) == [99, 99, 5_000, 5_000]


def test_the_refusal_names_the_class() -> None:
    world = World(settings(classes=(Class(name="small", filter="s", level=3, max_packet=100),)))
    publisher = world.client("p")
    publisher.put("s", bytes(100), qos=1, packet_id=5)
    told = publisher.expect(Puback, packet_id=5, reason=Reason.QUOTA_EXCEEDED)
    assert told.properties["reason_string"] == "messages of class small have at most 100 bytes"


def test_a_lowered_message_is_measured_by_the_class_it_really_gets() -> None:
    classes = (Class(name="urgent", filter="u", level=3), Class(name="small", filter="s", level=1, max_packet=10))
    world = World(settings(classes=classes, claims=(Claim(max_level=1),)))
    watcher(world)
    publisher = world.client("p")
    assert publisher.publish("u", bytes(100), qos=1) is Reason.QUOTA_EXCEEDED
    assert publisher.publish("u", bytes(9), qos=1) is Reason.SUCCESS


# --- counting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_known", [False, True])
def test_a_message_that_has_to_wait_counts_once(is_known: bool) -> None:
    """A 3.1.1 publisher that meets a full queue is held, and its packet parsed again."""
    world = World(settings(classes=(Class(name="c", filter="t", level=2),)), queue_messages=1)
    subscriber, publisher = watcher(world), world.client("p", version=4)
    publisher.publish("t", qos=1)
    before = list(world.broker.account.received_by_level)
    if not is_known:
        world.broker.routes.known.clear()
    publisher.put("t", b"waits", qos=1)
    assert publisher.connection.hold is not None
    subscriber.resume()
    world.settle()
    publisher.find(Puback)
    assert world.broker.account.received_by_level[2] - before[2] == 1
