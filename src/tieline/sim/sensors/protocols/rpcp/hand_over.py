"""A head hands its table over before it retires: entry by entry, at a pace that no queue overflows at."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tieline.sim.sensors.protocols.rpcp.backbone import Backbone, Say
from tieline.sim.sensors.radio import Arrival
from tieline.sim.sensors.tables import Link


@dataclass(slots=True)
class _HandOver:
    to: int
    began: int
    entries: list[tuple[Link, int]]
    arrived: set[int] = field(default_factory=set)


class TableHandOvers:
    """The hand-overs that are under way; the old head serves until the last entry has arrived."""

    def __init__(self, backbone: Backbone) -> None:
        self._backbone: Final = backbone
        self._under_way: dict[int, _HandOver] = {}

    def begin(self, cluster: int, successor: int) -> None:
        """Hand the table of a cluster over, unless that is under way."""
        run = self._backbone.run
        known = self._under_way.get(cluster)
        if known is not None and run.now - known.began < run.parameters.expiry_s * run.parameters.slots_per_s:
            return
        entries = self._backbone.tables[cluster].entries()
        self._under_way[cluster] = _HandOver(successor, run.now, entries)
        old = self._backbone.head(cluster)

        def send(meaning: Say, number: int) -> None:
            if run.radio.is_alive(old):
                run.radio.send(old, successor, meaning, number)

        pacer = self._backbone.pacer
        for number in range(len(entries)):
            pacer.put(cluster, partial(send, Say.ENTRY, number))
        pacer.put(cluster, partial(send, Say.LAST_ENTRY, len(entries)))

    def receive(self, cluster: int, arrival: Arrival) -> bool:
        """An entry arrives at its new head: whether the cluster has changed its head now."""
        known = self._under_way.get(cluster)
        if known is None or known.to != arrival.node:
            return False
        if arrival.tag == Say.ENTRY:
            known.arrived.add(arrival.reference)
            return False
        del self._under_way[cluster]
        self._backbone.clusters.head[cluster] = known.to
        for number, (link, interest) in enumerate(known.entries):
            if number not in known.arrived:
                # lost on the way: the new head does not know it, until a digest shows that
                self._backbone.tell(cluster, self._backbone.tables[cluster].cancel(link, interest))
        return True

    def abandon(self, cluster: int) -> None:
        """One of the two has died."""
        self._under_way.pop(cluster, None)
