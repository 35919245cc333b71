"""A world that is driven turn by turn, so that the work of each is seen."""

from __future__ import annotations

from tests.kits.world import Client, World
from tieline.core.client import Hold
from tieline.wire.encode import encode
from tieline.wire.packets import Packet

#: No single packet, filter or topic of these tests is more work than this.
ONE_STEP = 3_000
#: To decode the longest packet is one step, which has a turn for itself.
LONGEST = 67_000


class Turns:
    """A world that is driven turn by turn: what each client causes in one is seen."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.broker = world.broker
        #: Units of work of each turn.
        self.work: list[int] = []

    def give(self, client: Client, *packets: Packet | bytes) -> None:
        """Bytes arrive in one chunk; nothing else happens in that turn."""
        data = b"".join(one if isinstance(one, bytes) else encode(one, client.version) for one in packets)
        before = self.broker.work.done
        self.broker.receive(client.connection, data, self.world.now)
        self.work.append(self.broker.work.done - before)

    def turn(self) -> None:
        """What was put off goes on, and everything is written."""
        before = self.broker.work.done
        self.broker.tick(self.world.now)
        self.work.append(self.broker.work.done - before)
        for conn in self.broker.take_dirty():
            conn.is_dirty = False
            conn.link.collect()  # type: ignore[union-attr]  # a client of the world

    def finish(self, *clients: Client) -> int:
        """Turns until nobody is held; how many they were."""
        for number in range(100_000):
            if all(client.connection.hold is not Hold.TURN for client in clients):
                self.turn()
                return number
            self.turn()
        raise AssertionError("it never ends")


def picky_client(world: World, conditions: int, filter_: str = "w/+") -> Client:
    """A client with so many conditions of 61 comparisons on one filter, which only messages that say so meet."""
    terms = " or ".join(f"a{number}>{number}" for number in range(60))
    client = world.client("picky")
    for start in range(0, conditions, 50):
        client.subscribe(*(f"{filter_}?{terms} or z={number}" for number in range(start, start + 50)))
    return client
