"""Very many conditions that have to be asked about one message, and ways to send it."""

from __future__ import annotations

from time import sleep
from typing import Final

from tests.kits.dial import Dial, dial, hang_up
from tests.robust.attack.bout import Bout
from tests.robust.attack.site import Doors
from tieline.wire.packets import Publish, Suback, Subscribe, Subscription, Will
from tieline.wire.properties import Properties

CONDITIONS: Final = 2_500
TERMS: Final = 61


def _be_picky(doors: Doors, connections: int, bout: Bout) -> list[Dial]:
    terms = " or ".join(f"a{n}>{n}" for n in range(TERMS))
    clients = [dial(doors.tcp, f"picky-{number}") for number in range(connections)]
    for client in clients:
        for start in range(0, CONDITIONS, 50):
            filters = tuple(Subscription(filter=f"w/+?{terms} or z=={start + n}") for n in range(50))
            client.send(Subscribe(packet_id=1, subscriptions=filters))
            client.expect(Suback)
            if bout.is_over():
                break
    return clients


def wills_for_conditions(doors: Doors, connections: int, bout: Bout) -> None:
    """Wills of clients that are reset, on a topic with very many conditions."""
    clients = _be_picky(doors, connections, bout)
    will = Will(topic="w/last", payload=b'{"b": 2}')
    bout.bite()
    while not bout.is_over():
        for each in [dial(doors.tcp, f"dying-{number}", will=will) for number in range(connections)]:
            hang_up(each.sock)
        sleep(0.2)
    for client in clients:
        client.close()


def kept_messages_for_conditions(doors: Doors, connections: int, bout: Bout) -> None:
    """QoS 2 messages of sessions that are kept, on such a topic."""
    clients = _be_picky(doors, connections, bout)
    kept = Properties(session_expiry_interval=60)
    bout.bite()
    while not bout.is_over():
        writers = [dial(doors.tcp, f"twice-{number}", properties=kept) for number in range(connections)]
        for writer in writers:
            writer.send(*(Publish(topic="w/x", payload=b'{"b": 2}', qos=2, packet_id=n + 1) for n in range(20)))
        sleep(0.2)
        for writer in writers:
            writer.close()
    for client in clients:
        client.close()
