"""Connections that say nothing, say it slowly, or are too many."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from time import sleep

import pytest

from tests.kits.dial import dial, hang_up, open_socket, read_to_end
from tests.kits.patience import until
from tests.robust.arena import Arena
from tests.robust.served import serving
from tieline.wire.encode import encode
from tieline.wire.packets import Connect, Disconnect, Pingreq, Pingresp, Publish
from tieline.wire.reason import Reason


def drip(arena: Arena, sock: socket.socket, data: bytes, name: str) -> None:
    """Send byte by byte until the broker has had enough."""
    for at in range(len(data)):
        if arena.closed(name):
            return
        sock.send(data[at : at + 1])
        sleep(0.01)
    raise AssertionError("the broker waited for every byte")


def test_a_connection_that_never_says_a_word_ends() -> None:
    with Arena(connect_timeout_s=0.3) as arena:
        socks = [arena.open() for _ in range(20)]
        for sock in socks:
            assert read_to_end(sock) == b""
        arena.expect_closed("connect_timeout", 20)


def test_a_connect_that_comes_drop_by_drop_ends_in_time() -> None:
    """Slow loris: each byte is progress, and still the whole CONNECT has one deadline."""
    with Arena(connect_timeout_s=0.5) as arena:
        sock = arena.open()
        drip(arena, sock, encode(Connect(version=5, client_id="loris" * 1_000), 5), "connect_timeout")
        arena.expect_closed("connect_timeout")


def test_a_large_connect_that_never_ends_holds_little() -> None:
    with Arena(connect_timeout_s=0.5) as arena:
        sock = arena.open()
        sock.sendall(b"\x10\xff\xff\x1f" + b"\x00\x04MQTT\x05" + bytes(500_000))
        arena.expect_closed("connect_timeout")
        assert arena.ask(lambda core: sum(len(conn.partial) for conn in core.connections)) == 0


@pytest.mark.parametrize("version", [4, 5])
def test_a_client_that_falls_silent_is_disconnected(version: int) -> None:
    with Arena() as arena:
        client = arena.dial("silent", version=version, keep_alive=1)
        if version == 5:
            client.expect(Disconnect, reason=Reason.KEEP_ALIVE_TIMEOUT)
        client.expect_end()
        arena.expect_closed("keep_alive_timeout", who="silent")


def test_a_packet_that_comes_drop_by_drop_does_not_keep_a_connection_alive() -> None:
    with Arena() as arena:
        client = arena.dial("loris", keep_alive=1)
        drip(arena, client.sock, encode(Publish(topic="t", payload=bytes(5_000)), 5), "keep_alive_timeout")
        arena.expect_closed("keep_alive_timeout", who="loris")


def test_half_open_connections_end_by_keep_alive_and_their_clients_may_return() -> None:
    """The peer is gone without a word: its machine lost power, or a middlebox forgot it."""
    with Arena() as arena:
        lost = [arena.dial(f"lost {number}", keep_alive=60 if number == 3 else 1) for number in range(10)]
        again = arena.dial("lost 3", keep_alive=60)
        arena.expect_closed("taken_over", who="lost 3")
        arena.expect_closed("keep_alive_timeout", 9)
        again.send(Pingreq())
        again.expect(Pingresp)
        assert len(lost) == 10
        assert arena.ask(lambda core: len(core.sessions)) == 3


def test_connections_that_are_reset_leave_nothing() -> None:
    with Arena() as arena:
        for number in range(50):
            client = arena.dial(f"reset {number}")
            client.subscribe("reset/#", qos=1)
            hang_up(client.sock)
        arena.expect_closed("connection_lost", 50)
        until(lambda: arena.ask(lambda core: core.routes.count) == 1, "only the pair's subscription is left")
        assert arena.ask(lambda core: len(core.connections)) == 2


@pytest.mark.parametrize("limit", ["connections", "listener_connections"])
def test_more_connections_than_allowed_are_turned_away(limit: str) -> None:
    with Arena(**{limit: 10}) as arena:
        inside = [arena.dial(f"inside {number}") for number in range(8)]
        outside = [arena.open() for _ in range(30)]
        for sock in outside:
            with contextlib.suppress(ConnectionResetError):
                assert read_to_end(sock) == b""
        arena.expect_closed("too_many_connections", 30)
        assert arena.ask(lambda core: len(core.connections)) == 10
        inside[0].close()
        until(lambda: arena.ask(lambda core: len(core.connections)) == 9, "one has left")
        arena.dial("next")


def test_more_sessions_than_allowed_are_refused() -> None:
    with Arena(sessions=5) as arena:
        for number in range(3):
            arena.dial(f"kept {number}", properties={"session_expiry_interval": 3_600}).close()
        with pytest.raises(AssertionError, match="QUOTA_EXCEEDED"):
            arena.dial("one too many")
        arena.expect_closed("refused_quota_exceeded", who="one too many")
        arena.dial("kept 1", clean_start=False)


def test_without_descriptors_the_broker_goes_on_and_accepts_again_later(tmp_path: Path) -> None:
    with serving(tmp_path) as broker:
        before = broker.descriptors
        broker.limit_descriptors(20)
        crowd: list[socket.socket] = []
        try:
            crowd += (open_socket(broker.url) for _ in range(60))
            broker.expect_log("no_descriptors")
            assert broker.descriptors <= before + 20
            sleep(1.2)
            assert broker.log().count("no_descriptors") < 10, "it waits, it does not spin"
        finally:
            for sock in crowd:
                sock.close()
        until(lambda: broker.descriptors <= before, "the crowd has gone")
        late = broker.dial("late")
        late.send(Pingreq())
        late.expect(Pingresp)


def test_the_memory_of_idle_connections_is_given_back(tmp_path: Path) -> None:
    with serving(tmp_path) as broker:
        sizes = []
        for _ in range(3):
            crowd = [dial(broker.url, f"idle {number}", keep_alive=600) for number in range(300)]
            until(lambda: broker.descriptors > 300, "all are in")
            for client in crowd:
                client.close()
            until(lambda: broker.descriptors < 100, "all are gone")
            sizes.append(broker.resident_bytes)
        assert sizes[2] - sizes[0] < 2_000_000, sizes
