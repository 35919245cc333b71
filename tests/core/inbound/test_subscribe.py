from __future__ import annotations

import pytest

from tests.kits.world import World, topics
from tieline.core.inbound.chunk import MAX_FILTER_BYTES
from tieline.wire.packets import Suback, Subscribe, Subscription, Unsubscribe
from tieline.wire.reason import Reason


def test_subscriptions_of_a_session_are_bounded_and_the_rest_goes_on() -> None:
    world = World(subscriptions=5)
    client = world.client("c")
    suback = client.subscribe(*(f"t/{number}" for number in range(8)))
    assert suback.reasons == (0,) * 5 + (Reason.QUOTA_EXCEEDED,) * 3
    assert "5 subscriptions" in suback.properties["reason_string"]
    assert client.subscribe("t/0", qos=1).reasons == (1,), "one that exists may change"
    client.unsubscribe("t/0")
    assert client.subscribe("new").reasons == (0,)
    client.publish("t/3")
    assert topics(client.messages()) == ["t/3"]


def test_3_1_1_is_told_of_the_bound_too() -> None:
    world = World(subscriptions=1)
    client = world.client("c", version=4)
    assert client.subscribe("a", "b").reasons == (0, 0x80)


def test_subscriptions_of_all_sessions_are_bounded() -> None:
    world = World(subscriptions_total=10)
    clients = [world.client(f"c{number}") for number in range(3)]
    granted = [sum(reason == 0 for reason in client.subscribe(*"abcde").reasons) for client in clients]
    assert granted == [5, 5, 0]
    clients[0].drop()
    assert clients[2].subscribe("a").reasons == (0,)


@pytest.mark.parametrize("packet", ["subscribe", "unsubscribe"])
def test_a_packet_with_too_many_filters_is_refused_as_a_whole(packet: str) -> None:
    world = World()
    client = world.client("c")
    names = tuple(f"t/{number}" for number in range(MAX_FILTER_BYTES // 4))
    if packet == "subscribe":
        client.send(Subscribe(packet_id=1, subscriptions=tuple(Subscription(filter=name) for name in names)))
    else:
        client.send(Unsubscribe(packet_id=1, filters=names))
    client.expect_end(Reason.QUOTA_EXCEEDED)
    assert world.broker.account.closed["quota_exceeded"] == 1
    assert world.broker.routes.count == 0


def test_a_packet_just_below_the_bound_is_fine() -> None:
    world = World()
    client = world.client("c")
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="#"),) * (MAX_FILTER_BYTES // 4 - 1)))
    assert len(client.expect(Suback).reasons) == MAX_FILTER_BYTES // 4 - 1
    assert world.broker.routes.count == 1


def test_levels_are_bounded() -> None:
    world = World(topic_levels=4)
    client = world.client("c")
    assert client.subscribe("a/b/c/d", "a/b/c/d/e", "+/+/+/#", "+/+/+/+/#", "$share/g/a/b/c/d").reasons == (
        0,
        Reason.TOPIC_FILTER_INVALID,
        0,
        Reason.TOPIC_FILTER_INVALID,
        0,
    )
    client.put("a/b/c/d/e")
    client.expect_end(Reason.TOPIC_NAME_INVALID)


def test_weights_are_given_back() -> None:
    world = World(subscriptions=100)
    client = world.client("c")
    deep = "a" + "/a" * 100
    for _ in range(50):
        assert client.subscribe(deep, f"$share/g/{deep}").reasons == (0, 0)
        client.unsubscribe(deep, f"$share/g/{deep}")
    session = client.connection.session
    assert session is not None
    assert session.weight == world.broker.routes.weight == world.broker.routes.count == 0


def test_refusals_have_names() -> None:
    world = World(subscriptions=2, topic_levels=3)
    client = world.client("c")
    client.subscribe("a", "b", "c", "d", "a/b/c/d")
    assert world.broker.account.refusals == {"quota_exceeded": 2, "topic_filter_invalid": 1}
    told = [event for event in world.broker.account.events if event.kind == "refused"]
    assert [event.client for event in told] == ["c"]
    assert "quota_exceeded" in told[0].text
