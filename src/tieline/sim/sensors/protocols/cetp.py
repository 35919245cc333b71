"""CETP, as the covering paper describes it (and Liu and Zhu's abstracts): fixed communities that negotiate.

Each community has a coordinator, and consists of the sensors that hear it; what others sense is lost, as the paper
says.  Before each transmission there is an offer and a request.  The coordinator stores events, offers them to the
coordinators beside it and to the sinks that have registered with it, also to those that come later.  A full store gives
up the event of which most copies were delivered, among those the oldest.  Sinks offer what they carry to a community
that they enter.  ``carries``: only sinks move events from one community to another.  ``rotates``: coordinators are
elected like RPCP's heads, which the paper does not say.

Kinder than the description: offers are heard only by the node that they are for, and sinks are offered only what they
have registered for.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from typing import Final

from tieline.sim.sensors.clusters import Clusters
from tieline.sim.sensors.radio import Arrival
from tieline.sim.sensors.simulation import Pacer, Simulation

#: Events that a coordinator stores, and that a sink carries and offers on entering a community.
_STORE: Final = 100
_CARRIED: Final = 30


class Say(IntEnum):
    """What a frame of the protocol says to whoever hears it."""

    OFFER = 0
    REQUEST = 1
    EVENT = 2
    ADD = 3
    CANCEL = 4
    PLACE = 5
    LEAVE = 6


class _Store:
    """The events that a coordinator keeps, and the interests that its sinks have registered."""

    def __init__(self) -> None:
        #: By event: copies delivered; oldest first.
        self.events: dict[int, int] = {}
        #: By sink.
        self.interests: dict[int, set[int]] = {}
        #: By sink: what it has been offered.
        self.offered: dict[int, set[int]] = {}

    def keep(self, event: int) -> None:
        """Store an event; if there is no room, give one up."""
        if len(self.events) >= _STORE:
            gone = max(self.events, key=lambda one: self.events[one])
            del self.events[gone]
            for offered in self.offered.values():
                offered.discard(gone)
        self.events[event] = 0


class Cetp:
    """Coordinators of communities store events, and sinks that pass from one to the next negotiate for theirs."""

    def __init__(self, run: Simulation, *, rotates: bool = False, carries: bool = False) -> None:
        self._run: Final = run
        self._rotates: Final = rotates
        self._carries: Final = carries
        self._clusters: Final = Clusters(run.world, run.radio)
        self._stores: Final = [_Store() for _ in range(len(self._clusters))]
        #: By sink: where it has registered, and what it carries, oldest first.
        self._registered: Final = [-1] * len(run.holds)
        self._pacer: Final = Pacer(run)
        self._carried: Final[list[dict[int, None]]] = [{} for _ in run.holds]

    def setup(self) -> None:
        for sink in range(len(self._registered)):
            self.attach(sink)

    def tick(self, second: int) -> None:
        period = max(1, round(self._run.parameters.election_s))
        if not self._rotates or not second or second % period:
            return
        for cluster in range(len(self._clusters)):
            successor = self._clusters.candidate(cluster)
            if successor not in (-1, self._clusters.head[cluster]):
                self._succeed(cluster, successor)

    def subscribe(self, sink: int, interest: int) -> None:
        self._from_sink(sink, Say.ADD, interest)

    def unsubscribe(self, sink: int, interest: int) -> None:
        self._from_sink(sink, Say.CANCEL, interest)

    def attach(self, sink: int) -> None:
        """Say where the sink is; in another community register, and offer what it carries."""
        access = self._run.access[sink]
        if access < 0:
            return
        cluster, before = self._clusters.of[access], self._registered[sink]
        self._registered[sink] = cluster
        self._from_sink(sink, Say.PLACE, access)
        if cluster == before:
            return
        if before >= 0 and self._clusters.head[before] >= 0:
            radio = self._run.radio
            radio.send(radio.sensors + sink, self._clusters.head[before], Say.LEAVE)
        self._register(sink)
        for event in list(self._carried[sink])[-_CARRIED:]:
            source = self._run.radio.sensors + sink
            self._pacer.put(source, partial(self._offer, source, self._clusters.head[cluster], event))

    def publish(self, event: int, node: int) -> None:
        cluster = self._clusters.of[node]
        head = self._clusters.head[cluster]
        if node == head:
            self._store(cluster, event, -1)
        elif head >= 0 and self._run.radio.hops(node, head) == 1:
            self._offer(node, head, event)

    def receive(self, arrival: Arrival) -> None:
        radio = self._run.radio
        if arrival.tag == Say.REQUEST:
            radio.send(arrival.node, arrival.source, Say.EVENT, event=arrival.event)
            self._count(arrival.node, arrival.event)
        elif arrival.node >= radio.sensors:
            self._at_sink(arrival.node - radio.sensors, arrival)
        else:
            self._at_coordinator(arrival)

    def died(self, nodes: set[int]) -> None:
        """A community whose coordinator dies is over, unless coordinators rotate."""
        for cluster, head in enumerate(self._clusters.head):
            if head in nodes:
                self._stores[cluster] = _Store()
                self._clusters.head[cluster] = -1
                if self._rotates:
                    self._succeed(cluster, self._clusters.candidate(cluster))

    def table_sizes(self) -> dict[int, int]:
        return {cluster: sum(map(len, store.interests.values())) for cluster, store in enumerate(self._stores)}

    # --- sinks

    def _register(self, sink: int) -> None:
        for interest in sorted(self._run.holds[sink]):
            self._from_sink(sink, Say.ADD, interest)

    def _from_sink(self, sink: int, meaning: Say, reference: int) -> None:
        cluster = self._registered[sink]
        radio = self._run.radio
        if cluster >= 0 and self._clusters.head[cluster] >= 0 and self._run.access[sink] >= 0:
            radio.send(radio.sensors + sink, self._clusters.head[cluster], meaning, reference)

    def _at_sink(self, sink: int, arrival: Arrival) -> None:
        radio = self._run.radio
        carried = self._carried[sink]
        if arrival.tag == Say.OFFER:
            if radio.air.received[arrival.event, sink] < 0:
                radio.send_control_about(arrival.node, arrival.source, Say.REQUEST, arrival.event)
        elif arrival.tag == Say.EVENT:
            carried[arrival.event] = None
            if len(carried) > _STORE:
                del carried[next(iter(carried))]

    # --- coordinators

    def _at_coordinator(self, arrival: Arrival) -> None:
        radio = self._run.radio
        cluster = self._clusters.of[arrival.node]
        if arrival.node != self._clusters.head[cluster]:
            return
        store = self._stores[cluster]
        if arrival.tag == Say.OFFER:
            if arrival.event not in store.events:
                radio.send_control_about(arrival.node, arrival.source, Say.REQUEST, arrival.event)
        elif arrival.tag == Say.EVENT:
            self._store(cluster, arrival.event, arrival.source)
        else:
            self._hear_sink(cluster, arrival.source - radio.sensors, arrival)

    def _hear_sink(self, cluster: int, sink: int, arrival: Arrival) -> None:
        store = self._stores[cluster]
        if arrival.tag == Say.PLACE:
            self._run.radio.set_home(sink, arrival.reference)
        elif arrival.tag == Say.LEAVE:
            store.interests.pop(sink, None)
            store.offered.pop(sink, None)
        elif arrival.tag == Say.CANCEL:
            store.interests.get(sink, set()).discard(arrival.reference)
        else:
            store.interests.setdefault(sink, set()).add(arrival.reference)
            for event in store.events:
                if arrival.reference in self._run.matching[event] or self._carries:
                    # all that is stored, after a registration: in the pace of a hand-over
                    self._pacer.put(cluster, partial(self._offer_to_sink, cluster, sink, event))

    def _store(self, cluster: int, event: int, source: int) -> None:
        """A coordinator has a new event: it offers it to whoever may want it."""
        store = self._stores[cluster]
        if event in store.events:
            return
        store.keep(event)
        head, radio = self._clusters.head[cluster], self._run.radio
        radio.match(head)
        for sink, interests in store.interests.items():
            if self._carries or not interests.isdisjoint(self._run.matching[event]):
                self._offer_to_sink(cluster, sink, event)
        if self._carries:
            return
        for other in self._clusters.beside(cluster):
            receiver = self._clusters.head[other]
            if receiver not in (-1, source):
                self._offer(head, receiver, event)

    def _offer_to_sink(self, cluster: int, sink: int, event: int) -> None:
        store = self._stores[cluster]
        offered = store.offered.setdefault(sink, set())
        if event in store.events and event not in offered:
            offered.add(event)
            self._offer(self._clusters.head[cluster], self._run.radio.sensors + sink, event)

    def _offer(self, sender: int, receiver: int, event: int) -> None:
        if receiver >= 0 and receiver != sender:
            copies = self._copies(sender, event)
            self._run.radio.send_control_about(sender, receiver, Say.OFFER, event, rank=copies)

    def _copies(self, node: int, event: int) -> int:
        if node >= self._run.radio.sensors:
            return 0
        return self._stores[self._clusters.of[node]].events.get(event, 0)

    def _count(self, node: int, event: int) -> None:
        """A copy goes out; queues give up what has most copies."""
        if node < self._run.radio.sensors:
            store = self._stores[self._clusters.of[node]]
            if event in store.events:
                store.events[event] += 1

    def _succeed(self, cluster: int, successor: int) -> None:
        """Another coordinator: its store is empty, and its sinks register again."""
        self._clusters.head[cluster] = successor
        self._stores[cluster] = _Store()
        if successor >= 0:
            self._run.radio.flood(successor, scope=cluster)
            for sink, registered in enumerate(self._registered):
                if registered == cluster:
                    self._from_sink(sink, Say.PLACE, self._run.access[sink])
                    self._register(sink)
