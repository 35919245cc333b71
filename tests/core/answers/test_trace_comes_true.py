"""What ``trace`` says of a message is what happens when it is published next, receiver by receiver and name by name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import event, given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.kits.picture import picture
from tests.kits.world import Client, World, configured
from tieline.conf.schema import Attribute, Claim, Class, Event, Priority
from tieline.core.account import Drop
from tieline.core.answers.trace import Probe, Trace, trace
from tieline.core.client import Hold
from tieline.core.ports import Allowed, Login, Refused, Verdict
from tieline.wire.packets import Publish, Pubrec, Pubrel

TOPICS = ("a", "a/b", "c")
FILTERS = (
    "a",
    "+",
    "a/b",
    "a/#",
    "#",
    "$share/g/a",
    "$share/g/+",
    "$share/h/a/b",
    "a?x>1",
    "a/b?x>1 or y=2",
    "+?changed(x)",
    "a/#?delta(x)>=2",
    "$share/g/a?x>1",
    "$share/g/a/#?changed(x)",
)
PAYLOADS = (b'{"x": 2}', b'{"x": 0, "y": 2}', b'{"x": 5, "pad": "....................................."}', b"-", b"")
PROPERTIES: tuple[tuple[tuple[str, str], ...], ...] = (
    (),
    (),
    (),
    (("priority", "0"),),
    (("priority", "3"),),
    (("priority", "high"),),
    (("$once", "q/1"),),
    (("$once", "q"),),
)
#: What each client says when it connects; the last one speaks 3.1.1.
CLIENTS: tuple[dict[str, Any], ...] = (
    {},
    {"receive_maximum": 1},
    {"maximum_packet_size": 60, "topic_alias_maximum": 1},
    {"version": 4},
)

EVENTS = {"typed": Event(topic="a/#", attributes=(Attribute("x"), Attribute("y")))}
CLASSES = (Class(name="small", filter="a/b", level=2, max_packet=50), Class(name="low", filter="c", level=0))
SETTINGS = (
    configured(queue_messages=3),
    configured(queue_messages=3, full="oldest", retained_messages=1),
    configured(queue_messages=2, full="pause"),
    configured(queue_messages=3, queue_bytes_total=1, maximum_qos=1),
    msgspec.structs.replace(configured(queue_messages=3), event=EVENTS, priority=Priority(unknown="refuse")),
    msgspec.structs.replace(configured(queue_messages=3), class_=CLASSES, claim=(Claim(max_level=2, per_s=1),)),
)


class Rules:
    """Not everybody may write, and not everybody may read, everything."""

    is_open = False

    def connect(self, login: Login) -> Verdict:
        return Allowed()

    def publish(self, login: Login, topic: str) -> Verdict:
        return Refused("c0 keeps quiet") if (login.client_id, topic) == ("c0", "c") else Allowed()

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return Allowed()

    def may(self, action: str, user: str | None, client_id: str, topic: str) -> bool:
        return (client_id, topic) != ("c1", "a/b")


def _message(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "topic": draw(st.sampled_from(TOPICS)),
        "payload": draw(st.sampled_from(PAYLOADS)),
        "qos": draw(st.integers(0, 2)),
        "retain": draw(st.booleans()),
        "properties": draw(st.sampled_from(PROPERTIES)),
    }


messages = st.composite(_message)()
number = st.integers(0, len(CLIENTS) - 1)
subscriptions = st.tuples(
    st.just("subscribe"),
    number,
    st.sampled_from(FILTERS),
    st.integers(0, 2),
    st.integers(0, 3).map(lambda one: one == 0),
)
actions = st.one_of(
    subscriptions,
    st.tuples(st.just("publish"), number, messages),
    st.tuples(st.just("publish"), number, messages),
    st.tuples(st.sampled_from(("stall", "resume", "drop", "come", "acknowledge")), number),
)


class Stage:
    """A broker, four clients of different kinds and a publisher."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.clients = [self._come(at) for at in range(len(CLIENTS))]
        self.publisher = world.client("p")

    def _come(self, at: int) -> Client:
        return self.world.durable(f"c{at}", **CLIENTS[at])

    def act(self, action: str, at: int, *rest: Any) -> None:
        """One step of the story."""
        client = self.clients[at]
        if action == "publish":
            put(self.publisher, **rest[0])
        elif action == "subscribe" and client.is_open and client.is_reading:
            filter_, qos, no_local = rest
            client.subscribe(filter_, qos=qos, no_local=no_local and not filter_.startswith("$share"))
        elif action == "stall":
            client.stall()
            client.connection.is_blocked = True  # as a link says when the network takes nothing
        elif action == "resume" and client.is_open:
            client.connection.is_blocked = False
            client.resume()
        elif action == "drop":
            client.drop()
        elif action == "come" and not client.is_open:
            self.clients[at] = self._come(at)
        elif action == "acknowledge" and client.is_reading:
            for packet in client.take():
                if isinstance(packet, Publish) and client.is_open:
                    client.acknowledge(packet)

    def sender(self, at: int) -> Client:
        """Who publishes the message in question: one of them if it can, else a newcomer."""
        client = self.clients[at]
        can = client.is_open and client.is_reading and client.connection.hold is None
        return client if can else self.world.client("newcomer")


