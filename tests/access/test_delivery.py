"""Whatever way a message takes, it reaches nobody who may not read it: plain, retained, shared, conditional, wills."""

from __future__ import annotations

import pytest

from tests.access.ruled import Ruled, ruled
from tests.kits.world import Client, World
from tieline.conf.schema import Attribute, Event, Limits, Listener, Mqtt, Rule, Settings, UserLimit
from tieline.core.account import Drop
from tieline.core.client import Hold
from tieline.wire.packets import Pingreq, Pingresp, Puback, Publish, Suback, Subscribe, Subscription, Will
from tieline.wire.reason import Reason

#: Everybody may do everything, but what is secret is for ann alone.
SECRET = (
    Rule(allow="all", filter="secret/#", users=("ann",)),
    Rule(deny="all", filter="secret/#"),
    Rule(allow="all", filter="#"),
)


def payloads(client: Client) -> list[bytes]:
    return [packet.payload for packet in client.take() if isinstance(packet, Publish)]


@pytest.fixture(name="world", params=[False, True], ids=["whole", "split"])
def _world(request: pytest.FixtureRequest) -> World:
    return ruled(*SECRET, split=request.param)


def people(world: World) -> tuple[Client, Client]:
    return world.client("a", username="ann"), world.client("e", username="eve")


