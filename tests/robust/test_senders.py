"""Clients that send too much, too little at a time, or nonsense."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from fuzz.fuzz_broker import seeds
from fuzz.mutate import mutate
from tests.kits.patience import until
from tests.robust.arena import Arena, beside, hammering
from tieline.wire.encode import encode
from tieline.wire.packets import Connect, Disconnect, Pingreq, Pingresp, Puback, Publish
from tieline.wire.reason import Reason

_LIMIT = 100_000


@pytest.mark.parametrize("version", [4, 5])
def test_a_publisher_that_floods_takes_no_turn_from_the_others(version: int) -> None:
    with Arena(queue_bytes=1_000_000) as arena:
        reader = arena.dial("reader", version=version)
        reader.subscribe("flood")
        flooders = [arena.dial(f"flooder {number}", version=version) for number in range(3)]
        chunk = encode(Publish(topic="flood", payload=bytes(64)), version) * 900
        before = arena.pair.exchanged
        with (
            hammering(lambda: flooders[0].sock.sendall(chunk)),
            hammering(lambda: flooders[1].sock.sendall(chunk)),
            hammering(lambda: flooders[2].sock.sendall(chunk)),
            hammering(lambda: reader.sock.recv(1_000_000)),
        ):
            until(lambda: arena.pair.exchanged > before + 20, "the pair goes on under the flood")
            assert arena.ask(lambda core: core.queued_bytes) <= 1_200_000
            for flooder in flooders:
                flooder.sock.shutdown(2)
            reader.sock.shutdown(2)


def test_a_publisher_that_floods_topics_nobody_wants_fills_nothing() -> None:
    with Arena(route_cache=1_000) as arena:
        flooder = arena.dial("flooder")
        for start in range(0, 20_000, 500):
            flooder.send(*(Publish(topic=f"nobody/{start + n}", payload=b"x") for n in range(500)))
        flooder.send(Pingreq())
        flooder.expect(Pingresp)
        assert arena.ask(lambda core: len(core.routes.known)) <= 1_000
        assert arena.ask(lambda core: core.routes.resets) >= 19


def test_single_bytes_are_put_together() -> None:
    with Arena() as arena:
        sock = arena.open()
        hello = encode(Connect(version=5, client_id="slow"), 5)
        message = encode(Publish(topic="t", payload=b"x" * 300, qos=1, packet_id=1), 5)
        for at in range(len(hello)):
            sock.send(hello[at : at + 1])
        for at in range(len(message)):
            sock.send(message[at : at + 1])
        received = b""
        while not received.endswith(b"\x40\x03\x00\x01\x10"):
            received += sock.recv(1_000)
        assert received[0] == 0x20


def test_a_large_packet_in_single_bytes_costs_its_size_and_not_its_square() -> None:
    size = 60_000
    with Arena() as arena:
        client = arena.dial("slow")
        data = encode(Publish(topic="t", payload=bytes(size), qos=1, packet_id=1), 5)
        began = arena.spent_s()
        for at in range(len(data)):
            client.sock.send(data[at : at + 1])
        client.expect(Puback, packet_id=1)
        assert arena.spent_s() - began < 15


@pytest.mark.parametrize("version", [4, 5])
def test_a_packet_just_at_the_limit_passes_and_one_above_ends_the_connection(version: int) -> None:
    with Arena(packet_bytes=_LIMIT) as arena:
        client = arena.dial("large", version=version)
        empty = len(encode(Publish(topic="t", payload=bytes(90_000), qos=1, packet_id=1), version)) - 90_000
        client.send(Publish(topic="t", payload=bytes(_LIMIT - empty), qos=1, packet_id=1))
        client.expect(Puback, packet_id=1)
        client.send(Publish(topic="t", payload=bytes(_LIMIT - empty + 1), qos=1, packet_id=2))
        if version == 5:
            client.expect(Disconnect, reason=Reason.PACKET_TOO_LARGE)
        client.expect_end()
        arena.expect_closed("packet_too_large", who="large")


def test_a_packet_that_only_claims_to_be_large_is_refused_at_its_header() -> None:
    with Arena(packet_bytes=_LIMIT) as arena:
        client = arena.dial("claims")
        client.send(b"\x30\xff\xff\xff\x7f")
        client.expect(Disconnect, reason=Reason.PACKET_TOO_LARGE)
        client.expect_end()
        arena.expect_closed("packet_too_large", who="claims")


def test_random_bytes_end_only_the_connection_they_came_over() -> None:
    with Arena() as arena:
        random = Random(7)
        for _ in range(60):
            sock = arena.open()
            with suppress(OSError):
                sock.sendall(random.randbytes(random.randrange(1, 200)))
            sock.close()
        for _ in range(60):
            client = arena.dial("noisy", version=random.choice((4, 5)))
            with suppress(OSError):
                client.send(random.randbytes(random.randrange(1, 200)))
            client.close()
        until(lambda: arena.ask(lambda core: len(core.connections)) == 2, "only the pair is left")
        arena.expect_log("malformed_packet")
        assert not arena.closed("internal_error")


def test_mutated_conversations_end_only_the_connection_they_came_over() -> None:
    with Arena() as arena:
        random = Random(11)
        corpus = [seed for seed in seeds() if b"pair" not in seed]
        for _ in range(150):
            sock = arena.open()
            with suppress(OSError):
                sock.sendall(mutate(corpus, random))
            sock.close()
        until(lambda: arena.ask(lambda core: len(core.connections)) == 2, "only the pair is left")
        assert not arena.closed("internal_error")


def test_a_client_that_connects_and_leaves_all_the_time_leaves_nothing() -> None:
    with Arena() as arena:
        hello = encode(Connect(version=5, client_id="restless"), 5) + encode(Disconnect(), 5)
        before = arena.ask(lambda core: len(core.timers))

        def visit() -> None:
            sock = arena.open()
            sock.sendall(hello)
            assert sock.recv(1_000)
            sock.close()

        for _ in range(300):
            visit()
        until(lambda: arena.closed("disconnect") == 300, "all have left")
        arena.expect_log("disconnect", "restless")
        until(lambda: arena.ask(lambda core: len(core.connections)) == 2, "only the pair is left")
        assert arena.ask(lambda core: len(core.sessions)) == 2
        until(lambda: arena.ask(lambda core: len(core.timers)) <= before, "no timer is left of those that have gone")


def test_a_client_that_takes_itself_over_all_the_time_is_one_client() -> None:
    with Arena() as arena:
        clients = [arena.dial("same", keep_alive=30) for _ in range(100)]
        clients[-1].send(Pingreq())
        clients[-1].expect(Pingresp)
        for client in clients[:-1]:
            client.expect(Disconnect, reason=Reason.SESSION_TAKEN_OVER)
            client.expect_end()
        arena.expect_closed("taken_over", 99, who="same")
        assert arena.ask(lambda core: len(core.sessions)) == 3


def test_many_packets_in_one_go_are_answered_in_order() -> None:
    with Arena(receive_maximum=65_535) as arena:
        client = arena.dial("eager")
        packets = [Publish(topic="t", payload=b"x", qos=1, packet_id=number + 1) for number in range(20_000)]
        with beside(lambda: client.send(*packets)):
            for packet in packets:
                client.expect(Puback, packet_id=packet.packet_id)
