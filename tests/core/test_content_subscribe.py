"""SUBSCRIBE and UNSUBSCRIBE with conditions: spellings, replacements, refusals, limits."""

from __future__ import annotations

from typing import Any

from tests.core.coherence import check_routes
from tests.core.content import (
    FILTER,
    PCC,
    content_world,
    got,
    said,
    send,
    versions,
    volts,
    ways,
)
from tests.kits.check_access import LateAccess
from tests.kits.world import payloads
from tieline.core.ports import Allowed, Login, Refused, Verdict
from tieline.wire.packets import (
    Publish,
    Suback,
    Subscribe,
    Subscription,
)
from tieline.wire.reason import Reason


@versions
def test_unsubscribe_takes_the_same_spelling_and_no_other(version: int) -> None:
    world = content_world()
    client = world.client("c", version=version)
    spellings = [f"{FILTER}?voltage<207", f"{FILTER}?voltage < 207", f"$where/voltage<207/{FILTER}"]
    for spelling in spellings:
        client.subscribe(spelling)
    assert world.broker.routes.count == world.broker.routes.conditional == 3
    client.publish(PCC, said(voltage=1))
    assert len(client.messages()) == 1, "one copy"
    for left, spelling in zip((2, 1, 0), spellings, strict=True):
        other = client.unsubscribe(FILTER, f"$where/voltage%3C207/{FILTER}")
        again = client.unsubscribe(spelling)
        if version == 5:
            assert other.reasons == (Reason.NO_SUBSCRIPTION_EXISTED,) * 2
            assert again.reasons == (Reason.SUCCESS,)
        assert world.broker.routes.count == world.broker.routes.conditional == left
        client.publish(PCC, said(voltage=1))
        assert len(client.messages()) == (left > 0)
    assert world.broker.routes.weight == 0


@ways
def test_the_same_filter_with_another_property_replaces_the_condition(way: dict[str, Any]) -> None:
    world = content_world(**way)
    client, publisher = world.client("c"), world.client("p")

    def receives(*conditions: str) -> list[bytes]:
        client.subscribe(FILTER, user_property=[("$where", text) for text in conditions] + [("other", "v<")])
        send(publisher, *volts(50, 150, 250))
        return got(client)

    assert receives("voltage<100") == volts(50)
    assert receives("voltage>200") == volts(250)
    assert receives("voltage>100", "voltage<200") == volts(150)
    assert world.broker.routes.conditional == world.broker.routes.count == 1
    assert receives() == volts(50, 150, 250)
    assert (world.broker.routes.conditional, world.broker.routes.count) == (0, 1)
    assert receives("voltage<100") == volts(50)
    check_routes(world.broker)
    client.unsubscribe(FILTER)
    assert (world.broker.routes.conditional, world.broker.routes.count, world.broker.routes.weight) == (0, 0, 0)


def test_a_property_holds_for_every_filter_of_its_packet_and_beside_their_own() -> None:
    world = content_world()
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{FILTER}?voltage<100", "loose", user_property=[("$where", "phases=3")])
    client.subscribe("bare")
    publisher.publish(PCC, said(voltage=50, phases=3))
    publisher.publish(PCC, said(voltage=50, phases=1))
    publisher.publish(PCC, said(voltage=150, phases=3))
    publisher.publish("loose", said(phases=3))
    publisher.publish("loose", said(phases=1))
    publisher.publish("bare", b"x")
    assert payloads(client.messages()) == [said(voltage=50, phases=3), said(phases=3), b"x"]


@versions
def test_a_bad_condition_fails_only_its_filter(version: int) -> None:
    world = content_world()
    client = world.client("c", version=version)
    suback = client.subscribe("a", f"{FILTER}?voltage<", "$where/v<5", f"{FILTER}?voltage<207", qos=1)
    if version == 4:
        assert suback.reasons == (1, 0x80, 0x80, 1)
    else:
        assert suback.reasons == (1, Reason.TOPIC_FILTER_INVALID, Reason.TOPIC_FILTER_INVALID, 1)
        assert f"{FILTER}?voltage<: condition: column 9: expected a number" in suback.properties["reason_string"]
    assert world.broker.routes.count == 2
    assert world.broker.account.refusals["topic_filter_invalid"] == 2
    client.publish(PCC, said(voltage=1))
    assert len(client.messages()) == 1, "the connection is still there"


def test_a_bad_condition_leaves_the_subscription_that_exists_alone() -> None:
    world = content_world()
    client = world.client("c")
    client.subscribe(FILTER, user_property=[("$where", "voltage<207")])
    assert client.subscribe(FILTER, user_property=[("$where", "voltage<")]).reasons == (0x8F,)
    send(client, *volts(1, 300))
    assert got(client) == volts(1)


