"""Small packets without end, and topics without end."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from itertools import count, repeat
from json import loads
from typing import Final

from tests.kits.dial import dial
from tests.kits.patience import PATIENCE_S
from tests.robust.attack.bout import Bout
from tests.robust.attack.hostile import packed, pour, pour_each, visitor
from tests.robust.attack.site import Doors
from tieline.wire.packets import Pingreq, Pingresp, Puback, Publish, Pubrec, Pubrel, Subscribe, Subscription
from tieline.wire.properties import Properties

_MANY: Final = 20_000
#: What each retained message says, and how many are sent together.
KEPT_WORDS: Final = b"x" * 9_000
KEPT_AT_ONCE: Final = 100


def pubacks(doors: Doors, connections: int, bout: Bout) -> None:
    """Acknowledgements of messages that were never sent."""
    data = packed(*(Puback(packet_id=n % 65_535 + 1) for n in range(_MANY)))
    pour(visitor(doors.tcp, "thankful"), connections, data, bout)


def answers_with_a_reason(doors: Doors, connections: int, bout: Bout) -> None:
    """Both halves of QoS 2, out of nowhere: each is answered."""
    data = packed(*(kind(packet_id=n % 65_535 + 1) for n in range(_MANY // 2) for kind in (Pubrec, Pubrel)))
    pour(visitor(doors.tcp, "confused"), connections, data, bout)


def pings(doors: Doors, connections: int, bout: Bout) -> None:
    """PINGREQ, and the answers are read."""
    pour(visitor(doors.tcp, "anxious"), connections, packed(Pingreq()) * _MANY, bout)


def new_topics(doors: Doors, connections: int, bout: Bout) -> None:
    """Every message has another topic, more of them than are remembered."""
    data = packed(*(Publish(topic=f"flood/{n:x}", payload=b"x") for n in range(200_000)))
    pour(visitor(doors.tcp, "wordy-topics"), connections, data, bout)


def subscribe_and_leave(doors: Doors, connections: int, bout: Bout) -> None:
    """A filter with a wildcard comes and goes beside many remembered topics."""
    one = packed(Subscribe(packet_id=1, subscriptions=(Subscription(filter="flood/+"),)))
    pour(visitor(doors.tcp, "restless"), connections, one * 1_000, bout)


def _is_full(doors: Doors) -> bool:
    """Whether a retained message was not kept for want of room, as the broker counts."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE_S)
        sock.connect(doors.management)
        sock.sendall(b'{"do": "top"}\n')
        with sock.makefile("rb") as lines:
            return bool(loads(lines.readline())["drops"].get("retained_full"))


def _kept(first: int, payload: bytes) -> bytes:
    return packed(*(Publish(topic=f"kept/{first + n:x}", payload=payload, retain=True) for n in range(KEPT_AT_ONCE)))


def retained_flood(doors: Doors, connections: int, bout: Bout) -> None:
    """What is retained for one user, 200 MB; then more of it, while somebody asks for all of it, again and again."""
    asked = packed(Subscribe(packet_id=1, subscriptions=(Subscription(filter="kept/#", qos=1),)))
    kept = 0
    with dial(doors.tcp, "keeper") as keeper:
        while not _is_full(doors) and not bout.is_over():
            keeper.send(_kept(kept, KEPT_WORDS))
            kept += KEPT_AT_ONCE

    def says(number: int) -> Iterator[bytes]:
        if number % (connections + 1) == 0:
            return repeat(asked)
        return (_kept(start % (2 * kept), KEPT_WORDS) for start in count(0, KEPT_AT_ONCE))

    pour_each(visitor(doors.tcp, "keeping"), connections + 1, says, bout)
    with dial(doors.tcp, "keeper") as keeper:
        for start in range(0, 2 * kept, KEPT_AT_ONCE):
            keeper.send(_kept(start, b""))
        keeper.send(Pingreq())
        keeper.expect(Pingresp)


def never_acknowledged(doors: Doors, connections: int, bout: Bout) -> None:
    """Subscribers that acknowledge nothing: their windows are full, then their queues, then publishers are refused.

    The window is ``limits.inflight``, however many messages a client says that it takes at once.  That all 65,535
    packet ids are in use is ``tests/robust/test_packet_ids.py``.
    """
    most = Properties(receive_maximum=65_535)
    silent = [dial(doors.tcp, f"silent-{number}", properties=most) for number in range(connections)]
    for client in silent:
        client.subscribe("unheard", qos=1)
    data = packed(*(Publish(topic="unheard", payload=b"x" * 50, qos=1, packet_id=n + 1) for n in range(1_000)))
    pour(visitor(doors.tcp, "talking"), connections, data, bout)
    for client in silent:
        client.close()
