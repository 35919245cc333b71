"""A real process grows by about what it counts, whatever its clients make it keep; and each kind has a bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kits.dial import Dial, open_socket
from tests.kits.patience import until
from tests.robust.served import Served, serving
from tieline.cli.management import Management
from tieline.conf.paths import management_socket
from tieline.wire.encode import encode
from tieline.wire.packets import Connect, Publish, Subscribe, Subscription, Will

MEGABYTE = 1_000_000
#: What a process may grow by beyond what it counts, once that is this much.
MOST = 1.3
MUCH = 200 * MEGABYTE


def memory(folder: Path) -> dict[str, int]:
    with Management(management_socket(str(folder), "tieline")) as broker:
        counted: dict[str, int] = broker.ask("top")["memory"]
    return counted


def delayed_wills(served: Served) -> Iterator[Any]:
    will = Will(topic="w", payload=bytes(60_000), qos=1, properties={"will_delay_interval": 3_600})
    will.properties["user_property"] = [("name", "v" * 50_000)] * 8
    for number in range(600):
        served.dial(f"w-{number}", will=will, properties={"session_expiry_interval": 3_600}).close()
        yield


def queued(served: Served) -> Iterator[Any]:
    for number in range(30):
        reader = served.dial(f"q-{number}", properties={"session_expiry_interval": 3_600}, clean_start=False)
        reader.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter=f"q/{number}", qos=1),)))
        reader.receive()
        reader.close()
    publisher = served.dial("publisher")
    for each in range(18_000):
        topic, payload = f"q/{each % 30}", b"%020d" % each + bytes(12_000)
        publisher.send(Publish(topic=topic, payload=payload, qos=1, packet_id=each % 60_000 + 1))
        publisher.receive()
        yield


def retained(served: Served) -> Iterator[Any]:
    publisher = served.dial("publisher")
    for each in range(120_000):
        publisher.send(Publish(topic=f"kept/{each % 100}/{each}", payload=bytes(600), retain=True))
        yield


def subscriptions(served: Served) -> Iterator[Any]:
    for number in range(25):
        client = served.dial(f"s-{number}", properties={"session_expiry_interval": 3_600})
        for start in range(0, 9_900, 100):
            filters = [f"plant/{number}/line/{start + each}/+" for each in range(100)]
            wanted = tuple(Subscription(filter=each, qos=1) for each in filters)
            client.send(Subscribe(packet_id=1, subscriptions=wanted))
            client.receive()
        yield


def conditions(served: Served) -> Iterator[Any]:
    for number in range(12):
        client = served.dial(f"c-{number}", properties={"session_expiry_interval": 3_600})
        for each in range(4_000):
            text = " and ".join(f"v{term} > {each + term}" for term in range(20))
            wanted = (Subscription(filter=f"plant/{number}/{each}", qos=1),)
            client.send(Subscribe(packet_id=1, subscriptions=wanted, properties={"user_property": [("$where", text)]}))
            client.receive()
        yield


@pytest.mark.slow
@pytest.mark.parametrize("fill", [delayed_wills, queued, retained, subscriptions, conditions])
def test_a_process_grows_by_what_it_counts(fill: Callable[[Served], Iterator[Any]], tmp_path: Path) -> None:
    limits = 'subscriptions = "none"\nretained_bytes = "none"\nuser_retained_bytes = "none"\nqueue_bytes = "none"'
    with serving(tmp_path, limits=limits) as served:
        idle, counted_idle = served.resident_bytes, sum(memory(tmp_path).values())
        for number, _ in enumerate(fill(served)):
            if number % 500 == 0 and sum(memory(tmp_path).values()) - counted_idle > 1.2 * MUCH:
                break
        counted = sum(memory(tmp_path).values()) - counted_idle
        grown = served.resident_bytes - idle
        assert counted >= MUCH, memory(tmp_path)
        assert grown <= MOST * counted, f"grew by {grown // MEGABYTE} MB, counted {counted // MEGABYTE} MB"


def test_unfinished_connects_are_bounded(tmp_path: Path) -> None:
    """400 connections that never say who they are, with 600 kB each, cost the broker no more than their bound."""
    start = encode(Connect(version=5, client_id="x", will=Will(topic="w", payload=bytes(60_000))), 5)
    unfinished = b"\x10\x80\x80\x3f" + start[4:] + bytes(540_000)
    with serving(tmp_path) as served:
        idle = served.resident_bytes
        opened = []
        try:
            for _ in range(400):
                sock = open_socket(served.url)
                opened.append(sock)
                try:
                    sock.sendall(unfinished)
                except OSError:
                    continue  # it was closed meanwhile, as it should be
            until(lambda: served.find_log("too_much_unknown"), "the longest is closed")
            assert served.resident_bytes - idle < 100 * MEGABYTE
            with Dial(served.url) as honest:
                honest.send(Connect(version=5, client_id="honest"))
                assert honest.receive() is not None
        finally:
            for sock in opened:
                sock.close()
