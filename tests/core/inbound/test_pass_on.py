from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.conversation import Step, conversations, serve
from tests.kits.check_access import LateAccess
from tests.kits.check_store import LateStore
from tests.kits.examples import examples
from tests.kits.world import Client, World
from tieline.conf.schema import Mqtt, Priority, Settings
from tieline.wire.encode import encode
from tieline.wire.fields import encode_varint
from tieline.wire.packets import Connack, Packet, Publish, Subscribe, Subscription


@examples(200)
@given(conversations(), st.booleans())
def test_passing_on_comes_to_the_same(steps: list[Step], guarded: bool) -> None:
    assert serve(steps, "alone", guarded=guarded) == serve(steps, "whole", guarded=guarded)


@pytest.fixture(params=[4, 5])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


class Scene:
    """A publisher, a subscriber, and a topic whose route is remembered."""

    def __init__(self, version: int, **options: int) -> None:
        self.version = version
        self.world = World(**options)  # type: ignore[arg-type]  # the test names real settings
        self.publisher = self.world.client("p", version=version)
        self.subscriber = self.world.client("s", version=version)
        self.subscriber.subscribe("topic")
        self.publisher.publish("topic")
        self.subscriber.take()

    def passes(self, packet: Packet | bytes | None = None, publisher: Client | None = None) -> bool:
        """Whether these bytes would be passed on; nothing happens if not."""
        data = (
            packet
            if isinstance(packet, bytes)
            else encode(packet or Publish(topic="topic", payload=b"x"), self.version)
        )
        before = self.world.broker.account.packets_in
        conn = (publisher or self.publisher).connection
        outlets = self.world.broker.pass_on(conn, data, self.world.now)
        assert (self.world.broker.account.packets_in > before) == (outlets is not None)
        return outlets is not None


def test_a_lone_message_of_a_known_topic_passes(version: int) -> None:
    scene = Scene(version)
    outlets = scene.world.broker.pass_on(
        scene.publisher.connection,
        encode(Publish(topic="topic", payload=b"x" * 500), version),
        scene.world.now,
    )
    assert outlets == [scene.subscriber]


def test_it_counts_as_a_sign_of_life(version: int) -> None:
    scene = Scene(version)
    scene.world.advance(10)
    assert scene.passes()
    assert scene.publisher.connection.last_in == scene.world.now


def test_other_packets_do_not_pass(version: int) -> None:
    scene = Scene(version)
    message = encode(Publish(topic="topic", payload=b"x"), version)
    assert not scene.passes(Publish(topic="topic", payload=b"x", retain=True))
    assert not scene.passes(Publish(topic="topic", payload=b"x", qos=1, packet_id=1))
    assert not scene.passes(message * 2)
    assert not scene.passes(message[:-1])
    assert not scene.passes(message + b"\xc0\x00")
    assert not scene.passes(b"\xc0\x00")
    assert not scene.passes(b"\x30\xff\xff\xff\x7f" + bytes(20))
    if version == 5:
        assert not scene.passes(Publish(topic="topic", payload=b"x", properties={"content_type": "text"}))
    assert scene.passes(message)


def test_the_first_message_of_a_topic_passes_too(version: int) -> None:
    scene = Scene(version)
    scene.subscriber.subscribe("new/+")
    assert scene.passes(Publish(topic="new/topic", payload=b"x"))
    assert scene.world.broker.routes.known.keys() >= {b"new/topic"}


@pytest.mark.parametrize("topic", [b"", b"a/+", b"#", b"$SYS/a", b"a\0", b"\xff", b"/" * 300])
def test_what_is_no_topic_for_clients_does_not_pass(version: int, topic: bytes) -> None:
    scene = Scene(version)
    body = len(topic).to_bytes(2, "big") + topic + (b"\0" if version == 5 else b"") + b"x"
    assert not scene.passes(b"\x30" + encode_varint(len(body)) + body)
    assert topic not in scene.world.broker.routes.known


def test_not_into_the_middle_of_a_packet(version: int) -> None:
    scene = Scene(version)
    scene.publisher.send(b"\x30\x10")
    assert not scene.passes()


def test_not_ahead_of_what_waits(version: int) -> None:
    scene = Scene(version)
    scene.subscriber.stall()
    scene.publisher.publish("topic", b"first")
    assert not scene.passes()
    scene.subscriber.resume()
    assert scene.passes()


def test_not_through_a_socket_that_is_full(version: int) -> None:
    scene = Scene(version)
    scene.subscriber.connection.is_blocked = True
    assert not scene.passes()


