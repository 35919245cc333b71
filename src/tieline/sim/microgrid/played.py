"""A microgrid in virtual time: its meters and devices publish to a broker over virtual lines, when the world says so.

What :class:`~tieline.sim.microgrid.publish.Publisher` does with sockets and a wall clock, this does with the kernel of
the simulator: hours pass in seconds, the same seed is the same run, and lines may be thin, lossy or cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from tieline.sim.client import Client
from tieline.sim.clock import Clock
from tieline.sim.link import Way
from tieline.sim.microgrid.messages import LEVELS, Message, MessageKind
from tieline.sim.microgrid.rows import messages
from tieline.sim.microgrid.telling import CONTROL, PROTECTION
from tieline.sim.microgrid.world import World
from tieline.sim.network import VirtualNetwork
from tieline.sim.node import VirtualBroker

#: The name of the broker in the network.
BROKER = "broker"


class PlayedWorld:
    """One world and its clients, connected to a virtual broker."""

    def __init__(
        self,
        world: World,
        network: VirtualNetwork,
        broker: VirtualBroker,
        *,
        duration_s: float,
        readings_qos: Literal[0, 1, 2] = 0,
    ) -> None:
        """Connect a client for each feeder's meters, one for protection, one for the control room, and begin."""
        self.clock: Clock = network.clock
        self.published: Counter[MessageKind] = Counter()
        self._began = self.clock.now
        self._start_s = world.start_s
        self._readings_qos = readings_qos
        self._network = network
        self._broker = broker
        self.clients = {name: self.join(name) for name in (*dict.fromkeys(world.meters), PROTECTION, CONTROL)}
        self._messages = _one_by_one(world, duration_s)
        self._next()

    def join(self, name: str, way: Way | None = None) -> Client:
        """Another client of the same broker, over a way of its own if one is given."""
        if way is not None:
            self._network.way(name, BROKER, way)
        client = Client(self.clock, name)
        ours, theirs = self._network.connect(name, BROKER)
        self._broker.accept(theirs, peer=f"virtual:{name}")
        client.connect(ours, clean_start=True)
        return client

    def at(self, message: Message) -> float:
        """When, by the clock, a message leaves its client."""
        return self._began + message.sent_s - self._start_s

    def _next(self) -> None:
        """Wait for the next message of the world; only that one is in the clock's book."""
        message = next(self._messages, None)
        if message is not None:
            self.clock.at(max(self.clock.now, self.at(message)), lambda _now: self._publish(message))

    def _publish(self, message: Message) -> None:
        qos = 1 if LEVELS[message.kind] else self._readings_qos
        self.clients[message.client].publish(message.topic, message.payload, qos)
        self.published[message.kind] += 1
        self._next()


def _one_by_one(world: World, duration_s: float) -> Iterator[Message]:
    for batch in messages(world, duration_s):
        yield from batch
