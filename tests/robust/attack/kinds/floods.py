"""Small packets without end, and topics without end."""

from __future__ import annotations

from itertools import count
from typing import Final

from tests.kits.dial import dial
from tests.robust.attack.hostile import packed, pour, visitor
from tests.robust.attack.site import Doors
from tieline.wire.packets import Pingreq, Puback, Publish, Pubrec, Pubrel, Subscribe, Subscription
from tieline.wire.properties import Properties

_MANY: Final = 20_000


def pubacks(doors: Doors, connections: int, until: float) -> None:
    """Acknowledgements of messages that were never sent."""
    data = packed(*(Puback(packet_id=n % 65_535 + 1) for n in range(_MANY)))
    pour(visitor(doors.tcp, "thankful"), connections, data, until)


def answers_with_a_reason(doors: Doors, connections: int, until: float) -> None:
    """Both halves of QoS 2, out of nowhere: each is answered."""
    data = packed(*(kind(packet_id=n % 65_535 + 1) for n in range(_MANY // 2) for kind in (Pubrec, Pubrel)))
    pour(visitor(doors.tcp, "confused"), connections, data, until)


def pings(doors: Doors, connections: int, until: float) -> None:
    """PINGREQ, and the answers are read."""
    pour(visitor(doors.tcp, "anxious"), connections, packed(Pingreq()) * _MANY, until)


def new_topics(doors: Doors, connections: int, until: float) -> None:
    """Every message has another topic, more of them than are remembered."""
    data = packed(*(Publish(topic=f"flood/{n:x}", payload=b"x") for n in range(200_000)))
    pour(visitor(doors.tcp, "wordy-topics"), connections, data, until)


def subscribe_and_leave(doors: Doors, connections: int, until: float) -> None:
    """A filter with a wildcard comes and goes beside many remembered topics."""
    one = packed(Subscribe(packet_id=1, subscriptions=(Subscription(filter="flood/+"),)))
    pour(visitor(doors.tcp, "restless"), connections, one * 1_000, until)


def retained_flood(doors: Doors, connections: int, until: float) -> None:
    """Retained messages up to the bound and beyond, while somebody asks for all of them again and again."""
    pieces = (
        packed(*(Publish(topic=f"kept/{start + n:x}", payload=b"x" * 200, retain=True) for n in range(500)))
        for start in count(0, 500)
    )
    with dial(doors.tcp, "collector") as collector:
        collector.sock.setblocking(False)
        collector.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="#", qos=1),)))
        pour(visitor(doors.tcp, "keeper"), connections, pieces, until)


def never_acknowledged(doors: Doors, connections: int, until: float) -> None:
    """A subscriber that takes as many messages as it may and acknowledges none, until no packet id is left."""
    most = Properties(receive_maximum=65_535)
    with dial(doors.tcp, "silent", properties=most) as silent:
        silent.subscribe("unheard", qos=1)
        data = packed(*(Publish(topic="unheard", payload=b"x" * 50) for _ in range(1_000)))
        pour(visitor(doors.tcp, "talking"), connections, data, until)
