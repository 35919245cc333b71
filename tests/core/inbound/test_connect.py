from __future__ import annotations

import gc

import pytest

from tests.kits.world import World, payloads
from tieline.core.account import Drop
from tieline.core.client import Session
from tieline.wire.packets import Connack, Connect, Will
from tieline.wire.reason import Reason


def test_a_connection_without_connect_ends() -> None:
    world = World(connect_timeout_s=10.0)
    silent, slow = world.open(), world.open()
    hello = b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x00"
    for byte in hello[:-1]:
        world.advance(0.5)
        slow.send(bytes((byte,)))
    world.advance(10 - 0.5 * (len(hello) - 1) - 0.1)
    assert silent.is_open
    assert slow.is_open
    world.advance(0.2)
    assert silent.closed
    assert slow.closed
    assert world.broker.account.closed == {"connect_timeout": 2}


def test_sessions_are_bounded_and_one_that_exists_may_return() -> None:
    world = World(sessions=3)
    for number in range(3):
        world.durable(f"d{number}").drop()
    assert world.client("one more").connack.reason is Reason.QUOTA_EXCEEDED
    assert world.durable("d1").connack.session_present
    assert world.broker.account.closed["refused_quota_exceeded"] == 1


def test_an_expired_session_takes_everything_with_it() -> None:
    world = World()
    client, publisher = world.durable("d", expiry_s=60), world.client("p")
    client.subscribe("t", qos=1)
    client.drop()
    for _ in range(5):
        publisher.publish("t", qos=1)
    world.advance(60)
    assert "d" not in world.broker.sessions
    assert world.broker.routes.count == 0
    assert world.broker.queued_bytes == 0
    assert world.broker.account.drops == {Drop.SESSION_ENDED: 5}
    assert world.broker.account.sessions_expired == 1


def test_a_session_that_ends_is_freed_without_the_collector() -> None:
    """Under load nothing waits for a full collection: the core breaks its own cycles."""
    world = World()
    client, other = world.client("c", keep_alive=60), world.client("o")
    client.subscribe("t", "$share/g/t", qos=1)
    other.publish("t", qos=1)
    sessions = _count_sessions()
    gc.disable()
    try:
        world.clients.remove(client)
        client.drop()
        client.connection.link = None
        del client
        other.publish("t", qos=1)
        assert _count_sessions() == sessions - 1
    finally:
        gc.enable()


def _count_sessions() -> int:
    # not isinstance, which would ask weak proxies of other tests about what is gone
    return sum(type(each) is Session for each in gc.get_objects())


def test_taking_over_keeps_messages_for_the_new_connection() -> None:
    world = World()
    first, publisher = world.durable("d"), world.client("p")
    first.subscribe("t", qos=1)
    first.stall()
    for number in range(3):
        publisher.publish("t", b"%d" % number, qos=1)
    second = world.durable("d")
    assert payloads(second.messages()) == [b"0", b"1", b"2"]
    first.resume()
    first.expect_end(Reason.SESSION_TAKEN_OVER)
    world.broker.closed(first.connection, world.now)
    assert second.is_open
    assert world.broker.sessions["d"].connection is second.connection


def test_a_thousand_take_overs_leave_one_of_everything() -> None:
    world = World()
    for _ in range(1_000):
        world.durable("d", keep_alive=60).subscribe("t", qos=1)
    assert len(world.broker.sessions) == 1
    assert len(world.broker.connections) == 1
    assert world.broker.routes.count == 1
    assert len(world.broker.timers) == 1


@pytest.mark.parametrize("version", [4, 5])
def test_a_refused_connect_leaves_nothing(version: int) -> None:
    world = World()
    client = world.open(version)
    client.connect("c", will=Will(topic="$SYS/w", payload=b"x"))
    client.expect_refusal(Reason.NOT_AUTHORIZED)
    assert world.broker.sessions == {}
    assert world.broker.connections == set()
    assert len(world.broker.timers) == 0


def test_what_follows_connect_in_the_same_chunk_is_handled() -> None:
    world = World()
    client = world.open()
    client.send(Connect(version=5, client_id="c"), b"\xc0\x00\xc0\x00")
    assert isinstance(client.take()[0], Connack)


def test_client_ids_that_the_broker_gives_are_all_different() -> None:
    world = World()
    given = {world.client("").connack.properties["assigned_client_identifier"] for _ in range(100)}
    assert len(given) == 100
    world.client("auto-101")
    assert world.client("").connack.properties["assigned_client_identifier"] not in given | {"auto-101"}


def test_a_full_broker_sends_mqtt_5_clients_elsewhere() -> None:
    world = World(sessions=1, server_reference="b.example.org:1883")
    world.durable("a")
    answer = world.client("b").expect_refusal(Reason.USE_ANOTHER_SERVER)
    assert answer.properties["server_reference"] == "b.example.org:1883"
    assert answer.properties["reason_string"] == "the broker keeps 1 sessions"
    # 3.1.1 cannot be told, and a client whose session is here has its place
    world.client("c", version=4).expect_refusal(Reason.SERVER_UNAVAILABLE)
    assert world.durable("a").connack.session_present


def test_a_client_with_little_room_is_told_where_to_go_and_not_why() -> None:
    world = World(sessions=1, server_reference="b:1883")
    world.durable("a")
    answer = world.client("b", maximum_packet_size=20).expect_refusal(Reason.USE_ANOTHER_SERVER)
    assert answer.properties == {"server_reference": "b:1883"}


def test_a_full_broker_without_another_refuses() -> None:
    world = World(sessions=1)
    world.client("a")
    assert "server_reference" not in world.client("b").expect_refusal(Reason.QUOTA_EXCEEDED).properties