def put(client: Client, topic: str, payload: bytes, qos: int, retain: bool, properties: Any) -> None:
    """Publish, and release what was taken."""
    said: dict[str, Any] = {"user_property": list(properties)} if properties and client.version == 5 else {}
    client.put(topic, payload, qos, retain=retain, **said)
    for packet in [one for one in client.inbox if isinstance(one, Pubrec)]:
        client.send(Pubrel(packet_id=packet.packet_id))


@dataclass
class Seen:
    """What a message has led to, or will."""

    #: By client: copies that it got, and how many more wait for it.
    sent: Counter[str]
    waiting: Counter[str]
    #: By client and name.
    drops: Counter[tuple[str, str]]


def happened(stage: Stage, message: dict[str, Any], sender: Client) -> Seen:
    """Publish it, and look."""
    broker = stage.world.broker
    everybody = [*stage.clients, sender]
    for client in everybody:
        client.take()
    waiting = Counter({name: session.queue.messages for name, session in broker.sessions.items()})
    broker.account.last_drops.clear()
    put(sender, **message)
    after = Counter({name: session.queue.messages for name, session in broker.sessions.items()})
    after.subtract(waiting)
    sent = Counter(
        client.connection.client_id for client in {id(one): one for one in everybody}.values() for _ in _got(client)
    )
    drops: Counter[tuple[str, str]] = Counter()
    for one in broker.account.last_drops:
        drops[one.client, one.why.value] += one.messages
    return Seen(sent, after, drops)


def _got(client: Client) -> list[Publish]:
    return [packet for packet in client.inbox if isinstance(packet, Publish)]


def foretold(stage: Stage, answer: Trace) -> Seen:
    """What the answer says."""
    seen = Seen(Counter(), Counter(), Counter())
    stalled = {client.connection.client_id for client in stage.clients if client.is_open and not client.is_reading}
    for one in answer.receivers:
        if one.fate == "sent":
            seen.sent[one.client] += 1
        elif one.fate == "waits" or (one.why == Drop.TOO_LARGE and one.client in stalled):
            # how large a packet is counts when it is written
            seen.waiting[one.client] += 1
        elif one.why:
            seen.drops[one.client, one.why] += 1
    return seen


def settled(seen: Seen, answer: Trace) -> tuple[dict[Any, int], ...]:
    """Without zeros; where a queue is full, it may be another copy of the message that goes, so they count together."""
    squeezed = {one.client for one in answer.receivers if one.fate == "squeezes"}
    for client in squeezed:
        seen.waiting[client] += seen.sent.pop(client, 0)
    counts: tuple[Counter[Any], ...] = (seen.sent, seen.waiting, seen.drops)
    return tuple({key: count for key, count in each.items() if count} for each in counts)


#: What a refusal at a stage is called; elsewhere the rule says it.
REFUSALS = {"size": Drop.CLASS_TOO_LARGE, "level": Drop.UNKNOWN_LEVEL, "access": Drop.DENIED}


@examples(250)
@given(
    st.sampled_from(SETTINGS),
    st.integers(0, 3).map(lambda one: one == 0),
    st.builds(list.__add__, st.lists(subscriptions, min_size=3, max_size=6), st.lists(actions, max_size=25)),
    messages,
    number,
)
def test_what_it_says_is_what_happens(
    settings: Any, has_rules: bool, story: list[tuple[Any, ...]], message: dict[str, Any], by: int
) -> None:
    world = World(settings, access=Rules() if has_rules else None)
    stage = Stage(world)
    for action in story:
        stage.act(*action)
    stage.publisher.drop()
    sender = stage.sender(by)
    probe = Probe(**message, client=sender.connection.client_id)
    before = picture(world.broker)
    answer = trace(world.broker, probe, world.now)
    assert picture(world.broker) == before, "asking changes nothing"
    seen = happened(stage, message, sender)
    if not answer.is_refused:
        for one in answer.receivers:
            event(f"{one.fate} {one.why}")
        kept = {step.stage: step.text for step in answer.steps}["retained"]
        if kept.endswith("retained_full"):
            seen.drops.subtract({(sender.connection.client_id, Drop.RETAINED_FULL.value): 1})
        assert settled(seen, answer) == settled(foretold(stage, answer), answer)
        return
    step = answer.steps[-1]
    event(f"refused: {step.stage}")
    assert not seen.sent and not any(seen.waiting.values())
    if step.stage == "abilities":
        assert sender.closed
    elif step.stage == "room" and step.text.startswith("its publisher waits"):
        assert sender.connection.hold is Hold.QUEUE_FULL
        assert not seen.drops
    else:
        why = Drop.REFUSED if step.stage == "room" else REFUSALS.get(step.stage) or Drop(step.rule)
        assert [name for _, name in seen.drops.elements()] == [why]
