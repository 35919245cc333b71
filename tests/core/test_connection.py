from __future__ import annotations

from tests.kits.world import Client, World
from tieline.core.client import Hold
from tieline.core.inbound.chunk import MAX_UNREAD
from tieline.core.states import State
from tieline.wire.packets import Pingreq, Pingresp


def held(client: Client) -> Hold | None:
    return client.connection.hold


def test_a_connection_says_what_it_is() -> None:
    world = World()
    client = world.open()
    assert repr(client.connection) == "<Connection client:0 ? opened>"
    client.connect("me")
    assert repr(client.connection) == "<Connection client:0 me connected>"
    client.disconnect()
    assert repr(client.connection) == "<Connection client:0 me closing>"


def test_a_closed_connection_is_deaf() -> None:
    world = World()
    client = world.client("c")
    client.disconnect()
    world.broker.receive(client.connection, b"\xc0\x00", world.now)
    assert client.connection.state is State.CLOSING
    assert client.connection.control == []
    world.broker.closed(client.connection, world.now)
    assert world.broker.account.closed.total() == 1


def test_a_client_that_does_not_read_its_answers_is_not_read() -> None:
    world = World()
    client = world.client("c")
    client.stall()
    ping = b"\xc0\x00" * 10_000
    for _ in range(20):
        client.send(ping)
    assert held(client) is Hold.NOT_READING
    assert client.connection.control_bytes <= MAX_UNREAD + len(ping)
    assert world.broker.account.holds[Hold.NOT_READING] == 1
    client.resume()
    assert held(client) is None
    assert len(client.take()) == 200_000, "nothing was forgotten"
    client.send(Pingreq())
    client.expect(Pingresp)


def test_the_log_is_not_filled_by_a_client_that_is_held_again_and_again() -> None:
    world = World()
    client = world.client("c")
    for _ in range(10):
        client.stall()
        client.send(b"\xc0\x00" * 40_000)
        client.resume()
    assert world.broker.account.holds[Hold.NOT_READING] == 10
    assert len([event for event in world.broker.account.events if event.kind == "held"]) == 1
