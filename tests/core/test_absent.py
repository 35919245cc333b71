"""A session whose client is away and whose queue is full: it ends, or the publisher is refused, as it was chosen."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.crashing import Scene
from tests.kits.examples import examples
from tests.kits.world import World, configured, payloads
from tieline.conf.schema import Absent, Class, Settings, UserLimit
from tieline.core.account import Drop
from tieline.core.durable import facts
from tieline.wire.packets import Puback, Publish
from tieline.wire.reason import Reason

ROOM = 3


def settings(*, by_class: Absent | None = None, by_user: Absent | None = None, **options: Any) -> Settings:
    made = configured(queue_messages=ROOM, **options)
    classes = (Class(name="plain", filter="t/#", level=1, absent=by_class),)
    return msgspec.structs.replace(made, class_=classes, limit=(UserLimit(user="u", absent=by_user),))


def absent(world: World, name: str = "away", filter_: str = "#", **fields: Any) -> None:
    reader = world.durable(name, **fields)
    reader.subscribe(filter_, qos=1)
    reader.drop()


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [1, 2])
def test_one_absent_client_does_not_stop_a_site(version: int, qos: int) -> None:
    world = World(settings())
    absent(world)
    present = world.client("present")
    present.subscribe("t", qos=qos)
    publisher = world.client("p", version=version)
    for number in range(ROOM + 2):
        assert publisher.publish("t", b"%d" % number, qos=qos) is Reason.SUCCESS
        for message in [packet for packet in present.take() if isinstance(packet, Publish)]:
            assert message.payload == b"%d" % number
            present.acknowledge(message)
    assert "away" not in world.broker.sessions
    account = world.broker.account
    assert account.sessions_ended == {"absent_full": 1}
    assert account.drops == {Drop.SESSION_ENDED: ROOM + 1}
    assert [event.why for event in account.events if event.kind == "session_ended"] == ["absent_full"]
    assert not world.durable("away").connack.session_present


@pytest.mark.parametrize(
    ("choices", "is_refused"),
    [
        ({}, False),
        ({"absent": "refuse"}, True),
        ({"by_class": "refuse"}, True),
        ({"absent": "refuse", "by_class": "end"}, False),
        ({"by_user": "refuse"}, True),
        ({"by_class": "refuse", "by_user": "end"}, False),
    ],
)
def test_the_user_decides_then_the_class_then_the_broker(choices: dict[str, Any], is_refused: bool) -> None:
    world = World(settings(**choices))
    absent(world, username="u")
    publisher = world.client("p")
    answers = [publisher.publish("t/x", qos=1) for _ in range(ROOM + 1)]
    assert answers[:-1] == [Reason.SUCCESS] * ROOM
    assert (answers[-1] is Reason.QUOTA_EXCEEDED) == is_refused
    assert ("away" in world.broker.sessions) == is_refused


def test_where_the_oldest_goes_nobody_ends() -> None:
    world = World(settings(full="oldest"))
    absent(world)
    publisher = world.client("p")
    assert [publisher.publish("t", b"%d" % each, qos=1) for each in range(5)] == [Reason.SUCCESS] * 5
    assert payloads(world.durable("away").messages()) == [b"2", b"3", b"4"]


def test_a_client_that_is_connected_and_does_not_read_is_never_ended() -> None:
    world = World(settings(inflight=1))
    reader = world.durable("slow")
    reader.subscribe("#", qos=1)
    publisher = world.client("p")
    answers = [publisher.publish("t", qos=1) for _ in range(ROOM + 2)]
    assert answers == [Reason.SUCCESS] * (ROOM + 1) + [Reason.QUOTA_EXCEEDED]
    assert "slow" in world.broker.sessions


def test_others_of_a_group_get_what_an_ended_session_had() -> None:
    world = World(settings())
    for name in ("a", "b"):
        absent(world, name, "$share/g/t")
    publisher = world.client("p")
    for number in range(2 * ROOM):
        assert publisher.publish("t", b"%d" % number, qos=1) is Reason.SUCCESS
    assert sorted(world.broker.sessions) == ["a", "b", "p"]
    survivor = world.durable("b")
    assert len(survivor.messages()) == ROOM
    publisher.publish("t", b"last", qos=1)
    assert payloads(survivor.messages()) == [b"last"]
    assert not world.broker.account.drops


def test_a_crash_before_the_end_is_permanent_loses_nothing() -> None:
    scene = Scene(settings=settings(absent="end"))
    scene.subscribe(scene.kept("away"), "t", qos=1).drop()
    scene.settle()
    publisher = scene.clean("p")
    for number in range(ROOM + 1):
        publisher.send(Publish(topic="t", payload=b"%d" % number, qos=1, packet_id=number + 1))
    ended = [any(fact[0] == facts.FORGET for fact in batch) for batch in scene.store.batches]
    assert ended.count(True) == 1
    # everything up to the batch in which the session ends is permanent, and its acknowledgements may have left
    scene.commit(ended.index(True) - scene.store.committed)
    assert len([packet for packet in publisher.take() if isinstance(packet, Puback)]) == ROOM + 1
    scene.restart()
    assert scene.world.broker.sessions["away"].queue.messages == ROOM + 1
    client = scene.world.durable("away")
    scene.settle()
    assert [packet.payload for packet in client.take() if isinstance(packet, Publish)] == [b"0", b"1", b"2", b"3"]


steps = st.one_of(
    st.tuples(st.just("come"), st.integers(0, 2)),
    st.tuples(st.just("go"), st.integers(0, 2)),
    st.tuples(st.just("publish"), st.integers(1, 2)),
)


@examples(60)
@given(st.lists(steps, min_size=5, max_size=50))
def test_what_was_acknowledged_arrives_unless_the_session_ended(story: list[tuple[str, int]]) -> None:
    """Brute force beside it: each reader has a list of what it is owed, which is emptied only by its session's end."""
    world = World(settings())
    publisher = world.client("p")
    owed: dict[int, list[bytes]] = {}
    readers: dict[int, Any] = {}
    for step, (what, number) in enumerate(story):
        if what == "come" and not (number in readers and readers[number].is_open):
            client = readers[number] = world.durable(f"r{number}")
            assert client.connack.session_present == (number in owed)
            if number not in owed:
                client.subscribe("#", qos=1)
                owed[number] = []
        elif what == "go" and number in readers:
            readers[number].drop()
        elif what == "publish":
            assert publisher.publish("t", b"%d" % step, qos=1) < Reason.UNSPECIFIED_ERROR, "nobody is in the way"
            for each, messages in list(owed.items()):
                messages.append(b"%d" % step)
                if not readers[each].is_open and len(messages) > ROOM:
                    del owed[each]  # more than may wait: the session ends
        for each, reader in readers.items():
            for message in [packet for packet in reader.take() if isinstance(packet, Publish)]:
                assert message.payload == owed[each].pop(0)
                reader.acknowledge(message)
        assert {f"r{each}" for each in owed} | {"p"} == set(world.broker.sessions)