def test_a_filter_that_is_wrong_behind_its_condition_is_refused_like_any_other() -> None:
    world = content_world()
    client = world.client("c")
    assert client.subscribe("$where/v<1/a/#/b", "a#?v<1", "$share/g/$where/v<1/a+").reasons == (0x8F,) * 3
    old = world.client("old", version=4)
    old.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="$where/v<1/a/#/b"),)))
    old.expect_end()


class Below:
    """Everybody may subscribe below microgrid/, and to nothing else."""

    is_open = False

    def __init__(self) -> None:
        self.asked: list[str] = []

    def connect(self, login: Login) -> Verdict:
        return Allowed()

    def publish(self, login: Login, topic: str) -> Verdict:
        return Allowed()

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        self.asked.append(filter_)
        return Allowed() if filter_.startswith("microgrid/") else Refused("only microgrid/")


def test_rules_see_the_bare_filter() -> None:
    access = Below()
    world = content_world(access=access)
    client = world.client("c")
    wishes = (f"{FILTER}?voltage<5", f"$where/a=1/{FILTER}", f"$share/g/$where/a=1/{FILTER}", "$where/microgrid=1/#")
    assert client.subscribe(*wishes).reasons == (0, 0, 0, Reason.NOT_AUTHORIZED)
    assert access.asked == [FILTER, FILTER, FILTER, "#"]


def test_a_late_verdict_is_about_the_bare_filter_too() -> None:
    access = LateAccess(late=frozenset({"subscribe"}))
    world = content_world(access=access)
    client = world.client("c")
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter=f"{FILTER}?voltage<207"),)))
    assert world.broker.routes.count == 0
    assert access.answer(world).subject == FILTER
    assert client.expect(Suback).reasons == (0,)
    send(client, *volts(1, 300))
    assert got(client) == volts(1)


def test_the_question_mark_may_be_switched_off() -> None:
    world = content_world(content={"question_mark": "off"})
    client = world.client("c")
    client.subscribe("loose?v<5", "$where/v<5/loose", subscription_identifier=[1])
    client.publish("loose", said(v=9))
    client.expect_nothing()
    client.publish("loose", said(v=1))
    client.expect(Publish, topic="loose")
    client.publish("loose?v<5", b"by its name")
    client.expect(Publish, topic="loose?v<5", payload=b"by its name")


def test_a_question_mark_without_a_comparison_is_an_ordinary_character() -> None:
    world = content_world()
    client = world.client("c")
    client.subscribe("what?", "who?/me", "where?/+")
    for topic in ("what?", "who?/me", "where?/here"):
        client.publish(topic)
        client.expect(Publish, topic=topic)
    assert world.broker.routes.conditional == 0


@versions
def test_as_emqx_spells_it(version: int) -> None:
    world = content_world()
    client = world.client("c", version=version)
    client.subscribe("loose/+?v>10&name=john&up=true")
    for payload in (
        said(v=11, name="john", up=True),
        said(v=10, name="john", up=True),
        said(v=11, name="jim", up=True),
        said(v=11, name="john", up=False),
    ):
        client.publish("loose/1", payload)
    assert len(client.messages()) == 1


def test_conditions_count_towards_the_limits_of_subscriptions() -> None:
    world = content_world(subscriptions=3)
    client = world.client("c")
    wishes = [f"{FILTER}?voltage<{number}" for number in range(5)]
    assert client.subscribe(*wishes).reasons == (0, 0, 0, Reason.QUOTA_EXCEEDED, Reason.QUOTA_EXCEEDED)
    client.unsubscribe(wishes[0])
    assert client.subscribe(wishes[4]).reasons == (0,)


def test_everything_is_given_back() -> None:
    world = content_world()
    client, publisher = world.durable("c"), world.client("p")
    routes, memory = world.broker.routes, world.broker.references
    client.subscribe(f"{FILTER}?changed(voltage)", f"$share/g/{FILTER}?voltage<5", "loose?a=1", FILTER, qos=1)
    send(publisher, *volts(1, 2, 3), topic=PCC)
    send(publisher, *volts(1, 2, 3), topic="microgrid/8/pcc")
    assert (routes.count, routes.conditional, routes.shared, memory.kept) == (4, 3, 1, 2)
    client.disconnect(session_expiry_interval=0)
    assert (routes.count, routes.conditional, routes.shared, routes.weight, memory.kept) == (0, 0, 0, 0, 0)
    assert (memory.forgotten_alone, memory.forgotten_together) == (0, 0)
    assert publisher.publish(PCC, said(voltage=1), qos=1) is Reason.NO_MATCHING_SUBSCRIBERS
    check_routes(world.broker)
