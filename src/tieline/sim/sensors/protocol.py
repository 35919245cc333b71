"""What every protocol answers: the same questions by the same names, in the order in which they are asked."""

from __future__ import annotations

from typing import Protocol as Interface

from tieline.sim.sensors.radio import Arrival


class Protocol(Interface):
    """Carries events from the sensors to the sinks that want them, in one simulation."""

    def setup(self) -> None:
        """Begin: sinks hold their first interests, and nobody knows of them."""

    def tick(self, second: int) -> None:
        """Another second begins: what is due every so many seconds is done now."""

    def subscribe(self, sink: int, interest: int) -> None:
        """A sink wants something more."""

    def unsubscribe(self, sink: int, interest: int) -> None:
        """A sink does not want something any more."""

    def attach(self, sink: int) -> None:
        """A sink has moved and is attached to another sensor."""

    def publish(self, event: int, node: int) -> None:
        """A sensor has sensed something."""

    def receive(self, arrival: Arrival) -> None:
        """A frame has reached the node that it is for."""

    def died(self, nodes: set[int]) -> None:
        """These sensors have died in the last second."""

    def table_sizes(self) -> dict[int, int]:
        """Entries of each table that knows of subscriptions, by the number of its holder."""
        ...