def test_not_if_one_receiver_needs_other_bytes(version: int) -> None:
    scene = Scene(version)
    other = scene.world.client("o", version=9 - version)
    other.subscribe("topic")
    scene.publisher.publish("topic")
    assert not scene.passes()
    other.drop()
    scene.publisher.publish("topic")
    assert scene.passes()


@pytest.mark.parametrize("options", [{"topic_alias_maximum": 5}, {"maximum_packet_size": 20}])
def test_not_to_a_client_with_wishes_of_its_own(options: dict[str, int]) -> None:
    scene = Scene(5)
    picky = scene.world.client("o", **options)  # type: ignore[arg-type]  # properties of CONNECT
    picky.subscribe("topic")
    scene.publisher.publish("topic")
    assert not scene.passes(Publish(topic="topic", payload=bytes(30)))


def test_not_with_an_identifier_a_share_or_no_local() -> None:
    for filter_, options in (
        ("topic", {"subscription_identifier": [1]}),
        ("$share/g/topic", {}),
        ("topic", {"no_local": True}),
    ):
        scene = Scene(5)
        scene.world.client("o").subscribe(filter_, **options)
        scene.publisher.publish("topic")
        assert not scene.passes()


def test_not_to_a_client_that_is_away(version: int) -> None:
    scene = Scene(version)
    away = scene.world.durable("d", version=version)
    away.subscribe("topic")
    away.drop()
    scene.publisher.publish("topic")
    assert not scene.passes()


def test_not_above_the_size_that_is_allowed(version: int) -> None:
    scene = Scene(version, packet_bytes=100)
    assert not scene.passes(Publish(topic="topic", payload=bytes(100)))
    assert scene.passes(Publish(topic="topic", payload=bytes(80)))


def test_not_without_a_verdict() -> None:
    access = LateAccess(late=frozenset({"publish"}))
    world = World(access=access)
    publisher, stranger = world.client("p", version=4), world.client("stranger", version=4)
    publisher.put("topic")
    access.answer(world)
    data = encode(Publish(topic="topic", payload=b"x"), 4)
    assert world.broker.pass_on(publisher.connection, data, world.now) is not None
    assert world.broker.pass_on(stranger.connection, data, world.now) is None


def test_nobody_may_want_it(version: int) -> None:
    scene = Scene(version)
    scene.subscriber.unsubscribe("topic")
    scene.publisher.publish("topic")
    assert (
        scene.world.broker.pass_on(
            scene.publisher.connection,
            encode(Publish(topic="topic", payload=b""), version),
            scene.world.now,
        )
        == []
    )


def test_messages_are_counted_by_level_before_anybody_uses_levels() -> None:
    world = World()
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("t")
    for _ in range(3):
        publisher.publish("t", b"payload")
    assert world.broker.account.received_by_level == [0, 3, 0, 0]


def test_not_before_the_connack_of_a_client_that_resumes() -> None:
    # [MQTT-3.2.0-1]: its session is being made permanent, and CONNACK is sent when it is
    store = LateStore()
    world = World(store=store)
    publisher = world.client("p")

    def commit() -> None:
        world.broker.committed(store.commit(None))
        world.settle()

    durable = world.durable("d")
    commit()
    durable.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="topic"),)))
    commit()
    durable.drop()
    durable = world.durable("d")
    publisher.publish("topic", b"queued")
    data = encode(Publish(topic="topic", payload=b"x"), 5)
    assert world.broker.pass_on(publisher.connection, data, world.now) is None
    world.receive(publisher.connection, data)
    assert durable.inbox == []
    commit()
    durable.expect(Connack)
    assert [message.payload for message in durable.messages()] == [b"queued", b"x"]


@pytest.mark.parametrize("is_alone", [False, True])
def test_messages_that_are_passed_on_heat_their_topic(is_alone: bool) -> None:
    world = World(Settings(mqtt=Mqtt(sys_interval_s=0), priority=Priority(heat_deliveries=1.0, period="1s")))
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("t")
    publisher.publish("t")
    data = encode(Publish(topic="t", payload=b"x"), 5)
    world.advance(1.0)
    for _ in range(100):
        if is_alone:
            assert world.broker.pass_on(publisher.connection, data, world.now) is not None
        else:
            world.receive(publisher.connection, data)
    world.advance(1.0)
    route = world.broker.routes.known[b"t"]
    assert world.broker.priorities.heat(route, 0, world.now) == 101
