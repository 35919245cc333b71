"""The tree of cluster heads with their tables, and what they say to each other.

A frame is addressed to a cluster and goes to the node that is its head when it is sent; a head of before passes it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal

import numpy as np

from tieline.sim.sensors.clusters import Clusters
from tieline.sim.sensors.simulation import Pacer, Simulation
from tieline.sim.sensors.tables import Covering, HeadTable, Link, Telling, link_of_sink


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Which reading of RPCP."""

    #: ``literal``: Algorithm 2, every head passes every event on to all heads beside it.  ``filter``: up always, down
    #: where something below wants it.  ``peer``: there is no up; over each link where something behind it wants it.
    forwarding: Literal["literal", "filter", "peer"] = "filter"
    covering: Covering = "suboptimal"
    #: ``relay``: heads reach each other over ordinary sensors.  ``direct``: in one hop, with as much power as it takes.
    backbone: Literal["relay", "direct"] = "relay"
    #: Whether interests go only where something can sense their topic.
    advertises: bool = False
    #: Whether a head passes on only the first report of a happening.
    fuses: bool = False
    #: Whether heads are elected again while they live.
    rotates: bool = True


class Say(IntEnum):
    """What frames mean; those with a number carry it."""

    #: An interest begins or ends behind the sender.
    ADD = 0
    CANCEL = 1
    #: A checksum of all that the receiver should hold from the sender.
    DIGEST = 2
    #: Say everything again.
    ASK = 3
    #: Everything follows; that was everything.
    BEGIN = 4
    END = 5
    #: The sender is joined to another head now.
    LEAVE = 6
    #: The sender is joined to the receiver, or has another head.
    HELLO = 7
    #: The sensor over which a sink is reached.
    PLACE = 8
    #: An entry of a table that is handed over, by its place in it; that was the last one.
    ENTRY = 9
    LAST_ENTRY = 10
    #: Topics that can be sensed behind the sender, as bits.
    ADVERTISE = 11
    #: Data: from a sensor to its head, from head to head.
    REPORT = 12
    EVENT = 13


class Backbone:
    """All heads of one network."""

    def __init__(self, run: Simulation, style: Style) -> None:
        self.run: Final = run
        self.style: Final = style
        self.clusters: Final = Clusters(run.world, run.radio)
        #: By cluster; empty again when a head has died with it.
        self.tables: Final = [HeadTable(style.covering, run.world.interests) for _ in range(len(self.clusters))]
        #: By cluster: what its head says of subscriptions; events do not wait.
        self.pacer: Final = Pacer(run)
        #: By cluster and link: the topics heard of, as bits.
        self._sensed: Final[list[dict[Link, int]]] = [{} for _ in range(len(self.clusters))]
        if style.advertises and run.parameters.topics > 30:
            raise ValueError("an advertisement has room for 30 topics")

    def head(self, cluster: int) -> int:
        return self.clusters.head[cluster]

    def link_of(self, source: int) -> Link:
        """The link over which a frame of this node came."""
        sensors = self.run.radio.sensors
        return link_of_sink(source - sensors) if source >= sensors else self.clusters.of[source]

    # --- saying

    def say(self, cluster: int, link: Link, meaning: Say, reference: int = -1, *, event: int = -1) -> None:
        """Send a frame from the head of a cluster to the head of another, or to a sink."""
        if event < 0:
            self.pacer.put(cluster, lambda: self._send(cluster, link, meaning, reference, event))
        else:
            self._send(cluster, link, meaning, reference, event)

    def tell(self, cluster: int, tellings: Sequence[Telling]) -> None:
        """Say what a table says."""
        for one in tellings:
            self.say(cluster, one.link, Say.ADD if one.is_new else Say.CANCEL, one.interest)

    def _send(self, cluster: int, link: Link, meaning: Say, reference: int, event: int) -> None:
        radio = self.run.radio
        sender = self.head(cluster)
        receiver = self.head(link) if link >= 0 else radio.sensors - 1 - link
        if sender >= 0 and receiver >= 0:
            is_boosted = link >= 0 and self.style.backbone == "direct"
            radio.send(sender, receiver, meaning, reference, event=event, boosted=is_boosted)

    # --- links

    def tells(self, cluster: int, other: int) -> bool:
        """Whether a cluster tells another of interests."""
        return self.style.forwarding == "peer" or self.clusters.parent[cluster] == other

    def join(self, cluster: int, other: int) -> None:
        """A cluster begins a link of the tree, as far as it is concerned."""
        table = self.tables[cluster]
        if other in table.links:
            return
        topics = frozenset[str]() if self.style.advertises else None
        self.tell(cluster, table.open(other, tells=self.tells(cluster, other), topics=topics))
        if self.style.advertises:
            self.say(cluster, other, Say.ADVERTISE, self._can_sense(cluster, other))

    def part(self, cluster: int, link: Link) -> None:
        """A cluster ends a link, as far as it is concerned."""
        self._sensed[cluster].pop(link, None)
        self.tell(cluster, self.tables[cluster].close(link))

    def rewire(self, changed: dict[int, tuple[int, int]]) -> None:
        """The tree is another one: who has another parent leaves the old one and joins the new one."""
        for cluster, (old, _) in changed.items():
            if old >= 0:
                self.say(cluster, old, Say.LEAVE)
                self.part(cluster, old)
        for cluster, (_, new) in changed.items():
            if new >= 0:
                # it may have been below, and is above now
                self.part(cluster, new)
                self.say(cluster, new, Say.HELLO)
                self.join(cluster, new)

    # --- advertisements

    def hear_topics(self, cluster: int, link: Link, topics: int) -> None:
        """Somebody advertises; whoever did not know hears of it."""
        sensed = self._sensed[cluster]
        if sensed.get(link, 0) | topics == sensed.get(link, 0):
            return
        others = [other for other in self.tables[cluster].links if other >= 0 and other != link]
        before = {other: self._can_sense(cluster, other) for other in others}
        sensed[link] = sensed.get(link, 0) | topics
        names = frozenset(f"t{topic}" for topic in range(self.run.parameters.topics) if topics >> topic & 1)
        self.tell(cluster, self.tables[cluster].advertise(link, names))
        for other in others:
            now = self._can_sense(cluster, other)
            if now != before[other]:
                self.say(cluster, other, Say.ADVERTISE, now)

    def _can_sense(self, cluster: int, other: int) -> int:
        """What can be sensed here and behind all links but one, as bits."""
        members = self.clusters.members[cluster]
        bits = 0
        for topic in np.flatnonzero(self.run.world.senses[members].any(axis=0)).tolist():
            bits |= 1 << topic
        for link, topics in self._sensed[cluster].items():
            if link != other:
                bits |= topics
        return bits
