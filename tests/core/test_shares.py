"""Whatever a client sends, others have their turn: a turn is little, measured in calls and not in counted work.

Counted work may be wrong: something that nobody counts is done in one go.  Calls are what it really takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, get_args

import pytest

from tests.kits import world as worlds
from tests.kits.calls import count_calls
from tests.kits.world import Client, World
from tieline.native import is_compiled
from tieline.wire.encode import encode
from tieline.wire.packets import (
    Auth,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Subscribe,
    Subscription,
    Unsubscribe,
    Will,
)
from tieline.wire.properties import Properties

pytestmark = pytest.mark.skipif(is_compiled(), reason="compiled functions cannot be counted")

#: Calls in one turn; about 25 ms of an interpreter that is not measured.
MOST: Final = 120_000
_WORDS: Final = Properties(user_property=[("name", "value")] * 4_000)
#: Prepares a world; who sends, and what.
Scene = Callable[[World], tuple[Client, bytes]]


def _repeat(times: int, *packets: Packet) -> Scene:
    def scene(world: World) -> tuple[Client, bytes]:
        return world.client("sender"), b"".join(encode(packet, 5) for packet in packets) * times

    return scene


def _filters(*filters: str) -> tuple[Subscription, ...]:
    return tuple(Subscription(filter=one) for one in filters)


#: By kind of packet, what a client can do with it.
FLOODS: Final[dict[type[Packet], list[Scene]]] = {
    Pingreq: [_repeat(20_000, Pingreq())],
    Puback: [_repeat(10_000, Puback(packet_id=9))],
    Pubrec: [_repeat(10_000, Pubrec(packet_id=9))],
    Pubrel: [_repeat(10_000, Pubrel(packet_id=9))],
    Pubcomp: [_repeat(10_000, Pubcomp(packet_id=9))],
    Publish: [
        _repeat(1, *(Publish(topic=f"t/{n}", payload=b"") for n in range(8_000))),
        _repeat(1, *(Publish(topic=f"t/{n}", payload=b"", retain=True) for n in range(4_000))),
        _repeat(1, *(Publish(topic="t", payload=b"", qos=2, packet_id=n + 1) for n in range(1_000))),
        _repeat(4_000, Publish(topic="t", payload=b"", properties=Properties(topic_alias=1))),
        _repeat(10, Publish(topic="t", payload=b"", properties=_WORDS)),
    ],
    Subscribe: [
        _repeat(2_000, Subscribe(packet_id=1, subscriptions=_filters("a/+/b"))),
        _repeat(1, Subscribe(packet_id=1, subscriptions=_filters(*(f"f/{n}" for n in range(5_000))))),
        _repeat(5, Subscribe(packet_id=1, subscriptions=_filters("a"), properties=_WORDS)),
    ],
    Unsubscribe: [
        _repeat(2_000, Unsubscribe(packet_id=1, filters=("a",))),
        _repeat(1, Unsubscribe(packet_id=1, filters=tuple(f"f/{n}" for n in range(5_000)))),
    ],
    Auth: [_repeat(2_000, Auth())],
    Disconnect: [_repeat(2_000, Disconnect(properties=Properties(reason_string="x" * 100)))],
}
#: CONNECT comes once and from strangers; what the broker sends is no packet of a client.
_OTHERS: Final = {"Connect", "Connack", "Suback", "Unsuback", "Pingresp"}


def test_there_is_a_flood_of_every_kind_of_packet() -> None:
    assert {each.__name__ for each in FLOODS} == {each.__name__ for each in get_args(Packet)} - _OTHERS


def wordy_connect(world: World) -> tuple[Client, bytes]:
    will = Will(topic="w", payload=b"", properties=_WORDS)
    return world.open(), encode(Connect(version=5, client_id="wordy", will=will, properties=_WORDS), 5)


def many_identifiers(world: World) -> tuple[Client, bytes]:
    """One message for thousands of subscriptions of one client, each with an identifier of its own."""
    reader = world.client("reader")
    for number in range(400):
        filters = ["/".join("+" if number >> bit & 1 else "a" for bit in range(9))]
        reader.subscribe(*filters, subscription_identifier=[number + 1])
    return world.client("sender"), encode(Publish(topic="/".join("a" * 9), payload=b""), 5) * 300


def many_groups(world: World) -> tuple[Client, bytes]:
    """One message for very many groups."""
    reader = world.client("reader")
    for start in range(0, 1_500, 500):
        reader.subscribe(*(f"$share/g{number}/t" for number in range(start, start + 500)))
    return world.client("sender"), encode(Publish(topic="t", payload=b""), 5) * 100


def words_for_many(world: World) -> tuple[Client, bytes]:
    """A message with thousands of properties for hundreds of readers."""
    for number in range(200):
        world.client(f"reader-{number}").subscribe("t")
    return world.client("sender"), encode(Publish(topic="t", payload=b"", properties=_WORDS), 5) * 5


def everything_retained(world: World) -> tuple[Client, bytes]:
    """All that is retained, again and again, by several filters that match all of it."""
    keeper = world.client("keeper")
    for number in range(2_000):
        keeper.put(f"kept/{number}", b"", retain=True)
    asked = Subscribe(packet_id=1, subscriptions=_filters("#", "+/#", "kept/+", "+/+"))
    return world.client("sender"), encode(asked, 5) * 50


def changes_of_many_topics(world: World) -> tuple[Client, bytes]:
    """Messages with another topic each, for those who want to hear of changes alone."""
    for number in range(20):
        world.client(f"reader-{number}").subscribe("c/+?changed(v) or delta(w) > 1")
    topics = (Publish(topic=f"c/{number}", payload=b'{"v": 1, "w": 2}') for number in range(800))
    return world.client("sender"), b"".join(encode(each, 5) for each in topics)


def many_that_are_away(world: World) -> tuple[Client, bytes]:
    """Messages for very many sessions whose clients are away, each with a topic that is new."""
    for number in range(600):
        with_session = world.durable(f"sleeper-{number}")
        with_session.subscribe("#", qos=1)
        with_session.drop()
    topics = (Publish(topic=f"new/{number}", payload=b"", qos=1, packet_id=number + 1) for number in range(100))
    return world.client("sender"), b"".join(encode(each, 5) for each in topics)


def a_full_queue(world: World) -> tuple[Client, bytes]:
    """Messages for a client that does not read and whose queue is full."""
    reader, sender = world.client("reader"), world.client("sender")
    reader.subscribe("f/+")
    reader.stall()
    world.broker.sessions["reader"].queue.limit(max_messages=5_000)
    kind = Properties(content_type="x")  # each is taken by itself
    topics = (Publish(topic=f"f/{number}", payload=bytes(300), properties=kind) for number in range(5_000))
    sender.send(*topics)
    return sender, encode(Publish(topic="f/more", payload=b"", properties=kind), 5) * 500


SCENES: Final[list[Scene]] = [
    a_full_queue,
    many_that_are_away,
    wordy_connect,
    many_identifiers,
    many_groups,
    words_for_many,
    everything_retained,
    changes_of_many_topics,
]


@pytest.mark.parametrize(
    "scene",
    [scene for scenes in FLOODS.values() for scene in scenes] + SCENES,
    ids=[f"{kind.__name__}-{n}" for kind, scenes in FLOODS.items() for n in range(len(scenes))]
    + [scene.__name__ for scene in SCENES],
)
def test_nothing_that_a_client_sends_is_done_in_one_go(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "check", lambda _: None)  # it looks at everything, and is no part of a turn
    world = World()
    client, data = scene(world)
    broker, now = world.broker, world.now

    def turn() -> None:
        broker.tick(now)
        for conn in broker.take_dirty():
            conn.is_dirty = False
            broker.fill(conn, 131_072, now)

    calls = [count_calls(lambda: broker.receive(client.connection, data, now))]
    while broker.work.is_behind or broker.dirty or len(calls) < 3:
        calls.append(count_calls(turn))
    assert max(calls) <= MOST, sorted(calls)[-5:]
