"""Sessions that end with much that was kept for them."""

from __future__ import annotations

from contextlib import suppress
from time import sleep
from typing import Final

from tests.kits.dial import Dial, dial, hang_up
from tests.robust.attack.bout import Bout
from tests.robust.attack.hostile import packed
from tests.robust.attack.site import Doors
from tieline.wire.packets import Publish, Suback, Subscribe, Subscription, Will
from tieline.wire.properties import Properties

#: What one session may have, with the limits as they are by default.
SUBSCRIPTIONS: Final = 10_000
QUEUED: Final = 45_000
#: Wills of each hostile connection that come due together, and what each says; and those that wait for much longer.
WILLS: Final = 50
WORDS: Final = bytes(20_000)
LATE_WILLS: Final = 300
LATE_WORDS: Final = [("why", "x" * 60_000)] * 10


def _subscribe_to_much(client: Dial, bout: Bout) -> None:
    for start in range(0, SUBSCRIPTIONS, 500):
        filters = tuple(Subscription(filter=f"own/{start + n}/+") for n in range(500))
        client.send(Subscribe(packet_id=1, subscriptions=filters))
        client.expect(Suback)
        if bout.is_over():
            break


def sessions_with_many_filters_end(doors: Doors, connections: int, bout: Bout) -> None:
    """As many subscriptions as one session may have, then a reset; all at the same moment, again and again."""
    serial = 0
    while not bout.is_over():
        serial += 1
        clients = [dial(doors.tcp, f"leaver-{number}-{serial}") for number in range(connections)]
        for client in clients:
            with suppress(OSError, AssertionError):
                _subscribe_to_much(client, bout)
        bout.bite()
        for client in clients:
            hang_up(client.sock)
        sleep(0.2)


def full_queues_are_given_up(doors: Doors, connections: int, bout: Bout) -> None:
    """Sessions that sleep with full queues; then their clients come back and want none of it."""
    kept = Properties(session_expiry_interval=600)
    data = packed(*(Publish(topic="q/full", payload=b"x", qos=1, packet_id=n % 65_535 + 1) for n in range(500)))
    while not bout.is_over():
        for number in range(connections):
            with dial(doors.tcp, f"forgetful-{number}", properties=kept) as client:
                client.subscribe("q/full", qos=1)
        with dial(doors.tcp, "filler") as filler:
            for _ in range(QUEUED // 500):
                filler.send(data)
                for _ in range(500):
                    filler.receive()
                if bout.is_over():
                    break
        bout.bite()
        for number in range(connections):
            dial(doors.tcp, f"forgetful-{number}").close()
        sleep(0.5)


def delayed_wills(doors: Doors, connections: int, bout: Bout) -> None:
    """Clients that leave large wills: 180 MB for much later, and others that come due together, again and again."""
    much = Properties(will_delay_interval=600, user_property=LATE_WORDS)
    late = Will(topic="will/late", payload=b"", properties=much)
    for number in range(LATE_WILLS):
        dial(doors.tcp, f"late-{number}", will=late, properties=Properties(session_expiry_interval=600)).close()
        if bout.is_over():
            break
    bout.bite()
    soon = Will(topic="will/soon", payload=WORDS, properties=Properties(will_delay_interval=1))
    kept = Properties(session_expiry_interval=2)
    with dial(doors.tcp, "will-reader") as reader:
        reader.subscribe("will/soon")
        reader.sock.setblocking(False)
        while not bout.is_over():
            for client in [
                dial(doors.tcp, f"soon-{n}", will=soon, properties=kept) for n in range(connections * WILLS)
            ]:
                hang_up(client.sock)
            with suppress(BlockingIOError):
                while reader.sock.recv(1 << 20):
                    pass
    for number in range(LATE_WILLS):
        # the session ends, and its will with it
        dial(doors.tcp, f"late-{number}").close()
