"""Sessions that end with much that was kept for them."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic, sleep
from typing import Final

from tests.kits.dial import Dial, dial, hang_up
from tests.robust.attack.hostile import packed
from tests.robust.attack.site import Doors
from tieline.wire.packets import Publish, Suback, Subscribe, Subscription
from tieline.wire.properties import Properties

#: What one session may have, with the limits as they are by default.
SUBSCRIPTIONS: Final = 10_000
QUEUED: Final = 45_000


def _subscribe_to_much(client: Dial, until: float) -> None:
    for start in range(0, SUBSCRIPTIONS, 500):
        filters = tuple(Subscription(filter=f"own/{start + n}/+") for n in range(500))
        client.send(Subscribe(packet_id=1, subscriptions=filters))
        client.expect(Suback)
        if monotonic() > until:
            break


def sessions_with_many_filters_end(doors: Doors, connections: int, until: float) -> None:
    """As many subscriptions as one session may have, then a reset; all at the same moment, again and again."""
    serial = 0
    while monotonic() < until:
        serial += 1
        clients = [dial(doors.tcp, f"leaver-{number}-{serial}") for number in range(connections)]
        for client in clients:
            with suppress(OSError, AssertionError):
                _subscribe_to_much(client, until)
        for client in clients:
            hang_up(client.sock)
        sleep(0.2)


def full_queues_are_given_up(doors: Doors, connections: int, until: float) -> None:
    """Sessions that sleep with full queues; then their clients come back and want none of it."""
    kept = Properties(session_expiry_interval=600)
    data = packed(*(Publish(topic="q/full", payload=b"x", qos=1, packet_id=n % 65_535 + 1) for n in range(500)))
    while monotonic() < until:
        for number in range(connections):
            with dial(doors.tcp, f"forgetful-{number}", properties=kept) as client:
                client.subscribe("q/full", qos=1)
        with dial(doors.tcp, "filler") as filler:
            for _ in range(QUEUED // 500):
                filler.send(data)
                for _ in range(500):
                    filler.receive()
                if monotonic() > until:
                    break
        for number in range(connections):
            dial(doors.tcp, f"forgetful-{number}").close()
        sleep(0.5)
