"""A real process grows by about what it counts, whatever its clients make it keep; and each kind has a bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kits.dial import Dial, open_socket
from tests.kits.patience import until
from tests.robust.attack.peer import CLUSTER, GHOSTS, KEY, HostilePeer
from tests.robust.served import Served, serving
from tieline.cli.management import Management
from tieline.conf.paths import management_socket
from tieline.core.holdings import Kind
from tieline.overlay.interests.entries import Entry
from tieline.wire.encode import encode
from tieline.wire.packets import Connect, Publish, Subscribe, Subscription, Will

MEGABYTE = 1_000_000
#: What a process may grow by beyond what it counts, once that is this much.
MOST = 1.3
MUCH = 200 * MEGABYTE
#: Of what is counted, under the kind that a fill is meant for.
SHARE = 0.4
#: A packet that no kernel takes at once.
LARGEST = 33_554_432


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


def sessions(served: Served) -> Iterator[Any]:
    """Sessions of 3.1.1 that never release what they sent with QoS 2."""
    ids = b"".join(encode(Publish(topic="t", payload=b"", qos=2, packet_id=each * 99 + 1), 4) for each in range(20))
    for number in range(22_000):
        client = Dial(served.url, version=4)
        client.connect(f"i-{number}", clean_start=False)
        client.send(ids)
        for _ in range(20):
            client.receive()
        client.close()
        yield


def connections(served: Served) -> Iterator[Any]:
    """Aliases for topics as long as they may be."""
    for number in range(60):
        client = served.dial(f"a-{number}")
        for alias in range(1, 65):
            topic = f"{number}/{alias}/" + "x" * 60_000
            client.send(Publish(topic=topic, payload=b"", properties={"topic_alias": alias}))
        yield


def unparsed(served: Served) -> Iterator[Any]:
    """Packets that never end."""
    packet = encode(Publish(topic="t", payload=bytes(1_000_000)), 5)
    for number in range(300):
        served.dial(f"u-{number}").sock.sendall(packet[:-1])
        yield


def unsent(served: Served) -> Iterator[Any]:
    """Packets for clients that do not read, larger than the buffer of a socket, which may be several megabytes."""
    for number in range(8):
        reader = served.dial(f"deaf-{number}", reads_little=True)
        reader.subscribe("large")
    publisher = served.dial("publisher")
    publisher.send(Publish(topic="large", payload=bytes(LARGEST - 1_000)))
    yield


def rights(served: Served) -> Iterator[Any]:
    """Topics that each of very many connections may publish to, as far as they are remembered."""
    for number in range(120):
        client = served.dial(f"r-{number}")
        for each in range(110):
            # four connections use the same topics, whose routes are remembered once
            client.send(Publish(topic=f"{number // 4}/{each}/" + "y" * 5_000, payload=b""))
        yield


def routes(served: Served) -> Iterator[Any]:
    """Topics that nobody used before, and what was sent of each to those who want to hear of changes."""
    reader = served.dial("changes")
    reader.subscribe("$where/changed(v)/c/#")
    publisher = served.dial("publisher")
    for each in range(40_000):
        publisher.send(Publish(topic=f"c/{each}/" + "z" * 1_000, payload=b'{"v": %d}' % each))
        yield


def owed(served: Served) -> Iterator[Any]:
    """Messages for brokers that want them and take none."""
    peers = [HostilePeer(served.peer_url, f"deaf-{number}") for number in range(3)]
    for peer in peers:
        served.keep(peer.sock)
        peer.sock.sendall(peer.interest([Entry("o/#")]))
    publisher = served.dial("publisher")
    until(lambda: memory(served.folder)["links"] > 1_000, "what they want is known")
    for each in range(9_000):
        publisher.send(Publish(topic="o/x", payload=b"%020d" % each + bytes(12_000), qos=1, packet_id=1))
        publisher.receive()
        yield


def links(served: Served) -> Iterator[Any]:
    """Brokers that want very much, some of which do not exist."""
    peer = HostilePeer(served.peer_url, "greedy")
    served.keep(peer.sock)
    for broker in (1, *GHOSTS):
        peer.sock.sendall(peer.interest((Entry(f"want/{broker}/{each}/+") for each in range(9_000)), broker))
        yield


#: How each kind is filled, with as many bytes as its bounds let be counted, if that is less than is asked for.
FILLS: dict[Kind, tuple[Callable[[Served], Iterator[Any]], ...]] = {
    Kind.WILLS: (delayed_wills,),
    Kind.QUEUED: (queued,),
    Kind.RETAINED: (retained,),
    Kind.SUBSCRIPTIONS: (subscriptions, conditions),
    Kind.SESSIONS: (sessions,),
    Kind.CONNECTIONS: (connections,),
    Kind.UNPARSED: (unparsed,),
    Kind.UNSENT: (unsent,),
    Kind.RIGHTS: (rights,),
    Kind.ROUTES: (routes,),
    Kind.OWED: (owed,),
    Kind.LINKS: (links,),
}
#: Kinds whose bounds are below what is asked for.
LESS = {Kind.RIGHTS: 60 * MEGABYTE, Kind.ROUTES: 60 * MEGABYTE}


def test_every_kind_that_is_counted_is_filled() -> None:
    assert FILLS.keys() == set(Kind)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "fill"), [(kind, fill) for kind, fills in FILLS.items() for fill in fills])
def test_a_process_grows_by_what_it_counts(kind: Kind, fill: Callable[[Served], Iterator[Any]], tmp_path: Path) -> None:
    limits = 'subscriptions = "none"\nretained_bytes = "none"\nuser_retained_bytes = "none"\nqueue_bytes = "none"'
    key = tmp_path / "overlay.key"
    key.write_bytes(KEY)
    more = f'[overlay]\ncluster = "{CLUSTER}"\nkey_file = "{key}"\n[[listener]]\nurl = "peer://127.0.0.1:0"\n'
    if kind is Kind.UNSENT:
        limits += f'\npacket_bytes = {LARGEST}\nunknown_bytes = "none"'
    if kind is Kind.RIGHTS:
        # where everybody may do everything, nothing of it is remembered
        more += "".join(f'[[rule]]\nallow = "all"\nfilter = "{each}"\n' for each in ("#", "$pair/#"))
    asked = LESS.get(kind, MUCH)
    with serving(tmp_path, limits=limits, more=more) as served:
        idle, counted_idle = served.resident_bytes, sum(memory(tmp_path).values())
        every = max(1, 500 // len(FILLS))

        def is_filled(much: float) -> bool:
            """Whether so much is counted, and enough of it under the kind that is meant: it may have been another's."""
            found = memory(tmp_path)
            counted = sum(found.values()) - counted_idle
            return counted >= much and found[kind] >= SHARE * counted

        for number, _ in enumerate(fill(served)):
            if number % every == 0 and is_filled(1.2 * asked):
                break
        until(lambda: is_filled(asked), f"{memory(tmp_path)}")
        found = memory(tmp_path)
        counted, grown = sum(found.values()) - counted_idle, served.resident_bytes - idle
        print(f"{kind}: counted {counted // MEGABYTE} MB, grown {grown // MEGABYTE} MB")
        assert found[kind] >= SHARE * counted, found
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
