from __future__ import annotations

from typing import Any

import pytest

from tests.kits.check_access import Decide, LateAccess, Question, Rules, check_access
from tests.kits.world import World
from tieline.core.account import Drop
from tieline.core.client import Hold
from tieline.core.inbound.publish import MAX_RIGHT_BYTES
from tieline.core.ports import Access, Refused
from tieline.wire.packets import (
    Connack,
    Pingreq,
    Pingresp,
    Puback,
    Publish,
    Pubrec,
    Suback,
    Subscribe,
    Subscription,
    Will,
)
from tieline.wire.reason import Reason


def at_once() -> tuple[Access, Decide]:
    rules = Rules()
    return rules, rules.decide


def later() -> tuple[Access, Decide]:
    rules = Rules(is_late=True)
    return rules, rules.decide


@pytest.mark.parametrize("make", [at_once, later])
def test_the_kit_passes(make: object) -> None:
    check_access(make)  # type: ignore[arg-type]  # parametrize does not keep types


def scene(*late: str, **options: Any) -> tuple[World, LateAccess]:
    access = LateAccess(late=frozenset(late))
    return World(access=access, **options), access


# --- connect ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [4, 5])
def test_connack_waits_for_the_verdict(version: int) -> None:
    world, access = scene("connect")
    client = world.open(version)
    client.connect("c")
    client.expect_nothing()
    assert access.answer(world) == Question("connect", "c", "")
    client.expect(Connack, reason=Reason.SUCCESS)
    assert access.asked == [Question("connect", "c", "")], "each question is asked once"


@pytest.mark.parametrize("version", [4, 5])
def test_a_refusal_has_its_reason_and_its_rule(version: int) -> None:
    world, access = scene("connect")
    client = world.open(version)
    client.connect("c")
    access.answer(world, Refused("the house is full", Reason.BANNED))
    connack = client.expect(Connack, reason=Reason.BANNED if version == 5 else Reason.NOT_AUTHORIZED)
    if version == 5:
        assert "the house is full" in connack.properties["reason_string"]
    client.expect_end()
    assert world.broker.account.closed["refused_banned"] == 1


def test_what_follows_connect_waits_too() -> None:
    world, access = scene("connect")
    client = world.open()
    client.connect("c")
    client.send(Pingreq())
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t"),)))
    client.expect_nothing()
    access.answer(world)
    client.expect(Connack)
    client.expect(Pingresp)
    client.expect(Suback)


def test_a_will_is_asked_for_as_a_publication() -> None:
    world, access = scene("connect", "publish")
    client = world.open()
    client.connect("c", will=Will(topic="w", payload=b"x"))
    assert access.answer(world) == Question("connect", "c", "")
    client.expect_nothing()
    assert access.answer(world, Refused("no wills here")) == Question("publish", "c", "w")
    connack = client.expect(Connack, reason=Reason.NOT_AUTHORIZED)
    assert "no wills here" in connack.properties["reason_string"]


def test_an_assigned_id_is_the_one_that_was_judged() -> None:
    world, access = scene("connect", "publish")
    client = world.open()
    client.connect("", will=Will(topic="w", payload=b"x"))
    first = access.answer(world)
    second = access.answer(world)
    connack = client.expect(Connack, reason=Reason.SUCCESS)
    assert first.client_id == second.client_id == connack.properties["assigned_client_identifier"]


def test_a_client_that_leaves_before_the_verdict_leaves_nothing() -> None:
    world, access = scene("connect")
    client = world.open()
    client.connect("c")
    client.drop()
    access.answer(world)
    assert world.broker.sessions == {}
    assert not world.broker.questions._pending


def test_two_clients_wait_independently() -> None:
    world, access = scene("connect")
    one, two = world.open(), world.open()
    one.connect("1")
    two.connect("2")
    access.answer(world, Refused("not you"))
    one.expect(Connack, reason=Reason.NOT_AUTHORIZED)
    two.expect_nothing()
    access.answer(world)
    two.expect(Connack, reason=Reason.SUCCESS)


# --- publish ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_waits_for_the_verdict_and_what_follows_waits_with_it(qos: int) -> None:
    world, access = scene("publish")
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("#")
    publisher.put("t", b"1", qos)
    publisher.put("t", b"2", qos)
    publisher.send(Pingreq())
    subscriber.expect_nothing()
    publisher.expect_nothing()
    assert publisher.connection.hold is Hold.VERDICT
    access.answer(world)
    assert [message.payload for message in subscriber.messages()] == [b"1", b"2"]
    publisher.find(Pingresp)
    assert access.asked == [Question("publish", "p", "t")], "what is allowed once is remembered"