@pytest.mark.parametrize("filter_", ["#", "+/x", "+/#"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_wide_subscription_yields_only_what_may_be_read(world: World, filter_: str, qos: int) -> None:
    ann, eve = people(world)
    for client in (ann, eve):
        assert client.subscribe(filter_, qos=qos).reasons == (qos,)
    for _ in range(2):  # the second time the topic is known
        ann.put("secret/x", b"hush", qos)
        ann.put("open/x", b"hello", qos)
    assert payloads(ann) == [b"hush", b"hello"] * 2
    assert payloads(eve) == [b"hello"] * 2


@pytest.mark.parametrize("filter_", ["secret/x", "secret/#", "secret/+", "$share/g/secret/#"])
def test_a_subscription_inside_what_is_denied_is_refused_with_its_rule(world: World, filter_: str) -> None:
    _, eve = people(world)
    suback = eve.subscribe(filter_)
    assert suback.reasons == (Reason.NOT_AUTHORIZED,)
    assert "rule 2: deny all secret/#" in suback.properties["reason_string"]


def test_the_rule_is_told_only_to_who_asked_for_it(world: World) -> None:
    world.client("a", username="ann")
    quiet = world.client("q", username="eve", request_problem_information=0)
    suback = quiet.subscribe("secret/x")
    assert suback.reasons == (Reason.NOT_AUTHORIZED,) and "reason_string" not in suback.properties
    quiet.put("secret/x", b"", 1)
    assert "reason_string" not in quiet.expect(Puback, reason=Reason.NOT_AUTHORIZED).properties


def test_publishing_is_refused_with_its_rule_and_a_name(world: World) -> None:
    ann, eve = people(world)
    ann.subscribe("#")
    for _ in range(2):
        eve.put("secret/x", b"lie", 1)
        assert "rule 2" in eve.expect(Puback, reason=Reason.NOT_AUTHORIZED).properties["reason_string"]
    eve.put("secret/x", b"lie", 0)
    assert payloads(ann) == []
    assert world.broker.account.drops[Drop.DENIED] == 3


def test_retained_messages_are_withheld_and_cannot_be_cleared(world: World) -> None:
    ann, eve = people(world)
    ann.put("secret/x", b"kept", retain=True)
    ann.put("open/x", b"news", retain=True)
    eve.put("secret/x", b"", retain=True)
    eve.subscribe("#")
    assert payloads(eve) == [b"news"]
    ann.subscribe("#")
    assert sorted(payloads(ann)) == [b"kept", b"news"]


def test_a_shared_subscription_gives_each_message_to_a_member_who_may_read_it(world: World) -> None:
    ann, eve = people(world)
    for client in (ann, eve):
        assert client.subscribe("$share/g/#", qos=1).reasons == (1,)
    for number in range(6):
        ann.put("secret/x", b"hush %d" % number, 1)
    assert payloads(eve) == []
    assert len(payloads(ann)) == 6
    for number in range(6):
        ann.put("open/x", b"%d" % number, 1)
    assert len(payloads(eve)) == len(payloads(ann)) == 3, "they still take turns"


def test_what_a_leaving_member_leaves_goes_only_to_members_who_may_read_it(world: World) -> None:
    ann, eve = people(world)
    for client in (ann, eve):
        client.subscribe("$share/g/#", qos=1)
    publisher = world.client("p", username="ann")
    ann.stall()
    publisher.put("secret/x", b"hush", 1)
    ann.drop()
    assert payloads(eve) == []


def test_a_will_is_checked_when_it_is_given_and_when_it_is_sent(world: World) -> None:
    ann, _ = people(world)
    ann.subscribe("#")
    refused = world.open()
    refused.connect("w", username="eve", will=Will(topic="secret/w", payload=b"lie"))
    assert "will: rule 2" in refused.connack.properties["reason_string"]
    assert refused.connack.reason is Reason.NOT_AUTHORIZED
    dying = world.client("d", username="eve", will=Will(topic="open/w", payload=b"late"))
    access = world.broker.access
    assert isinstance(access, Ruled)
    access.rules = type(access.rules)(Settings(rule=(Rule(deny=("write",), filter="#", users=("eve",)), *SECRET)))
    world.broker.judge_anew()
    dying.drop()
    assert payloads(ann) == []
    assert world.broker.account.drops[Drop.DENIED] == 1


def test_sys_is_read_by_rule_once_there_are_rules() -> None:
    settings = Settings(mqtt=Mqtt(sys_interval_s=1))
    world = ruled(Rule(allow="all", filter="$SYS/#", users=("ann",)), *SECRET[2:], settings=settings)
    ann, eve = people(world)
    assert eve.subscribe("$SYS/#").reasons == (Reason.NOT_AUTHORIZED,)
    assert eve.subscribe("#").reasons == (0,)
    assert ann.subscribe("$SYS/#").reasons == (0,)
    world.advance(2)
    assert payloads(eve) == [] and len(payloads(ann)) > 10
    eve.put("$SYS/broker/uptime", b"lie", 1)
    eve.expect(Puback, reason=Reason.NOT_AUTHORIZED)


@pytest.mark.parametrize("is_late", [False, True])
def test_a_drop_is_told_only_to_who_may_read_its_topic(is_late: bool) -> None:
    rules = (
        Rule(deny="all", filter="secret/#", users=("eve",)),
        Rule(allow="all", filter="$SYS/#"),
        Rule(allow="all", filter="#"),
    )
    world = ruled(*rules, settings=Settings(mqtt=Mqtt(sys_interval_s=1)))
    ann, eve = people(world)
    last = "$SYS/broker/tieline/last_drop/offline"
    if not is_late:  # otherwise it is retained when they ask
        ann.subscribe(last)
        eve.subscribe(last)
    away = world.durable("away", username="ann")
    away.subscribe("#", qos=1)
    away.drop()
    for topic, seen in (("secret/x", False), ("open/x", True)):
        ann.publish(topic)
        world.advance(2)
        if is_late:
            ann.subscribe(last)
            eve.subscribe(last)
        told = [topic.encode() in b"".join(payloads(client)) for client in (ann, eve)]
        assert told == [True, seen]


# --- conditions -------------------------------------------------------------------------------------------------------

_EVENTS = {"reading": Event(topic="+/x", attributes=(Attribute("v", bounds=(0.0, 10.0)),))}


@pytest.mark.parametrize("has_type", [False, True])
@pytest.mark.parametrize("spelling", ["$where/v>1/#", "$where/v>1/+/x", "$where/changed(v)/#", "$share/g/$where/v>1/#"])
def test_a_condition_widens_nothing(has_type: bool, spelling: str) -> None:
    settings = Settings(mqtt=Mqtt(sys_interval_s=0), event=_EVENTS if has_type else {})
    world = ruled(*SECRET, settings=settings)
    ann, eve = people(world)
    assert eve.subscribe(spelling).reasons == (0,)
    inside = spelling.replace("#", "secret/#").replace("+/x", "secret/x")
    assert eve.subscribe(inside).reasons == (Reason.NOT_AUTHORIZED,), "rules see the bare filter"
    for number in range(3):
        ann.put("secret/x", b'{"v": %d}' % (number + 5))
        ann.put("open/x", b'{"v": %d}' % (number + 5))
    assert payloads(eve) == [b'{"v": %d}' % (number + 5) for number in range(3)]


def test_retained_messages_that_meet_a_condition_are_withheld_too() -> None:
    world = ruled(*SECRET)
    ann, eve = people(world)
    ann.put("secret/x", b'{"v": 5}', retain=True)
    eve.subscribe("$where/v>1/#")
    assert payloads(eve) == []


def test_a_shared_condition_with_readers_and_others() -> None:
    world = ruled(*SECRET)
    ann, eve = people(world)
    eve.subscribe("$share/g/#", qos=1)
    ann.subscribe("$share/g/$where/v>1/#", qos=1)
    for _ in range(4):
        ann.put("secret/x", b'{"v": 5}', 1)
    assert payloads(eve) == [] and len(payloads(ann)) == 4


# --- whose session it is ----------------------------------------------------------------------------------------------


def test_a_session_belongs_to_its_user() -> None:
    world = ruled(*SECRET)
    ann = world.client("a", username="ann", session_expiry_interval=100)
    ann.subscribe("secret/#", qos=1)
    ann.drop()
    world.client("p", username="ann").put("secret/x", b"hush", 1)
    for name in ("eve", None):
        thief = world.open()
        thief.connect("a", username=name, clean_start=False)
        assert thief.connack.reason is Reason.CLIENT_IDENTIFIER_NOT_VALID, "neither read nor thrown away by others"
        assert "belongs to another user" in thief.connack.properties["reason_string"]
    back = world.client("a", username="ann", clean_start=False, session_expiry_interval=100)
    assert payloads(back) == [b"hush"]


def test_a_session_of_nobody_is_not_continued_by_a_user() -> None:
    world = ruled(Rule(allow="all", filter="#", users=("-",)), *SECRET)
    nobody = world.client("n", session_expiry_interval=100)
    nobody.subscribe("#", qos=1)
    publisher = world.client("p", username="ann")
    publisher.put("secret/x", b"1", 1)
    assert payloads(nobody) == [b"1"]
    nobody.drop()
    eve = world.client("n", username="eve", clean_start=False)
    assert not eve.connack.session_present
    publisher.put("open/x", b"2", 1)
    assert payloads(eve) == [], "neither what waited nor the subscription"


# --- rules that change ------------------------------------------------------------------------------------------------


def test_other_rules_hold_at_once_for_what_is_connected() -> None:
    world = ruled(Rule(allow="all", filter="#"))
    ann, eve = people(world)
    eve.subscribe("#")
    for client in (ann, eve):
        client.put("secret/x", b"before")
    assert payloads(eve) == [b"before", b"before"]
    settings = Settings(mqtt=Mqtt(sys_interval_s=0), rule=SECRET)
    access = world.broker.access
    assert isinstance(access, Ruled)
    access.rules = type(access.rules)(settings)
    world.broker.renew(settings)
    ann.put("secret/x", b"after")
    ann.put("open/x", b"open")
    assert payloads(eve) == [b"open"]
    eve.put("secret/x", b"lie", 1)
    eve.expect(Puback, reason=Reason.NOT_AUTHORIZED)


# --- limits of users and listeners ------------------------------------------------------------------------------------


def hold(client: Client) -> Hold | None:
    return client.connection.hold


def limited(*limits: UserLimit) -> World:
    settings = Settings(mqtt=Mqtt(sys_interval_s=0), limit=limits)
    return World(settings, access=Ruled(settings))


def test_a_user_has_so_many_connections() -> None:
    world = limited(UserLimit(user="ann", connections=2))
    first = world.client("1", username="ann")
    world.client("2", username="ann")
    world.client("2", username="ann")  # takes over, so there are still two
    third = world.open()
    third.connect("3", username="ann")
    assert third.connack.reason is Reason.QUOTA_EXCEEDED
    assert "2 connections" in third.connack.properties["reason_string"]
    world.client("3", username="eve")
    first.drop()
    assert world.client("3a", username="ann").connack.reason is Reason.SUCCESS


@pytest.mark.parametrize("qos", [0, 1])
def test_a_user_who_is_too_fast_waits_and_loses_nothing(qos: int) -> None:
    world = limited(UserLimit(user="ann", messages_per_s=10))
    reader = world.client("r")
    reader.subscribe("#")
    ann = world.client("a", username="ann")
    for number in range(3):
        ann.send(
            *(Publish(topic="t", payload=b"%d" % number, qos=qos, packet_id=n + 1 if qos else 0) for n in range(10))
        )
        ann.send(Pingreq())
    assert hold(ann) is Hold.RATE and world.broker.account.holds[Hold.RATE] == 1
    at_once = payloads(reader)
    assert len(at_once) < 30
    world.advance(5)
    assert hold(ann) is None
    assert [*at_once, *payloads(reader)] == [b"0"] * 10 + [b"1"] * 10 + [b"2"] * 10
    assert [type(packet) for packet in ann.inbox].count(Pingresp) == 3
    assert not world.broker.account.drops and not ann.closed


def test_the_rate_of_a_user_is_that_of_all_connections_together() -> None:
    world = limited(UserLimit(user="*", bytes_per_s=1_000))
    one, two = world.client("1", username="ann"), world.client("2", username="ann")
    other = world.client("3", username="eve")
    one.put("t", bytes(5_000))
    two.put("t", b"x")
    assert hold(one) is Hold.RATE and hold(two) is Hold.RATE
    other.put("t", b"x")
    assert hold(other) is None
    one.drop()
    two.drop()
    again = world.client("4", username="ann")
    again.put("t", b"x")
    assert hold(again) is Hold.RATE, "connecting again does not refill the bucket"
    world.advance(10)
    assert hold(again) is None


def test_packets_subscriptions_depth_and_queue_of_a_user() -> None:
    world = limited(UserLimit(user="ann", packet_bytes=200, subscriptions=1, topic_levels=2, queue_bytes=500))
    ann, eve = world.client("a", username="ann"), world.client("e", username="eve")
    assert ann.connack.properties["maximum_packet_size"] == 200
    eve.put("a/b/c", b"the topic is known now")
    ann.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="a/b/c"), Subscription(filter="#"))))
    assert ann.expect(Suback).reasons == (Reason.TOPIC_FILTER_INVALID, 0)
    assert ann.subscribe("b").reasons == (Reason.QUOTA_EXCEEDED,)
    ann.stall()
    for _ in range(20):
        eve.put("t", bytes(100))
    session = world.broker.sessions["a"]
    assert session.queue.bytes <= 500 and session.dropped > 0
    ann.resume()
    ann.put("a/b/c", b"too deep")
    assert ann.closed
    back = world.client("a", username="ann")
    back.put("t", bytes(300))
    assert back.closed


def test_the_limits_of_a_listener() -> None:
    settings = Settings(mqtt=Mqtt(sys_interval_s=0), limits=Limits(connect_timeout_s=10.0))
    world = World(settings)
    listener = Listener(url="tcp://127.0.0.1:1", packet_bytes=100, connect_timeout_s=1.0, messages_per_s=1)
    world.broker.allowances.listeners["here"] = listener
    slow = world.broker.open(world.now, listener="here")
    other = world.broker.open(world.now, listener="there")
    assert slow.allowance.packet_bytes == 100
    world.broker.tick(world.now + 2)
    assert slow.closing and not other.closing
