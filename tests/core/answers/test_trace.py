"""Who would get a message: the answer is what happens, and asking changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.kits.calls import count_calls
from tests.kits.picture import picture
from tests.kits.world import World, configured
from tieline.conf.schema import Attribute, Claim, Class, Event, Listener, Priority, Settings
from tieline.core.answers import audience
from tieline.core.answers.audience import Fate
from tieline.core.answers.steps import Outcome
from tieline.core.answers.trace import LISTED, Probe, Trace, trace
from tieline.core.answers.why import may_publish
from tieline.core.ports import Allowed, Login, Refused, Verdict
from tieline.native import is_compiled

EVENT = {"pcc": Event(topic="grid/+/pcc", attributes=(Attribute("voltage", bounds=(0.0, 500.0)),))}


def ask(world: World, topic: str, payload: bytes = b"x", **fields: Any) -> Trace:
    """A question, and the proof that it was only one."""
    before = picture(world.broker)
    answer = trace(world.broker, Probe(topic=topic, payload=payload, **fields), world.now)
    assert picture(world.broker) == before
    return answer


def fates(answer: Trace) -> dict[str, str]:
    return {receiver.client: receiver.fate for receiver in answer.receivers}


def step(answer: Trace, stage: str) -> tuple[Outcome, str, str]:
    """The last step of a stage."""
    found = [one for one in answer.steps if one.stage == stage][-1]
    return found.outcome, found.text, found.rule


def typed(**options: Any) -> Settings:
    return msgspec.structs.replace(configured(**options), event=EVENT)


def test_plain_subscribers() -> None:
    world = World()
    world.client("one").subscribe("a/+", qos=1)
    world.client("two").subscribe("b")
    answer = ask(world, "a/b", qos=2)
    (receiver,) = answer.receivers
    assert (receiver.client, receiver.fate, receiver.qos, receiver.filters) == ("one", "sent", 1, ("a/+",))
    assert not answer.is_refused


@pytest.mark.parametrize(
    ("topic", "stage", "said"),
    [("a/#", "name", "wildcard"), ("", "name", "empty"), ("/".join("a" * 200), "name", "more than 128 levels")],
)
def test_a_name_that_is_none(topic: str, stage: str, said: str) -> None:
    answer = ask(World(), topic)
    assert answer.is_refused and not answer.receivers
    outcome, text, rule = step(answer, stage)
    assert outcome is Outcome.NO and said in text and rule


def test_what_the_broker_does_not_do() -> None:
    world = World(maximum_qos=0, retain_available=False, packet_bytes=100)
    assert step(ask(world, "a", qos=1), "abilities")[2] == "mqtt.maximum_qos = 0"
    assert step(ask(world, "a", retain=True), "abilities")[2] == "mqtt.retain_available = false"
    assert step(ask(world, "a", bytes(200)), "abilities")[2] == "limits.packet_bytes"


class Rules:
    """One topic is closed."""

    is_open = False

    def connect(self, login: Login) -> Verdict:
        return Allowed("let in")

    def publish(self, login: Login, topic: str) -> Verdict:
        return Refused("broker.toml:7: nobody writes here") if topic == "closed" else Allowed("broker.toml:9")

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return Allowed("broker.toml:8")


def test_the_deciding_rule_is_named() -> None:
    world = World(access=Rules())
    world.client("p")
    answer = ask(world, "closed", client="p")
    assert answer.is_refused
    assert step(answer, "access") == (
        Outcome.NO,
        "it may not publish to closed; it is told 0x87 not_authorized",
        "broker.toml:7: nobody writes here",
    )
    assert step(ask(world, "open", client="p"), "access")[2] == "broker.toml:9"
    assert step(ask(world, "closed"), "access")[0] is Outcome.NOTE, "the operator is nobody in particular"
    assert step(ask(world, "$SYS/x", client="p"), "access")[2] == "$SYS belongs to the broker"


def test_a_publisher_that_does_not_exist() -> None:
    assert step(ask(World(), "a", client="ghost"), "publisher")[0] is Outcome.NO


def test_where_the_level_comes_from() -> None:
    rule = Class(name="control", filter="cmd/#", level=3)
    claim = Claim(filter="cmd/#", max_level=2, per_s=1)
    listener = (Listener(url="tcp://127.0.0.1:1883"),)
    world = World(msgspec.structs.replace(configured(), class_=(rule,), claim=(claim,), listener=listener))
    publisher = world.client("p")
    assert step(ask(world, "other"), "level") == (Outcome.YES, "1, normal", "priority.default_level = 1")
    assert step(ask(world, "other", client="p"), "level")[2] == "the client's own level"
    assert step(ask(world, "cmd/a"), "level")[2] == '[[class]] name = "control", filter = "cmd/#"'
    assert step(ask(world, "other", properties=(("priority", "2"),)), "level")[2] == "the user property priority"
    assert step(ask(world, "other", header_level=0), "level")[1].startswith("0, ")
    lowered = step(ask(world, "cmd/a", client="p"), "level")
    assert lowered[1].startswith("lowered to 2") and "[[claim]]" in lowered[2]
    publisher.publish("cmd/a")  # the one message of this second
    assert step(ask(world, "cmd/a", client="p"), "level")[1].startswith("lowered to 1")


def test_a_priority_that_is_no_level() -> None:
    refusing = World(msgspec.structs.replace(configured(), priority=Priority(unknown="refuse")))
    answer = ask(refusing, "a", properties=(("priority", "high"),))
    assert answer.is_refused and step(answer, "level")[2] == 'priority.unknown = "refuse"'
    texts = [one.text for one in ask(World(), "a", properties=(("priority", "high"),)).steps]
    assert "the user property priority is no level: ignored" in texts


def test_a_class_has_a_largest_message() -> None:
    rule = Class(name="small", filter="s", level=2, max_packet=10)
    world = World(msgspec.structs.replace(configured(), class_=(rule,)))
    assert not ask(world, "s", bytes(9)).is_refused
    assert step(ask(world, "s", bytes(10)), "size")[2] == '[[class]] name = "small"'


def test_conditions_are_shown_with_their_values() -> None:
    world = World(typed())
    world.client("low").subscribe("grid/+/pcc?voltage<207")
    world.client("high").subscribe("grid/+/pcc?voltage>=207")
    world.client("odd").subscribe("other?x>1")
    answer = ask(world, "grid/1/pcc", b'{"voltage": 200}')
    assert fates(answer) == {"low": "sent", "high": "passed_over"}
    assert step(answer, "event")[1:] == ("of type pcc: voltage = 200.0", '[event.pcc] topic = "grid/+/pcc"')
    for receiver in answer.receivers:
        assert receiver.condition.startswith("voltage") and receiver.values == {"voltage": 200.0}
    assert fates(ask(world, "grid/1/pcc", b"garbage")) == {"low": "passed_over", "high": "passed_over"}
    assert fates(ask(world, "other", b'{"x": 2}')) == {"odd": "sent"}, "no type is declared for it"


def test_references_stay_where_they_are() -> None:
    world = World(typed())
    publisher, watcher = world.client("p"), world.client("w")
    watcher.subscribe("grid/+/pcc?changed(voltage)")
    assert fates(ask(world, "grid/1/pcc", b'{"voltage": 230}')) == {"w": "sent"}
    assert fates(ask(world, "grid/1/pcc", b'{"voltage": 230}')) == {"w": "sent"}, "nothing was delivered yet"
    publisher.publish("grid/1/pcc", b'{"voltage": 230}')
    (same,) = ask(world, "grid/1/pcc", b'{"voltage": 230}').receivers
    assert same.fate == "passed_over" and same.values == {"voltage": 230.0, "voltage before": 230.0}


def test_turns_of_a_group_stay_where_they_are() -> None:
    world = World()
    for name in ("one", "two"):
        world.client(name).subscribe("$share/g/a")
    for _ in range(3):
        assert fates(ask(world, "a")) == {"one": "sent", "two": "passed_over"}
    world.client("p").publish("a")
    assert fates(ask(world, "a")) == {"two": "sent", "one": "passed_over"}


def test_a_group_without_anybody() -> None:
    world = World()
    world.durable("away").subscribe("$share/g/a", qos=1)
    world.clients[-1].drop()
    assert [receiver.why for receiver in ask(world, "a").receivers] == ["no_member"]
    assert fates(ask(world, "a", qos=1)) == {"away": "waits"}


def test_no_local() -> None:
    world = World()
    client = world.client("self")
    client.subscribe("a", no_local=True)
    assert fates(ask(world, "a", client="self")) == {"self": "passed_over"}
    assert fates(ask(world, "a")) == {"self": "sent"}
    client.subscribe("+", qos=0)
    assert fates(ask(world, "a", client="self")) == {"self": "sent"}


def test_the_state_of_queues() -> None:
    world = World(queue_messages=2)
    publisher, slow = world.client("p"), world.client("slow")
    slow.subscribe("a", qos=1)
    slow.stall()
    publisher.publish("a", qos=1)
    assert fates(ask(world, "a", qos=1)) == {"slow": "waits"}
    publisher.publish("a", qos=1)
    answer = ask(world, "a", qos=1, client="p")
    assert answer.is_refused and step(answer, "room")[1] == "refused with 0x97: the queue of slow is full"
    (squeezed,) = ask(world, "a").receivers
    assert (squeezed.fate, squeezed.why, squeezed.queued) == ("squeezes", "queue_full", 2)


def test_who_is_away_and_what_is_too_large() -> None:
    world = World()
    away, small = world.durable("away"), world.client("small", maximum_packet_size=40)
    away.subscribe("a", qos=1)
    small.subscribe("a")
    away.drop()
    whys = {receiver.client: receiver.why for receiver in ask(world, "a", bytes(50)).receivers}
    assert whys == {"away": "offline", "small": "too_large"}
    assert fates(ask(world, "a", qos=1)) == {"away": "waits", "small": "sent"}


def test_what_would_be_retained() -> None:
    world = World(retained_messages=1)
    assert step(ask(world, "a"), "retained")[1] == "no"
    assert step(ask(world, "a", retain=True), "retained")[1] == "it is kept"
    world.client("p").publish("a", retain=True)
    assert step(ask(world, "a", retain=True), "retained")[1] == "it replaces the one before"
    assert "retained_full" in step(ask(world, "b", retain=True), "retained")[1]
    assert step(ask(world, "a", b"", retain=True), "retained")[1] == "it clears the retained message"


def test_a_store_in_trouble_takes_nothing() -> None:
    world = World()
    world.broker.journal.trouble = "the disk is full"
    answer = ask(world, "a", qos=1)
    assert answer.is_refused and "the disk is full" in step(answer, "room")[1]
    assert not ask(world, "a").is_refused


def test_a_crowd_is_counted_not_listed() -> None:
    world = World()
    for number in range(LISTED + 5):
        world.client(f"c{number}").subscribe("a")
    answer = ask(world, "a")
    assert len(answer.receivers) == LISTED and answer.unlisted == 5


@pytest.mark.skipif(is_compiled(), reason="compiled functions cannot be counted")
@pytest.mark.parametrize("is_used", [False, True], ids=["a new topic", "one in use"])
def test_of_a_crowd_only_so_many_are_looked_at(monkeypatch: pytest.MonkeyPatch, is_used: bool) -> None:
    monkeypatch.setattr(audience, "LOOKED_AT", LISTED)
    monkeypatch.setattr("tieline.core.answers.trace.LOOKED_AT", LISTED)
    world = World()
    for number in range(LISTED + 1):
        world.client(f"c{number}").subscribe("a")
    if is_used:
        world.client("p").publish("a")

    def calls(qos: int) -> int:
        return count_calls(lambda: trace(world.broker, Probe(topic="a", qos=qos), world.now))

    def asks_why() -> int:
        return count_calls(lambda: may_publish(world.broker, "c0", "a", world.now))

    few, why = (calls(0), calls(1)), asks_why()
    for number in range(LISTED + 1, 3 * LISTED):
        world.client(f"c{number}").subscribe("a")
    if is_used:
        world.client("p").publish("a")
    assert (calls(0), calls(1)) <= (few[0] + 20, few[1] + 20)
    assert asks_why() <= why
    answer = trace(world.broker, Probe(topic="a"), world.now)
    assert len(answer.receivers) == LISTED and answer.unlisted == 2 * LISTED
    outcome, text, _ = step(trace(world.broker, Probe(topic="a", qos=1), world.now), "room")
    assert outcome is Outcome.UNKNOWN and "others were not asked" in text


def test_a_number_that_was_published_before() -> None:
    world = World()
    publisher = world.client("p")
    world.client("s").subscribe("a")
    once: dict[str, Any] = {"properties": (("$once", "meter/7"),), "qos": 1, "client": "p"}
    assert step(ask(world, "a", **once), "number")[1] == "message 7 of producer meter"
    publisher.publish("a", qos=1, user_property=[("$once", "meter/7")])
    answer = ask(world, "a", **once)
    assert answer.is_refused and step(answer, "number")[2] == "repeated"
    odd = ask(world, "a", properties=(("$once", "meter"),), qos=1, client="p")
    assert odd.is_refused and step(odd, "number")[2] == "malformed_once"
    assert not ask(world, "a", properties=(("$once", "meter"),), client="p").is_refused, "QoS 0 has no number"


def test_a_topic_alias_makes_the_difference() -> None:
    world = World()
    topic = "a/topic/that/is/rather/long"
    world.client("s", maximum_packet_size=35, topic_alias_maximum=1).subscribe("#")
    publisher = world.client("p")
    assert fates(ask(world, topic, b"12345")) == {"s": "dropped"}, "the alias has to be said with the topic first"
    publisher.publish(topic, b"")
    assert fates(ask(world, topic, b"12345")) == {"s": "sent"}


def test_properties_that_a_publisher_cannot_send() -> None:
    world = World()
    world.client("old", version=4)
    answer = ask(world, "a", properties=(("priority", "3"),), client="old")
    assert step(answer, "level")[1] == "1, normal"
    assert any("no user properties" in one.text for one in answer.steps)
    with_zero = ask(world, "a\0b")
    assert with_zero.is_refused and with_zero.steps[-1].stage == "name"
    assert ask(world, "a" * 70_000).steps[-1].stage == "abilities"


def test_a_crowd_takes_turns_too() -> None:
    world = World(queue_messages=1)
    for at in range(LISTED):
        world.client(f"c{at}").subscribe("a")
    both = world.client("both")
    both.subscribe("a", "$share/g/a")
    both.stall()
    world.client("other").subscribe("$share/g/a")
    answer = ask(world, "a")
    assert answer.unlisted == 3, "one of all, and the two of the group"
    assert fates(answer) == {f"c{at}": "sent" for at in range(LISTED)}


def test_a_second_copy_waits_for_the_acknowledgement_of_the_first() -> None:
    world = World()
    both = world.client("both", receive_maximum=1)
    both.subscribe("a", "$share/g/a", qos=1)
    assert [receiver.fate for receiver in ask(world, "a", qos=1).receivers] == ["sent", "waits"]
    world.client("p").publish("a", qos=1)
    assert len(both.messages()) == 1 == world.broker.sessions["both"].queue.messages


class Readers(Rules):
    """Everybody may subscribe; blind may not read."""

    def may(self, action: str, user: str | None, client_id: str, topic: str) -> bool:
        return client_id != "blind"

    def explain(self, action: str, user: str | None, client_id: str, topic: str) -> Allowed | Refused:
        return Allowed() if self.may(action, user, client_id, topic) else Refused("broker.toml:4: blind")


@pytest.mark.parametrize("filter_", ["a", "a?x>1", "$share/g/a", "$share/g/a?x>1"])
def test_who_may_not_read_is_not_on_the_route(filter_: str) -> None:
    world = World(access=Readers())
    blind = world.client("blind")
    blind.subscribe(filter_)
    (receiver,) = ask(world, "a", b'{"x": 2}').receivers if "$" not in filter_ else _but_groups(world)
    assert (receiver.fate, receiver.text) == ("passed_over", "it may not read this topic: broker.toml:4: blind")
    world.client("p").publish("a", b'{"x": 2}')
    blind.expect_nothing()


def _but_groups(world: World) -> list[Fate]:
    """Those who are not a group of which nobody is left."""
    return [one for one in ask(world, "a", b'{"x": 2}').receivers if one.why != "no_member"]