def test_a_refused_message_goes_nowhere_and_has_a_name() -> None:
    world, access = scene("publish")
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("#")
    publisher.put("t", b"1", 1)
    access.answer(world, Refused("the rule of t"))
    puback = publisher.expect(Puback, reason=Reason.NOT_AUTHORIZED)
    assert "the rule of t" in puback.properties["reason_string"]
    publisher.put("t", b"2", 2)
    access.answer(world, Refused("the rule of t"))
    publisher.expect(Pubrec, reason=Reason.NOT_AUTHORIZED)
    subscriber.expect_nothing()
    assert world.broker.account.drops[Drop.DENIED] == 2


def test_a_message_is_counted_once() -> None:
    world, access = scene("publish")
    publisher = world.client("p")
    packets, publishes = world.broker.account.packets_in, world.broker.account.publishes_in
    publisher.put("t", b"1", 1)
    access.answer(world)
    assert world.broker.account.publishes_in == publishes + 1
    assert world.broker.account.packets_in == packets + 1


def test_other_clients_go_on_while_one_waits() -> None:
    world, access = scene("publish")
    subscriber, slow, quick = world.client("s"), world.client("slow"), world.client("quick")
    subscriber.subscribe("#")
    slow.put("t", b"slow")
    quick.put("t", b"quick")
    token = next(token for token, question in access.pending.items() if question.client_id == "quick")
    question = access.pending.pop(token)
    access.pending = {token: question, **access.pending}
    access.answer(world)
    assert [message.payload for message in subscriber.messages()] == [b"quick"]
    assert slow.connection.hold is Hold.VERDICT


def test_a_verdict_that_never_comes_ends_the_connection() -> None:
    world, _ = scene("publish", pause_max_s=30.0)
    publisher = world.client("p", keep_alive=10)
    publisher.put("t")
    world.advance(29)
    publisher.expect_nothing()
    world.advance(2)
    assert publisher.closed
    assert world.broker.account.closed["paused_too_long"] == 1
    assert world.broker.account.holds[Hold.VERDICT] == 1


# --- subscribe --------------------------------------------------------------------------------------------------------


def test_several_pending_verdicts_in_one_subscribe() -> None:
    world, access = scene("subscribe")
    client = world.client("c")
    filters = ("a", "b", "$share/g/c", "d")
    client.send(Subscribe(packet_id=5, subscriptions=tuple(Subscription(filter=filter_, qos=1) for filter_ in filters)))
    answers = [None, Refused("not b"), None, Refused("not d", Reason.QUOTA_EXCEEDED)]
    for number, verdict in enumerate(answers):
        client.expect_nothing()
        assert world.broker.routes.count == 0, "nothing is granted before everything is decided"
        # the access port sees the filter without its share
        assert access.answer(world, verdict).subject == "abcd"[number]
    suback = client.expect(Suback, packet_id=5, reasons=(1, Reason.NOT_AUTHORIZED, 1, Reason.QUOTA_EXCEEDED))
    assert "not b" in suback.properties["reason_string"]
    assert "not d" in suback.properties["reason_string"]
    assert world.broker.routes.count == 2
    assert len(access.asked) == 4, "each question is asked once"


def test_a_verdict_is_for_one_packet() -> None:
    world, access = scene("subscribe")
    client = world.client("c")
    for verdict, reason in ((None, 0), (Refused("changed"), Reason.NOT_AUTHORIZED)):
        client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t"),)))
        access.answer(world, verdict)
        client.expect(Suback, reasons=(reason,))


def test_the_same_filter_twice_in_one_packet_is_asked_once() -> None:
    world, access = scene("subscribe")
    client = world.client("c")
    wish = Subscription(filter="t")
    client.send(Subscribe(packet_id=1, subscriptions=(wish, Subscription(filter="t", qos=1))))
    access.answer(world)
    client.expect(Suback, reasons=(0, 1))


def test_a_late_verdict_for_a_dead_token_is_ignored() -> None:
    world, _ = scene()
    world.broker.decided(12_345, Refused("whom?"), world.now)


def test_without_rules_everything_is_allowed() -> None:
    world = World()
    assert world.broker.access.is_open
    client = world.client("c")
    assert client.subscribe("#").reasons == (0,)
    client.send(Publish(topic="t", payload=b"x"))
    assert len(client.messages()) == 1


def test_what_is_remembered_of_a_publisher_is_bounded() -> None:
    world, access = scene()
    publisher = world.client("p", version=4)
    for number in range(40):
        publisher.send(Publish(topic=f"t/{number}/{'x' * 65_000}", payload=b""))
        conn = publisher.connection
        assert conn.right_bytes <= MAX_RIGHT_BYTES
        assert 0 < len(conn.publishable) <= number + 1
    assert len(publisher.connection.publishable) < 20
    assert access.asked == []
