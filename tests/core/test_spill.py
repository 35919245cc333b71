"""A session whose client is away and whose queue is full: what comes then waits in the store alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.crashing import Scene
from tests.kits.examples import examples
from tests.kits.world import Client, configured
from tieline.conf.schema import Class, Settings
from tieline.core.account import Drop
from tieline.wire.packets import Disconnect, Puback, Pubcomp, Publish, Pubrec, Pubrel
from tieline.wire.reason import Reason

ROOM = 3


def settings(**options: Any) -> Settings:
    classes = (
        Class(name="alarm", filter="alarm/#", level=3),
        Class(name="ending", filter="ending/#", level=2, absent="end"),
    )
    return msgspec.structs.replace(configured(queue_messages=ROOM, **options), class_=classes)


def scene_of(**options: Any) -> Scene:
    return Scene(settings=settings(**options))


def away(scene: Scene, name: str = "away", filter_: str = "#", qos: int = 1) -> None:
    scene.subscribe(scene.kept(name), filter_, qos=qos).drop()
    scene.settle()


def publish(scene: Scene, publisher: Client, *payloads: bytes, topic: str = "t", qos: int = 1) -> list[Reason]:
    answers = []
    for payload in payloads:
        packet = publisher.put(topic, payload, qos=qos)
        scene.settle()
        if qos == 1:
            answers.append(publisher.find(Puback, packet_id=packet.packet_id).reason)
        else:
            answers.append(publisher.find(Pubrec, packet_id=packet.packet_id).reason)
        if qos == 2:
            publisher.send(Pubrel(packet_id=packet.packet_id))
            scene.settle()
            publisher.find(Pubcomp)
    return answers


def read(scene: Scene, client: Client) -> list[bytes]:
    """Everything that comes while the client acknowledges what came."""
    got: list[bytes] = []
    while packets := client.take():
        for packet in packets:
            if isinstance(packet, Publish):
                got.append(packet.payload)
                client.send(
                    Puback(packet_id=packet.packet_id) if packet.qos == 1 else Pubrec(packet_id=packet.packet_id)
                )
            elif isinstance(packet, Pubrel):
                client.send(Pubcomp(packet_id=packet.packet_id))
        scene.settle()
    return got


def numbers(*bounds: int) -> list[bytes]:
    return [b"%d" % number for number in range(*bounds)]


@pytest.mark.parametrize("qos", [1, 2])
def test_more_waits_than_memory_holds_and_all_of_it_comes_once_and_in_order(qos: int) -> None:
    scene = scene_of()
    away(scene, qos=qos)
    publisher = scene.kept("p")
    assert publish(scene, publisher, *numbers(20), qos=qos) == [Reason.SUCCESS] * 20
    broker = scene.world.broker
    session = broker.sessions["away"]
    assert session.queue.messages == ROOM, "memory is bounded"
    assert session.spill is not None and session.spill.count == 17 == broker.spills.messages
    client = scene.kept("away")
    assert client.connack.session_present
    assert read(scene, client) == numbers(20)
    assert broker.sessions["away"].spill is None and not broker.spills.messages and not broker.spills.bytes
    assert not broker.account.drops
    publish(scene, publisher, b"later", qos=qos)
    assert read(scene, client) == [b"later"]


def test_what_comes_while_it_is_read_is_not_before_it() -> None:
    scene = scene_of(inflight=1)
    away(scene)
    publisher = scene.clean("p")
    publish(scene, publisher, *numbers(10))
    client = scene.kept("away")
    publish(scene, publisher, *numbers(10, 15))
    assert read(scene, client) == numbers(15)


def test_a_restart_in_the_middle_repeats_and_loses_nothing_that_was_not_sent() -> None:
    scene = scene_of(inflight=1)
    away(scene)
    publisher = scene.clean("p")
    publish(scene, publisher, *numbers(12))
    scene.restart()
    assert scene.world.broker.spills.messages == 12 - ROOM
    client = scene.kept("away")
    got = []
    for _ in range(5):
        (packet,) = [each for each in client.take() if isinstance(each, Publish)]
        got.append(packet.payload)
        client.send(Puback(packet_id=packet.packet_id))
        scene.settle()
    scene.restart()
    publish(scene, scene.clean("p"), *numbers(12, 15))
    rest = read(scene, scene.kept("away"))
    assert got + [payload for payload in rest if payload not in got] == numbers(15)
    assert rest == numbers(5, 15)


def test_beyond_its_own_bound_the_session_ends_and_every_message_is_named() -> None:
    scene = scene_of(spill_messages=5)
    away(scene)
    publisher = scene.clean("p")
    assert publish(scene, publisher, *numbers(ROOM + 6)) == [Reason.SUCCESS] * (ROOM + 6)
    broker = scene.world.broker
    assert "away" not in broker.sessions
    assert broker.account.sessions_ended == {"absent_full": 1}
    assert broker.account.drops == {Drop.SESSION_ENDED: ROOM + 6}
    assert not broker.spills.messages and not broker.spills.bytes and not len(broker.estates)
    assert scene._model.queue == [] and scene._model.messages == {}
    assert not scene.kept("away").connack.session_present


@pytest.mark.parametrize("bound", ["spill_bytes", "spill_bytes_total", "user_spill_bytes"])
def test_bytes_are_bounded_for_a_session_for_all_and_for_a_user(bound: str) -> None:
    scene = scene_of(**{bound: 1_000})
    away(scene)
    publish(scene, scene.clean("p"), *numbers(30))
    assert scene.world.broker.account.sessions_ended == {"absent_full": 1}


def test_where_nothing_can_be_read_back_the_session_ends_as_before() -> None:
    scene = scene_of()
    scene.world.broker.journal._reader = None
    away(scene)
    publish(scene, scene.clean("p"), *numbers(ROOM + 1))
    assert scene.world.broker.account.sessions_ended == {"absent_full": 1}


def test_a_client_that_is_back_and_has_no_room_left_in_the_store_refuses_publishers() -> None:
    scene = scene_of(spill_messages=5, inflight=1)
    away(scene)
    publisher = scene.clean("p")
    publish(scene, publisher, *numbers(ROOM + 4))
    client = scene.kept("away")
    answers = publish(scene, publisher, *numbers(100, 110))
    assert Reason.QUOTA_EXCEEDED in answers and "away" in scene.world.broker.sessions
    taken = [b"%d" % (100 + at) for at, answer in enumerate(answers) if answer is Reason.SUCCESS]
    assert read(scene, client) == numbers(ROOM + 4) + taken


def test_an_ended_session_hands_on_what_it_had_in_the_store() -> None:
    scene = scene_of()
    for name in ("a", "b"):
        away(scene, name, "$share/g/t")
    publisher = scene.clean("p")
    publish(scene, publisher, *numbers(20))
    first = scene.world.client("a", clean_start=True)
    scene.settle()
    first.send(Disconnect())
    scene.settle()
    assert sorted(read(scene, scene.kept("b")), key=int) == numbers(20)
    assert not scene.world.broker.account.drops


def test_a_broker_that_dies_while_it_sees_to_an_estate_goes_on_with_it() -> None:
    scene = scene_of()
    away(scene)
    publish(scene, scene.clean("p"), *numbers(20))
    scene.world.client("away", clean_start=True)
    scene.persist()  # the end is permanent, and nothing of what was in the store has been read
    scene.restart()
    broker = scene.world.broker
    assert broker.account.drops == {Drop.SESSION_ENDED: 20 - ROOM}
    assert scene._model.queue == [] and not len(broker.estates)


def test_an_urgent_message_does_not_wait_behind_what_was_spilled() -> None:
    scene = scene_of(inflight=2)
    away(scene)
    publisher = scene.clean("p")
    publish(scene, publisher, *numbers(40))
    publish(scene, publisher, b"first alarm", topic="alarm/1")
    client = scene.kept("away")
    publish(scene, publisher, b"second alarm", topic="alarm/1")
    got = read(scene, client)
    assert got.index(b"first alarm") < got.index(b"second alarm") < 2 * ROOM + 4
    assert [payload for payload in got if b"alarm" not in payload] == numbers(40)


def test_the_class_of_a_message_may_choose_otherwise() -> None:
    scene = scene_of()
    away(scene)
    publisher = scene.clean("p")
    publish(scene, publisher, *numbers(10))
    publish(scene, publisher, b"x", topic="ending/1")
    assert scene.world.broker.account.sessions_ended == {"absent_full": 1}
    assert scene.world.broker.account.drops == {Drop.SESSION_ENDED: 11}


def test_a_client_that_comes_back_for_one_connection_only_gets_all_of_it() -> None:
    scene = scene_of()
    away(scene)
    publish(scene, scene.clean("p"), *numbers(20))
    client = scene.world.durable("away", expiry_s=0)
    scene.settle()
    client.note_connack()
    assert read(scene, client) == numbers(20)


def test_what_expires_in_the_store_is_named_and_not_sent() -> None:
    scene = scene_of()
    away(scene)
    publisher = scene.clean("p")
    publish(scene, publisher, *numbers(ROOM))
    publisher.put("t", b"short", qos=1, message_expiry_interval=5)
    scene.settle()
    publisher.expect(Puback)
    publish(scene, publisher, b"long")
    scene.world.advance(10)
    scene.settle()
    assert read(scene, scene.kept("away")) == [*numbers(ROOM), b"long"]
    assert scene.world.broker.account.drops == {Drop.EXPIRED: 1}


steps = st.one_of(
    st.tuples(st.just("come"), st.integers(0, 1)),
    st.tuples(st.just("go"), st.integers(0, 1)),
    st.tuples(st.just("publish"), st.integers(0, 3)),
    st.tuples(st.just("publish"), st.integers(0, 3)),
    st.tuples(st.just("read"), st.integers(1, 4)),
    st.tuples(st.just("commit"), st.integers(1, 3)),
    st.tuples(st.just("settle"), st.just(0)),
    st.tuples(st.just("crash"), st.just(0)),
)


@examples(120)
@given(st.lists(steps, min_size=10, max_size=80))
def test_what_was_acknowledged_comes_in_order_whatever_happens(story: list[tuple[str, int]]) -> None:
    """Two readers beside an oracle: what was acknowledged arrives, in the order of each topic, and nothing twice.

    A message may come again only if it had been sent and its acknowledgement was not permanent when the broker died.
    """
    scene = scene_of(inflight=2)
    for number in range(2):
        away(scene, f"r{number}")
    topics = ("t", "u", "alarm/1", "alarm/2")
    sent: list[tuple[int, str, bytes]] = []
    acknowledged: set[bytes] = set()
    got: list[list[tuple[str, bytes]]] = [[], []]
    readers: dict[int, Client] = {}
    publisher = scene.clean("p")

    def hear() -> None:
        acknowledged.update(
            payload
            for packet in publisher.take()
            if isinstance(packet, Puback) and packet.reason < Reason.UNSPECIFIED_ERROR
            for packet_id, _, payload in sent
            if packet_id == packet.packet_id
        )

    def take(number: int, most: int) -> None:
        client = readers[number]
        packets = [packet for packet in client.inbox if isinstance(packet, Publish)]
        client.inbox = [packet for packet in client.inbox if not isinstance(packet, Publish)] + packets[most:]
        for packet in packets[:most]:
            got[number].append((packet.topic, packet.payload))
            client.send(Puback(packet_id=packet.packet_id))

    for step, (what, number) in enumerate(story):
        match what:
            case "come" if number not in readers:
                readers[number] = scene.world.durable(f"r{number}")
            case "go" if number in readers:
                readers.pop(number).drop()
            case "publish":
                packet_id = len(sent) + 1
                sent.append((packet_id, topics[number], b"%d" % step))
                publisher.put(topics[number], b"%d" % step, qos=1, packet_id=packet_id)
            case "read":
                for each in readers:
                    take(each, number)
            case "commit":
                scene.commit(number)
            case "settle":
                scene.settle()
            case "crash":
                hear()
                scene.restart()
                readers.clear()
                publisher = scene.clean("p")
        hear()
    scene.settle()
    hear()
    for number in range(2):
        client = readers.get(number) or scene.world.durable(f"r{number}")
        readers[number] = client
        for _ in range(200):
            scene.settle()
            if not any(isinstance(packet, Publish) for packet in client.inbox):
                break
            take(number, 10)
        order = {payload: at for at, (_, _, payload) in enumerate(sent)}
        seen: set[bytes] = set()
        for topic in topics:
            mine = [payload for where, payload in got[number] if where == topic]
            firsts = list(dict.fromkeys(mine))
            assert firsts == sorted(firsts, key=order.__getitem__), "in the order of its topic"
            seen.update(firsts)
        assert acknowledged <= seen, "everything that was acknowledged"
    assert scene.world.broker.account.drops.keys() <= {Drop.REFUSED}, "nothing is lost that was taken"
    assert not scene.world.broker.spills.messages and not scene.world.broker.spills.bytes
