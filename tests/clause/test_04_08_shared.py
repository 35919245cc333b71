"""Chapter 4.8.2: shared subscriptions."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.clause import raw
from tests.clause.marker import clause
from tests.clause.test_04_07_topics import expect_bad_filter
from tests.kits.world import Client, World, payloads
from tieline.wire.packets import Puback, Pubcomp, Publish, Pubrec, Pubrel, Subscription
from tieline.wire.reason import Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])
SHARED = "$share/group/a/#"


@pytest.fixture
def other(world: World) -> Client:
    return world.client("other")


def members(world: World, count: int = 3, filter_: str = SHARED, qos: int = 2, version: int = 5) -> list[Client]:
    joined = [world.durable(f"member {number}", version=version) for number in range(count)]
    for client in joined:
        client.subscribe(filter_, qos=qos)
    return joined


@clause("MQTT-4.8.2-1", "MQTT-4.8.2-2")
@BOTH
@pytest.mark.parametrize(
    "filter_",
    [
        "$share//a",
        "$share/",
        "$share/group",
        "$share/group/",
        "$share/gr+up/a",
        "$share/#/a",
        "$share/+/a",
        "$share/group/a/#/b",
        "$share/group/a+",
    ],
)
def test_4_8_2_1_a_malformed_shared_filter_is_refused(world: World, version: int, filter_: str) -> None:
    expect_bad_filter(world, version, filter_)


@clause("MQTT-4.8.2-1", "MQTT-4.8.2-2")
@pytest.mark.parametrize("filter_", ["$share/g/a", "$share/g/#", "$share/g/+", "$share/ö ö/a", "$share/$g/a"])
def test_4_8_2_2_a_shared_filter_matches_what_follows_its_name(world: World, filter_: str) -> None:
    client = world.client()
    assert client.subscribe(filter_, qos=1).reasons == (1,)
    client.put("a")
    client.expect(Publish, topic="a")
    client.expect_nothing()


@clause("MQTT-4.8.2-2", "MQTT-4.8.2-1")
@pytest.mark.parametrize("filter_", ["$shared/g/a", "$SHARE/g/a", "share/g/a", "$share"])
def test_4_8_2_1_what_only_looks_similar_is_an_ordinary_filter(world: World, filter_: str) -> None:
    client = world.client()
    assert client.subscribe(filter_).reasons == (0,)
    client.put("a")
    client.expect_nothing()
    client.put(filter_)
    client.expect(Publish, topic=filter_)


@clause("MQTT-4.8.2-3")
@BOTH
def test_4_8_2_3_each_message_goes_to_one_member_in_turn(world: World, version: int, other: Client) -> None:
    group = members(world, version=version)
    for number in range(30):
        other.publish("a/b", bytes([number]))
    shares = [payloads(client.messages()) for client in group]
    assert [len(share) for share in shares] == [10, 10, 10]
    assert sorted(payload for share in shares for payload in share) == [bytes([number]) for number in range(30)]


@clause("MQTT-4.8.2-3")
@pytest.mark.parametrize("qos", [0, 1])
def test_4_8_2_3_messages_that_arrive_together_are_shared_too(world: World, other: Client, qos: int) -> None:
    group = members(world)
    other.publish("a/b", qos=qos)
    stream = [
        raw.publish(5, "a/b", bytes([number]), flags=qos << 1, packet_id=1 if qos else None) for number in range(29)
    ]
    other.send(b"".join(stream))
    assert [len(client.messages()) for client in group] == [10, 10, 10]


@clause("MQTT-4.8.2-3")
@pytest.mark.parametrize("published", [0, 1, 2])
def test_4_8_2_3_each_member_has_its_own_qos(world: World, published: int, other: Client) -> None:
    group = [world.client(f"QoS {qos}") for qos in (0, 1, 2)]
    for qos, client in enumerate(group):
        client.subscribe(SHARED, qos=qos)
    for _ in range(6):
        other.publish("a/b", qos=published)
    for qos, client in enumerate(group):
        assert [message.qos for message in client.messages()] == [min(qos, published)] * 2


@clause("MQTT-4.8.2-3", "MQTT-3.3.4-3")
def test_4_8_2_3_groups_and_ordinary_subscriptions_are_independent(world: World, other: Client) -> None:
    one, two = members(world, 2)
    two.subscribe("$share/second/a/b")
    two.subscribe("a/+", subscription_identifier=[5])
    for number in range(4):
        other.publish("a/b", bytes([number]))
    group = Counter(payloads(one.messages()))
    received = two.messages()
    assert sum(message.properties.get("subscription_identifier") == [5] for message in received) == 4
    assert sum(group.values()) == 2
    assert len(received) == 4 + 4 + 2


@clause("MQTT-4.8.2-3")
@pytest.mark.parametrize("qos", [1, 2])
def test_4_8_2_3_a_member_that_is_away_is_passed_over(world: World, qos: int, other: Client) -> None:
    group = members(world)
    group[1].drop()
    for number in range(6):
        other.publish("a/b", bytes([number]), qos=qos)
    assert sorted(payloads(group[0].messages() + group[2].messages())) == [bytes([number]) for number in range(6)]
    world.durable("member 1").expect_nothing()


@clause("MQTT-4.8.2-3", "MQTT-4.5.0-1")
def test_4_8_2_3_a_group_that_is_away_keeps_its_messages(world: World, other: Client) -> None:
    for client in members(world, 2):
        client.drop()
    for number in range(6):
        other.publish("a/b", bytes([number]), qos=1)
    group = [world.durable(f"member {number}") for number in range(2)]
    received = [payload for client in group for payload in payloads(client.messages())]
    assert sorted(received) == [bytes([number]) for number in range(6)]


@clause("MQTT-4.8.2-4")
def test_4_8_2_4_qos_2_is_finished_with_the_member_that_began(world: World, other: Client) -> None:
    group = members(world, 2)
    other.publish("a/b", b"x", qos=2)
    chosen = next(client for client in group if client.inbox)
    rest = next(client for client in group if client is not chosen)
    packet_id = chosen.expect(Publish).packet_id
    name = chosen.connection.client_id
    chosen.drop()
    rest.expect_nothing()
    again = world.durable(name)
    again.expect(Publish, payload=b"x", dup=True, packet_id=packet_id)
    again.send(Pubrec(packet_id=packet_id))
    again.expect(Pubrel, packet_id=packet_id)
    again.drop()
    last = world.durable(name)
    last.expect(Pubrel, packet_id=packet_id)
    last.send(Pubcomp(packet_id=packet_id))
    rest.expect_nothing()


@clause("MQTT-4.8.2-5")
@pytest.mark.parametrize("how", ["expiry", "clean start", "after PUBREC"])
def test_4_8_2_5_qos_2_in_flight_goes_to_nobody_else(world: World, how: str, other: Client) -> None:
    group = members(world, 2)
    other.publish("a/b", b"x", qos=2)
    chosen = next(client for client in group if client.inbox)
    rest = next(client for client in group if client is not chosen)
    message = chosen.expect(Publish)
    if how == "after PUBREC":
        chosen.send(Pubrec(packet_id=message.packet_id))
    name = chosen.connection.client_id
    chosen.drop()
    if how == "clean start":
        world.client(name)
    else:
        world.advance(3_601)
    rest.expect_nothing()


@clause("MQTT-4.8.2-6")
@pytest.mark.parametrize("qos", [1, 2])
def test_4_8_2_6_a_refused_message_goes_to_nobody_else(world: World, qos: int, other: Client) -> None:
    group = members(world, 3, qos=qos)
    other.publish("a/b", b"x", qos=qos)
    chosen = next(client for client in group if client.inbox)
    message = chosen.expect(Publish)
    answer = Puback if qos == 1 else Pubrec
    chosen.send(answer(packet_id=message.packet_id, reason=Reason.UNSPECIFIED_ERROR))
    for client in group:
        client.expect_nothing()


@clause("MQTT-4.8.2-3")
def test_4_8_2_3_unsubscribing_leaves_the_group(world: World, other: Client) -> None:
    group = members(world, 2)
    group[0].unsubscribe(SHARED)
    for _ in range(4):
        other.publish("a/b")
    group[0].expect_nothing()
    assert len(group[1].messages()) == 4


@clause("MQTT-4.8.2-3", "MQTT-3.8.4-3")
def test_4_8_2_3_subscribing_again_changes_the_members_qos(world: World, other: Client) -> None:
    client = world.client()
    client.subscribe(Subscription(filter=SHARED, qos=2))
    client.subscribe(Subscription(filter=SHARED, qos=0))
    other.publish("a/b", qos=2)
    client.expect(Publish, qos=0)
    client.expect_nothing()
