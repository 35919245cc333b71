"""RPCP behind the interface of all protocols: what becomes of an event that a sensor has sensed."""

from __future__ import annotations

from typing import Final

from tieline.sim.sensors.protocols.rpcp.backbone import Backbone, Say, Style
from tieline.sim.sensors.protocols.rpcp.upkeep import Upkeep
from tieline.sim.sensors.radio import Arrival
from tieline.sim.sensors.simulation import Simulation
from tieline.sim.sensors.tables import Link

#: Events that a head remembers having seen.
_MEMORY: Final = 1024


class Rpcp:
    """A tree of brokers on cluster heads."""

    def __init__(self, run: Simulation, style: Style) -> None:
        self._run: Final = run
        self._style: Final = style
        self.backbone: Final = Backbone(run, style)
        self._upkeep: Final = Upkeep(self.backbone)
        #: By cluster: the events that its heads have seen, oldest first; Algorithm 2 ignores the second copy.
        self._seen: Final[list[dict[int, None]]] = [{} for _ in self.backbone.tables]

    def setup(self) -> None:
        self._upkeep.settle()

    def tick(self, second: int) -> None:
        self._upkeep.tick(second)

    def subscribe(self, sink: int, interest: int) -> None:
        self._upkeep.say_of_sink(sink, interest, is_new=True)

    def unsubscribe(self, sink: int, interest: int) -> None:
        self._upkeep.say_of_sink(sink, interest, is_new=False)

    def attach(self, sink: int) -> None:
        self._upkeep.register(sink)

    def publish(self, event: int, node: int) -> None:
        cluster = self.backbone.clusters.of[node]
        head = self.backbone.head(cluster)
        if node == head:
            self._pass_on(cluster, event, None)
        elif head >= 0:
            self._run.radio.send(node, head, Say.REPORT, event=event)

    def receive(self, arrival: Arrival) -> None:
        radio = self._run.radio
        if arrival.node >= radio.sensors:
            self._upkeep.receive_at_sink(arrival.node - radio.sensors, arrival)
            return
        cluster = self.backbone.clusters.of[arrival.node]
        head = self.backbone.head(cluster)
        if arrival.tag in (Say.ENTRY, Say.LAST_ENTRY) or arrival.node == head:
            if arrival.tag == Say.REPORT:
                self._pass_on(cluster, arrival.event, None)
            elif arrival.tag == Say.EVENT:
                self._pass_on(cluster, arrival.event, self.backbone.link_of(arrival.source))
            else:
                self._upkeep.receive(cluster, arrival)
        elif head >= 0:
            # a head of before knows who came after it
            radio.send(arrival.node, head, arrival.tag, arrival.reference, event=arrival.event, origin=arrival.source)

    def died(self, nodes: set[int]) -> None:
        self._upkeep.died(nodes)

    def table_sizes(self) -> dict[int, int]:
        """By cluster, how many entries the covering table of its head has."""
        return {cluster: len(table) for cluster, table in enumerate(self.backbone.tables)}

    def _pass_on(self, cluster: int, event: int, origin: Link | None) -> None:
        """Match an event at a head, and send it to the sinks and heads that it is for."""
        seen = self._seen[cluster]
        key = int(self._run.world.happening[event]) if self._style.fuses else event
        if key in seen:
            return
        seen[key] = None
        if len(seen) > _MEMORY:
            del seen[next(iter(seen))]
        head = self.backbone.head(cluster)
        self._run.radio.match(head)
        wanting = self.backbone.tables[cluster].wanting(self._run.matching[event])
        sinks = [-1 - link for link in wanting if link < 0]
        if sinks:
            self._run.radio.send_to_sinks(head, event, sinks)
        for other in self._heads_for(cluster, wanting):
            if other != origin:
                self.backbone.say(cluster, other, Say.EVENT, event=event)

    def _heads_for(self, cluster: int, wanting: list[Link]) -> list[int]:
        """The clusters beside one that an event is passed on to."""
        if self._style.forwarding == "literal":
            return self.backbone.clusters.beside(cluster)
        heads = [link for link in wanting if link >= 0]
        if self._style.forwarding == "peer":
            return heads
        above = self.backbone.clusters.parent[cluster]
        return [above, *(head for head in heads if head != above)] if above >= 0 else heads
