"""Two bounds that no paper proposes: everybody repeats everything, and one node knows everything."""

from __future__ import annotations

from typing import Final

import numpy as np

from tieline.sim.sensors.radio import Arrival
from tieline.sim.sensors.simulation import Simulation

# what frames say to the centre
_ADD, _CANCEL, _PLACE, _EVENT = range(4)


class Flooding:
    """Every event reaches everybody, and sinks keep what they want; no subscription is ever sent."""

    def __init__(self, run: Simulation) -> None:
        self._run: Final = run

    def setup(self) -> None:
        pass

    def tick(self, second: int) -> None:
        pass

    def subscribe(self, sink: int, interest: int) -> None:
        pass

    def unsubscribe(self, sink: int, interest: int) -> None:
        pass

    def attach(self, sink: int) -> None:
        pass

    def publish(self, event: int, node: int) -> None:
        self._run.radio.flood(node, event=event)

    def receive(self, arrival: Arrival) -> None:
        pass

    def died(self, nodes: set[int]) -> None:
        pass

    def table_sizes(self) -> dict[int, int]:
        return {}


class Central:
    """The sensor in the middle knows all interests and where all sinks are; all events pass through it.

    Nobody follows when it dies.
    """

    def __init__(self, run: Simulation) -> None:
        self._run: Final = run
        self.centre: Final = int(np.linalg.norm(run.world.positions, axis=1).argmin())
        #: By sink: the interests that the centre knows of.
        self._known: Final[list[set[int]]] = [set() for _ in run.holds]

    def setup(self) -> None:
        for sink, held in enumerate(self._run.holds):
            self.attach(sink)
            for interest in sorted(held):
                self.subscribe(sink, interest)

    def tick(self, second: int) -> None:
        pass

    def subscribe(self, sink: int, interest: int) -> None:
        self._say(sink, _ADD, interest)

    def unsubscribe(self, sink: int, interest: int) -> None:
        self._say(sink, _CANCEL, interest)

    def attach(self, sink: int) -> None:
        self._say(sink, _PLACE, self._run.access[sink])

    def publish(self, event: int, node: int) -> None:
        if node == self.centre:
            self._match(event)
        else:
            self._run.radio.send(node, self.centre, _EVENT, event=event)

    def receive(self, arrival: Arrival) -> None:
        if arrival.tag == _EVENT:
            self._match(arrival.event)
            return
        sink = arrival.source - self._run.radio.sensors
        if arrival.tag == _PLACE:
            self._run.radio.set_home(sink, arrival.reference)
        elif arrival.tag == _ADD:
            self._known[sink].add(arrival.reference)
        else:
            self._known[sink].discard(arrival.reference)

    def died(self, nodes: set[int]) -> None:
        pass

    def table_sizes(self) -> dict[int, int]:
        return {self.centre: sum(map(len, self._known))}

    def _say(self, sink: int, tag: int, reference: int) -> None:
        if reference >= 0:
            self._run.radio.send(self._run.radio.sensors + sink, self.centre, tag, reference)

    def _match(self, event: int) -> None:
        self._run.radio.match(self.centre)
        matching = self._run.matching[event]
        wanting = [sink for sink, known in enumerate(self._known) if not known.isdisjoint(matching)]
        if wanting:
            self._run.radio.send_to_sinks(self.centre, event, wanting)
