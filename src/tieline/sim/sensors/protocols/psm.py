"""PSM (Tekin and Sahingoz): sinks flood the topics that they want, and events follow the shortest way back.

Every 60 s each sink floods its topics through the network.  A sensor sends an event to all sinks whose flood it heard
and that want the topic, copies that share a hop as one frame.  A full queue gives up the frame that has the longest way
to go.

Three things are kinder than the description: a sink that moves between two floods leaves a pointer where it was, and
floods at once if nobody is alive there; and ways are those of all protocols, not only the ones along which floods came.
"""

from __future__ import annotations

from typing import Final

from tieline.sim.sensors.radio import Arrival
from tieline.sim.sensors.simulation import Simulation

_PERIOD_S: Final = 60
_MOVED: Final = 1


class Psm:
    """Floods of topics lay the ways on which events come back; conditions are not known to anybody on them."""

    def __init__(self, run: Simulation) -> None:
        self._run: Final = run
        #: By flood: its topics.
        self._topics: Final[dict[int, frozenset[int]]] = {}
        self._last_flood: Final = [-_PERIOD_S] * len(run.holds)

    def setup(self) -> None:
        pass

    def tick(self, second: int) -> None:
        """Flood what is due: not all sinks in the same second."""
        for sink, last in enumerate(self._last_flood):
            is_first = last < 0
            if (second >= sink % 10 if is_first else second - last >= _PERIOD_S) and self._run.access[sink] >= 0:
                self._flood(sink)
                self._last_flood[sink] = second

    def subscribe(self, sink: int, interest: int) -> None:
        """Part of the next flood."""

    def unsubscribe(self, sink: int, interest: int) -> None:
        """Part of the next flood."""

    def attach(self, sink: int) -> None:
        """Leave a pointer where frames for the sink are sent."""
        radio = self._run.radio
        if self._last_flood[sink] < 0:
            return
        home = int(radio.air.home[sink])
        if not radio.is_alive(home):
            self._last_flood[sink] = -_PERIOD_S  # nobody is there to leave a pointer with
        elif home == self._run.access[sink]:
            radio.set_pointer(sink, home)
        else:
            radio.send(radio.sensors + sink, home, _MOVED, self._run.access[sink])

    def publish(self, event: int, node: int) -> None:
        topic = self._run.event_topic(event)
        heard = self._run.radio.air.heard[:, node].tolist()
        sinks = [sink for sink, flood in enumerate(heard) if flood >= 0 and topic in self._topics[flood]]
        if sinks:
            self._run.radio.send_to_sinks(node, event, sinks)

    def receive(self, arrival: Arrival) -> None:
        sink = arrival.source - self._run.radio.sensors
        if arrival.node == self._run.radio.air.home[sink]:
            self._run.radio.set_pointer(sink, arrival.reference)

    def died(self, nodes: set[int]) -> None:
        pass

    def table_sizes(self) -> dict[int, int]:
        """Of each sensor: the topics that it knows somebody wants, once for each sink."""
        heard = self._run.radio.air.heard[:, : self._run.radio.sensors]
        return {
            node: sum(len(self._topics[flood]) for flood in heard[:, node].tolist() if flood >= 0)
            for node in range(self._run.radio.sensors)
        }

    def _flood(self, sink: int) -> None:
        radio, world = self._run.radio, self._run.world
        radio.set_home(sink, self._run.access[sink])
        number = radio.flood(radio.sensors + sink, tag=sink)
        self._topics[number] = frozenset(int(world.interest_topic[interest]) for interest in self._run.holds[sink])
        if len(self._topics) > 40 * len(self._run.holds):
            kept = set(radio.air.heard.reshape(-1).tolist()) | {number}
            for old in [one for one in self._topics if one not in kept]:
                del self._topics[old]
