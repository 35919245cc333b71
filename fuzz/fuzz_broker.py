"""A whole broker under random bytes from one of its clients.

No exception escapes ``receive``: the connection goes on, or closes for a reason that was counted.
Feeding whole, cut in two anywhere, or byte by byte gives the same output bytes to everybody.
The other clients stay connected, unless the bytes took one of them over.

``python -m fuzz.fuzz_broker --seconds 60 --seed 1``
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from fuzz import hunt
from fuzz.corpus import SAID_BY_CLIENTS, SAID_BY_SERVERS, connects, encoded
from tieline.core.broker import Broker
from tieline.core.client import Connection
from tieline.wire.encode import encode
from tieline.wire.frames import find_frame
from tieline.wire.packets import Connect, Packet, PacketType, Publish, Subscribe, Subscription

#: Names that no mutation is likely to write, so that the watchers are not taken over; their version and filter.
#: A share of one member: which member of a larger group gets a message is nobody's promise.
_WATCHERS: Final = (
    ("watcher-of-everything-4", 4, "#"),
    ("watcher-of-everything-5", 5, "#"),
    ("watcher-of-its-share-5", 5, "$share/watchers/#"),
)
#: How MQTT may begin: nothing yet, or a CONNECT.
_BEGINNINGS: Final = (b"", b"\x10")
_ROOM: Final = 1 << 20


class _Outcome(NamedTuple):
    """What everybody was sent, and why connections ended."""

    heard: tuple[bytes, ...]
    watched: bytes
    closed: tuple[str, ...]


def _greet(broker: Broker, client_id: str, version: int, filter: str) -> Connection:
    conn = broker.open(0.0, listener="fuzz", peer=client_id)
    hello: tuple[Packet, ...] = (
        Connect(version=version, client_id=client_id),
        Subscribe(packet_id=1, subscriptions=(Subscription(filter=filter, qos=2),)),
        Publish(topic="a/kept", payload=b"old", retain=True),
    )
    broker.receive(conn, b"".join(encode(packet, version) for packet in hello), 0.0)
    return conn


def _drain(broker: Broker, conns: list[Connection], now: float) -> list[bytes]:
    """Everything that the connections have to be sent, timers of this moment included."""
    sent = [b""] * len(conns)
    while True:
        broker.tick(now)
        news = [b"".join(broker.fill(conn, _ROOM, now)) for conn in conns]
        if not any(news):
            return sent
        sent = [old + new for old, new in zip(sent, news, strict=True)]


def _serve(chunks: list[bytes]) -> _Outcome:
    """A fresh broker with its watchers hears one client, loses it, hears the same once more, and time passes."""
    stream = b"".join(chunks)
    broker = Broker()
    watchers = [_greet(broker, *watcher) for watcher in _WATCHERS]
    _drain(broker, watchers, 0.0)
    heard, watched = [], []
    # The second time a session may be waiting for it.
    for now in (1.0, 3.0):
        client = broker.open(now, listener="fuzz", peer="fuzzed")
        for chunk in chunks:
            broker.receive(client, chunk, now)
        sent = _drain(broker, [client, *watchers], now)
        assert not client.closing or broker.account.closed.total(), "the connection closes and nobody counted why"
        broker.closed(client, now + 1)
        heard.append(_certain(sent[0], stream))
        watched += sent[1:] + _drain(broker, watchers, now + 1)
    # Long enough for will delays, session and message expiry; the watchers asked for no keep-alive.
    watched += _drain(broker, watchers, 10_000.0)
    for watcher, (name, _, _) in zip(watchers, _WATCHERS, strict=True):
        assert not watcher.closing or name.encode() in stream, f"{name} was disconnected"
    closed = sorted(broker.account.closed.elements()) if stream[:1] in _BEGINNINGS else []
    return _Outcome(tuple(heard), b"".join(watched), tuple(closed))


def _certain(sent: bytes, stream: bytes) -> bytes:
    """The part of what a client was sent that must not depend on how its bytes arrived."""
    if stream[:1] not in _BEGINNINGS:
        # HTTP and TLS are answered in their own language, if the first chunk shows which it is.
        return b""
    if b"$share" in stream:
        # A shared subscription and an ordinary one that overlap give two copies, in an order that is not defined.
        return b"".join(packet for packet in _packets(sent) if packet[0] >> 4 != PacketType.PUBLISH)
    return sent


def check(data: bytes) -> Hashable:
    """Assert the invariant for one input; what kind of answers it got."""
    whole = _serve([data])
    cut = zlib.crc32(data) % len(data) if data else 0
    in_two = _serve([data[:cut], data[cut:]])
    assert whole == in_two, f"whole gives {whole}, cut at {cut} {in_two}"
    one_by_one = _serve([bytes((byte,)) for byte in data])
    assert whole == one_by_one, f"whole gives {whole}, byte by byte {one_by_one}"
    answers = tuple((packet[0], len(packet)) for sent in whole.heard for packet in islice(_packets(sent), 4))
    return whole.closed, answers, len(whole.watched).bit_length()


def _packets(sent: bytes) -> Iterator[bytes]:
    pos = 0
    while (frame := find_frame(sent, pos, _ROOM)) is not None:
        yield sent[pos : frame[1]]
        pos = frame[1]
    assert pos == len(sent), "the broker sent half a packet"


def seeds() -> list[bytes]:
    """Conversations: each CONNECT followed by everything, and by each packet alone."""
    found = []
    for version in (4, 5):
        said = encoded((*SAID_BY_CLIENTS, *SAID_BY_SERVERS), version)
        for connect in connects(version):
            hello = encode(connect, version)
            found += [hello, hello + b"".join(said), hello + said[0] + said[2] * 3, *(hello + data for data in said)]
    return [*found, b"GET / HTTP/1.1\r\n\r\n", bytes.fromhex("1603010200010001fc0303")]


def run(seconds: float, seed: int) -> int:
    """A hunt with our own mutator; 0 when nothing broke."""
    return hunt.report("broker", hunt.hunt(check, seeds(), seconds, seed))


if __name__ == "__main__":
    sys.exit(hunt.main("broker", check, seeds()))
