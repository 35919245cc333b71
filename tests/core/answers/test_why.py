"""Why a client may, may not, waits and loses: by the rule that decides, and without a trace of the question."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.kits.picture import picture
from tests.kits.world import World, configured
from tieline.conf.schema import Class, Listener
from tieline.core.account import Drop
from tieline.core.answers.steps import Outcome, Step
from tieline.core.answers.trace import Probe, trace
from tieline.core.answers.why import MEANING, may_publish, may_subscribe, standing_of, victims
from tieline.core.client import Hold
from tieline.core.ports import Allowed, Login, Pending, Refused, Verdict


class Rules:
    """Alice owns her topics, nobody else anything; what is far away is decided elsewhere."""

    is_open = False

    def connect(self, login: Login) -> Verdict:
        return Allowed("let in", user=login.username)

    def publish(self, login: Login, topic: str) -> Verdict:
        if topic.startswith("far/"):
            return Pending(1)
        if login.user == "alice":
            return Allowed("rules.toml:3: alice writes")
        return Refused("rules.toml:9: nobody else writes")

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return self.publish(login, filter_)

    def may(self, action: str, user: str | None, client_id: str, topic: str) -> bool:
        return not topic.endswith("secret")

    def explain(self, action: str, user: str | None, client_id: str, topic: str) -> Allowed | Refused:
        return Allowed() if self.may(action, user, client_id, topic) else Refused("rules.toml:5: secrets")


def ask(world: World, question: Any, *subject: str) -> list[Step]:
    before = picture(world.broker)
    steps: list[Step] = question(world.broker, *subject, world.now)
    assert picture(world.broker) == before
    return steps


def of(steps: list[Step], stage: str) -> list[tuple[Outcome, str, str]]:
    return [(step.outcome, step.text, step.rule) for step in steps if step.stage == stage]


def test_somebody_unknown() -> None:
    (step,) = ask(World(), standing_of, "ghost")
    assert step.outcome is Outcome.NO and "there is no session ghost" in step.text


def test_the_rule_that_lets_and_the_rule_that_does_not() -> None:
    world = World(access=Rules())
    world.client("a", username="alice")
    world.client("b", username="bob")
    yes = ask(world, may_publish, "a", "t")
    assert of(yes, "access") == [(Outcome.YES, "it may publish to t", "rules.toml:3: alice writes")]
    no = ask(world, may_publish, "b", "t")
    told = "it may not publish to t; it is told 0x87 not_authorized"
    assert of(no, "access") == [(Outcome.NO, told, "rules.toml:9: nobody else writes")]
    assert no[-1].stage == "access", "what would come next does not matter"
    assert of(ask(world, may_publish, "a", "far/t"), "access")[0][0] is Outcome.UNKNOWN
    assert of(ask(world, may_subscribe, "b", "t/#"), "access")[0][2] == "rules.toml:9: nobody else writes"


def test_a_client_that_is_away_is_judged_as_its_user() -> None:
    world = World(access=Rules())
    world.durable("a", username="alice").drop()
    assert of(ask(world, may_publish, "a", "t"), "access")[0][0] is Outcome.YES
    assert of(ask(world, may_publish, "nobody", "t"), "access")[0][0] is Outcome.NO


@pytest.mark.parametrize(("topic", "clause"), [("a/+", "MQTT-4.7.0-1"), ("", "MQTT-4.7.3-1")])
def test_a_name_that_is_none(topic: str, clause: str) -> None:
    world = World()
    world.client("a")
    assert ask(world, may_publish, "a", topic)[-1].rule == clause


def test_the_brokers_own_topics() -> None:
    world = World()
    world.client("a")
    (step,) = of(ask(world, may_publish, "a", "$SYS/x"), "access")
    assert step[0] is Outcome.NO and step[2] == "$SYS belongs to the broker"


def test_level_size_and_subscribers() -> None:
    rule = Class(name="control", filter="cmd/#", level=3, max_packet=100)
    listener = (Listener(url="tcp://127.0.0.1:1883", max_level=2),)
    world = World(msgspec.structs.replace(configured(), class_=(rule,), listener=listener))
    world.client("a").subscribe("cmd/x", "$share/g/cmd/#", "cmd/x?v>1")
    steps = ask(world, may_publish, "a", "cmd/x")
    origin = '[[class]] name = "control", filter = "cmd/#"'
    assert of(steps, "level")[0] == (Outcome.NOTE, "3, control, unless the message claims another", origin)
    assert "whatever it claims" in of(steps, "level")[1][1]
    assert of(steps, "size") == [(Outcome.NOTE, "at most 100 bytes", origin)]
    assert of(steps, "subscribers")[0][1].startswith("1 plain subscriptions, 1 shared groups and 1 conditions")
    assert of(ask(world, may_publish, "a", "other"), "subscribers")[0][1] == "nobody is subscribed"


def test_what_is_subscribed_already() -> None:
    world = World()
    client = world.client("a")
    client.subscribe("a/+", "b?x>1", "$share/g/c/#", qos=1)
    assert of(ask(world, may_subscribe, "a", "a/b"), "subscribed") == [(Outcome.YES, "a/+ matches, QoS 1", "")]
    unsure = of(ask(world, may_subscribe, "a", "b"), "subscribed")
    assert unsure == [(Outcome.UNKNOWN, "b?x>1 matches, QoS 1; its condition depends on the message", "x>1")]
    assert len(of(ask(world, may_subscribe, "a", "#"), "subscribed")) == 3
    assert of(ask(world, may_subscribe, "a", "d"), "subscribed")[0][0] is Outcome.NO


def test_what_it_may_subscribe_to_and_not_read() -> None:
    world = World(access=Rules())
    world.client("a", username="alice").subscribe("t/#")
    assert of(ask(world, may_subscribe, "a", "t/secret"), "read")[0][2] == "rules.toml:5: secrets"
    (kept,) = trace(world.broker, Probe(topic="t/secret"), world.now).receivers
    assert (kept.fate, kept.text) == ("passed_over", "it may not read this topic: rules.toml:5: secrets")
    assert not of(ask(world, may_subscribe, "a", "t/open"), "read")


@pytest.mark.parametrize(
    ("options", "filter_", "stage"),
    [
        ({}, "a/#/b", "filter"),
        ({}, "a?x>", "condition"),
        ({"shared_available": False}, "$share/g/a", "filter"),
        ({"wildcard_available": False}, "a/+", "filter"),
        ({"subscriptions": 1}, "b", "limit"),
    ],
)
def test_filters_that_are_refused(options: dict[str, Any], filter_: str, stage: str) -> None:
    world = World(**options)
    world.client("a").subscribe("a")
    step = ask(world, may_subscribe, "a", filter_)[-1]
    assert step.outcome is Outcome.NO and step.stage == stage and step.text


def test_every_state_has_a_meaning() -> None:
    assert {hold.value for hold in Hold} <= MEANING.keys()


def test_what_it_waits_for() -> None:
    world = World(queue_messages=3, inflight=1)
    slow, publisher = world.client("slow"), world.client("p", version=4)
    slow.subscribe("a", qos=1)
    assert of(ask(world, standing_of, "slow"), "served")[0][1].startswith("caught_up")
    for _ in range(3):
        publisher.put("a", qos=1)
    world.advance(5)
    steps = ask(world, standing_of, "slow")
    assert of(steps, "served")[0][1].startswith("inflight_full")
    assert of(steps, "queue")[0][1].startswith("2 messages") and "5.0 s ago" in of(steps, "queue")[0][1]
    assert of(steps, "in flight")[0][1].startswith("1 of 1 messages")
    slow.stall()
    for _ in range(2):
        publisher.put("a", qos=1)
    assert of(ask(world, standing_of, "p"), "served")[0][1].endswith("the queue of slow")
    slow.drop()
    assert not of(ask(world, standing_of, "slow"), "queue"), "its session has ended"


def test_the_last_victims_can_be_searched() -> None:
    world = World(queue_messages=2)
    for name in ("one", "two"):
        client = world.client(name)
        client.subscribe("a/#")
        client.stall()
    publisher = world.client("p")
    for number in range(6):
        publisher.publish(f"a/{number % 2}")
        world.advance(1)
    broker = world.broker
    assert sum(one.messages for one in victims(broker)) == 8 == broker.account.drops[Drop.QUEUE_FULL]
    newest = victims(broker)[0]
    assert (newest.client, newest.topic, newest.queued, newest.level) == ("two", "a/1", 2, 1)
    assert newest.age_s == pytest.approx(2.0)
    assert {one.client for one in victims(broker, client="one")} == {"one"}
    assert {one.topic for one in victims(broker, topic="+/1")} == {"a/1"}
    assert not victims(broker, why=Drop.EXPIRED) and not victims(broker, level=3)
    assert len(victims(broker, level=1)) == 8
    assert len(victims(broker, since=world.now - 1.5)) == 2
    assert len(victims(broker, most=3)) == 3
    assert of(ask(world, may_subscribe, "one", "a/1"), "dropped")[0][1].startswith("2 messages")
