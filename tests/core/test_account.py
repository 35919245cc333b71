from __future__ import annotations

from tests.kits.world import World
from tieline.core.account import MOST_SHOWN, Account, Drop, Event
from tieline.wire.packets import Pingreq, Publish


def test_every_drop_is_counted_and_the_last_ones_are_kept() -> None:
    account = Account()
    for number in range(account.RING + 10):
        account.drop(float(number), Drop.QUEUE_FULL, "c", b"t", messages=2, queued=7)
    assert account.drops == {Drop.QUEUE_FULL: 2 * (account.RING + 10)}
    assert len(account.last_drops) == account.RING
    last = account.last_drops[-1]
    assert (last.when, last.why, last.client, last.topic, last.messages, last.queued) == (
        account.RING + 9,
        Drop.QUEUE_FULL,
        "c",
        "t",
        2,
        7,
    )


def test_a_story_that_nobody_reads_is_bounded_and_what_is_lost_is_counted() -> None:
    account = Account()
    for number in range(account.RING + 25):
        account.tell(Event("closed", f"c{number}", "peer"))
    assert len(account.events) == account.RING
    assert account.lost_events == 25
    assert account.events[0].client == "c25"


def test_every_connection_that_ends_has_a_name() -> None:
    world = World(connect_timeout_s=5.0)
    world.client("said").disconnect()
    world.client("lost").drop()
    world.client("twice")
    world.client("twice")
    world.client("silent", keep_alive=1)
    world.open().send(Pingreq())
    world.open(0).send(b"GET / HTTP/1.1\r\n\r\n")
    bad = world.client("bad")
    bad.send(b"\x00\x00")
    world.open()
    world.advance(6)
    world.stop()
    closed = world.broker.account.closed
    assert closed == {
        "disconnect": 1,
        "connection_lost": 1,
        "taken_over": 1,
        "keep_alive_timeout": 1,
        "protocol_error": 1,
        "foreign_protocol": 1,
        "malformed_packet": 1,
        "connect_timeout": 1,
        "server_shutdown": 1,
    }
    assert closed.total() == world.broker.account.connections


def test_a_line_of_the_story_names_client_peer_and_reason() -> None:
    world = World()
    client = world.client("bad")
    client.send(b"\x00\x00")
    event = world.broker.account.events[-1]
    assert (event.kind, event.client, event.peer) == ("closed", "bad", "client:0")
    assert event.text.startswith("malformed_packet: ")
    assert event.is_trouble


def test_counters_count_packets_and_bytes() -> None:
    world = World()
    client = world.client("c", version=4)
    account = world.broker.account
    packets, publishes, received = account.packets_in, account.publishes_in, account.bytes_in
    client.send(*(Publish(topic="t", payload=b"x") for _ in range(10)))
    client.send(Pingreq())
    assert account.packets_in - packets == 11
    assert account.publishes_in - publishes == 10
    assert account.bytes_in - received == 10 * 6 + 2


def test_records_of_long_names_are_short() -> None:
    account = Account()
    long = "ü" * 32_000
    account.drop(0.0, Drop.OFFLINE, long, b"x" + long.encode())
    account.tell(Event("closed", long, "", long))
    [dropped], [event] = account.last_drops, account.events
    assert dropped.client == event.client == event.text == long[:MOST_SHOWN]
    assert dropped.topic == "x" + long[: MOST_SHOWN // 2 - 1]
