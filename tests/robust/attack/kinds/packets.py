"""One packet that takes long to read."""

from __future__ import annotations

from itertools import repeat
from typing import Final

from tests.robust.attack.bout import Bout
from tests.robust.attack.hostile import hello, packed, pour, stranger, visitor
from tests.robust.attack.site import Doors
from tieline.wire.packets import Publish, Subscribe, Subscription
from tieline.wire.properties import Properties

#: The most properties that a packet may have, and the most filters that fit into one.
PROPERTIES: Final = 4_096
FILTERS: Final = 16_000

_WORDY: Final = Properties(user_property=list(repeat(("name", "value"), PROPERTIES)))


def wordy_messages(doors: Doors, connections: int, bout: Bout) -> None:
    """Messages with as many properties as a packet may have."""
    pour(visitor(doors.tcp, "wordy-messages"), connections, packed(Publish(topic="w", properties=_WORDY)), bout)


def wordy_strangers(doors: Doors, connections: int, bout: Bout) -> None:
    """The same in CONNECT, from whoever comes."""
    pour(stranger(doors.tcp), connections, hello("", properties=_WORDY), bout)


def shortest_filters(doors: Doors, connections: int, bout: Bout) -> None:
    """As many filters as a packet can hold."""
    subscriptions = tuple(Subscription(filter=chr(33 + n % 90)) for n in range(FILTERS))
    subscriptions = tuple(s for s in subscriptions if s.filter not in "+#$")
    pour(visitor(doors.tcp, "brief"), connections, packed(Subscribe(packet_id=1, subscriptions=subscriptions)), bout)
