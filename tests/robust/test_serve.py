"""The worst of it against ``tieline serve``, whose loop waits in another place than that of an embedded broker."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from random import Random

from fuzz.fuzz_broker import seeds
from fuzz.mutate import mutate
from tests.kits.dial import Dial, open_socket
from tests.kits.patience import until
from tests.robust.arena import beside, hammering
from tests.robust.served import serving
from tieline.wire.encode import encode
from tieline.wire.packets import Pingreq, Pingresp, Publish

_MEGABYTE = 1_000_000


def test_a_flood_for_subscribers_that_stopped_reading(tmp_path: Path) -> None:
    with serving(tmp_path, limits="queue_bytes = 1_000_000") as broker:
        for number in range(5):
            broker.dial(f"stopped {number}", reads_little=True).subscribe("bulk")
        flooder = broker.dial("flooder")
        flooder.send(Publish(topic="bulk", payload=bytes(1_000)))
        before = broker.resident_bytes
        chunk = encode(Publish(topic="bulk", payload=bytes(1_000)), 5) * 60
        for _ in range(800):
            flooder.sock.sendall(chunk)
        flooder.send(Pingreq())
        flooder.expect(Pingresp)
        broker.expect_log("queue_full", "stopped")
        # five queues of a megabyte, and what is being written
        assert broker.resident_bytes - before < 40 * _MEGABYTE


def test_floods_from_many_sides(tmp_path: Path) -> None:
    with serving(tmp_path, limits="queue_bytes = 1_000_000") as broker:
        reader = broker.dial("reader")
        reader.subscribe("flood/#")
        flooders = [broker.dial(f"flooder {number}", version=4) for number in range(8)]
        chunk = encode(Publish(topic="flood/t", payload=bytes(64)), 4) * 800
        before = broker.resident_bytes

        def flood(client: Dial) -> None:
            with suppress(OSError):
                for _ in range(60):
                    client.sock.sendall(chunk)

        with hammering(lambda: reader.sock.recv(_MEGABYTE)):
            with (
                beside(lambda: flood(flooders[0])),
                beside(lambda: flood(flooders[1])),
                beside(lambda: flood(flooders[2])),
                beside(lambda: flood(flooders[3])),
            ):
                for client in flooders[4:]:
                    flood(client)
            assert broker.resident_bytes - before < 60 * _MEGABYTE
            reader.sock.shutdown(socket.SHUT_RDWR)


def test_answers_that_nobody_reads(tmp_path: Path) -> None:
    with serving(tmp_path) as broker:
        before = broker.resident_bytes
        for number in range(3):
            client = broker.dial(f"pinger {number}", reads_little=True)
            client.sock.settimeout(0.1)
            for _ in range(2_000):
                try:
                    client.sock.send(b"\xc0\x00" * 30_000)
                except TimeoutError:  # the broker may also just be slow
                    if broker.find_log("not_reading", f"pinger {number}"):
                        break
            broker.expect_log("not_reading", f"pinger {number}")
        assert broker.resident_bytes - before < 25 * _MEGABYTE


def test_nonsense_from_many_connections(tmp_path: Path) -> None:
    with serving(tmp_path) as broker:
        random = Random(5)
        corpus = [seed for seed in seeds() if b"pair" not in seed]
        descriptors = broker.descriptors
        for _ in range(200):
            with open_socket(broker.url) as sock, suppress(OSError):
                sock.sendall(mutate(corpus, random))
        until(lambda: broker.descriptors <= descriptors, "all connections are gone")
        broker.expect_log("malformed_packet")
