"""Who would get a message: the answer is what happens, and asking changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.kits.picture import picture
from tests.kits.world import Client, World, configured
from tieline.conf.schema import Attribute, Claim, Class, Event, Listener, Priority, Settings
from tieline.core.account import ON_ARRIVAL, Drop
from tieline.core.answers.steps import Outcome
from tieline.core.answers.trace import LISTED, Probe, Trace, trace
from tieline.core.ports import Allowed, Login, Refused, Verdict

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


FILTERS = ("a", "+", "a/b", "a/#", "#", "$share/g/a", "$share/g/+", "$share/h/a/b", "a?x>1", "a/b?x>1 or y=2")
actions = st.one_of(
    st.tuples(st.just("subscribe"), st.integers(0, 3), st.sampled_from(FILTERS), st.integers(0, 2), st.booleans()),
    st.tuples(
        st.just("publish"), st.integers(0, 3), st.sampled_from(("a", "a/b", "c")), st.integers(0, 2), st.booleans()
    ),
    st.tuples(st.sampled_from(("stall", "resume", "drop", "come")), st.integers(0, 3)),
)


@examples(60)
@given(
    st.lists(actions, max_size=25),
    st.sampled_from(("a", "a/b", "c")),
    st.sampled_from((b'{"x": 2}', b'{"x": 0}', b"-")),
    st.integers(0, 2),
    st.integers(0, 3),
)
def test_what_it_says_is_what_happens(
    story: list[tuple[Any, ...]], topic: str, payload: bytes, qos: int, by: int
) -> None:
    world = World(queue_messages=3)
    clients: list[Client] = [world.durable(f"c{number}") for number in range(4)]
    publisher = world.client("p")
    for action, number, *rest in story:
        client = clients[number]
        if action == "subscribe" and client.is_open and client.is_reading:
            client.subscribe(rest[0], qos=rest[1], no_local=rest[2] and not rest[0].startswith("$share"))
        elif action == "publish":
            publisher.put(rest[0], b'{"x": 5}', rest[1])
        elif action == "stall":
            client.stall()
            client.connection.is_blocked = True  # as a link says when the network takes nothing
        elif action == "resume" and client.is_open:
            client.connection.is_blocked = False
            client.resume()
        elif action == "drop":
            client.drop()
        elif action == "come" and not client.is_open:
            clients[number] = world.durable(f"c{number}")
    sender = clients[by] if clients[by].is_open and clients[by].is_reading else publisher
    name = sender.connection.client_id
    answer = ask(world, topic, payload, qos=qos, client=name)
    for client in clients:
        client.take()
    before = dict(world.broker.account.drops)
    waiting = {session.client_id: session.queue.messages for session in world.broker.sessions.values()}
    sender.put(topic, payload, qos)
    new = {why: count - before.get(why, 0) for why, count in world.broker.account.drops.items()}
    new = {why: count for why, count in new.items() if count}
    if answer.is_refused:
        assert new == {Drop.REFUSED: 1}
        return
    assert not new.keys() & ON_ARRIVAL
    assert new == _dropped(answer)
    for receiver in answer.receivers:
        if receiver.fate == "sent":
            client = next(one for one in clients if one.is_open and one.connection.client_id == receiver.client)
            assert any(getattr(packet, "topic", "") == topic for packet in client.inbox), receiver
    for client_id, count in waiting.items():
        grows = [one for one in answer.receivers if one.client == client_id and one.fate == "waits"]
        assert world.broker.sessions[client_id].queue.messages == count + len(grows)


def _dropped(answer: Trace) -> dict[str, int]:
    """The drops that an answer foretells."""
    whys = [receiver.why for receiver in answer.receivers if receiver.why]
    return {why: whys.count(why) for why in whys}
