"""What keeps the backbone true: elections, digests of what should be known, and repair after deaths.

Subscriptions travel as single frames and some are lost.  So each link carries, once in a period, a checksum of what its
other end should hold; where that differs everything is said again.  A sink that has not been heard of for some periods
is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tieline.sim.sensors.protocols.rpcp.backbone import Backbone, Say
from tieline.sim.sensors.protocols.rpcp.hand_over import TableHandOvers
from tieline.sim.sensors.radio import Arrival
from tieline.sim.sensors.tables import HeadTable, Link

#: Periods of silence after which a sink is forgotten.
_PATIENCE: Final = 3


def checksum(interests: Iterable[int]) -> int:
    """A number that differs for other interests, in 30 bits."""
    return hash(frozenset(interests)) & 0x3FFFFFFF


class Upkeep:
    """The periodic part of RPCP."""

    def __init__(self, backbone: Backbone) -> None:
        self._backbone: Final = backbone
        self._hand_overs: Final = TableHandOvers(backbone)
        self._period: Final = max(1, round(backbone.run.parameters.election_s))
        #: By cluster and link: what has been said since "everything follows".
        self._listing: Final[dict[tuple[int, Link], set[int]]] = {}
        #: By cluster and sink's link: the second in which it was heard of.
        self._heard: Final[dict[tuple[int, Link], float]] = {}
        #: The second from which on a cluster whose table was lost sends digests again.
        self._rebuilt: Final = [0.0] * len(backbone.tables)
        #: The cluster that each sink has registered with.
        self.registered: Final = [-1] * len(backbone.run.holds)

    # --- once a second

    def tick(self, second: int) -> None:
        """Whose turn it is in this second: clusters and sinks take turns over the period."""
        backbone, run = self._backbone, self._backbone.run
        if second % self._period == 0 and second:
            backbone.rewire(backbone.clusters.repair())
        for cluster in range(second % self._period, len(backbone.tables), self._period):
            head = backbone.head(cluster)
            if head < 0 or not run.radio.is_alive(head):
                continue
            if backbone.style.rotates and second:
                successor = backbone.clusters.candidate(cluster)
                if successor not in (-1, head):
                    self._hand_overs.begin(cluster, successor)
            self._send_digests(cluster, second)
            self._forget_silent(cluster, second)
        for sink in range(second % self._period, len(self.registered), self._period):
            if second and self.registered[sink] >= 0:
                self._from_sink(sink, Say.DIGEST, checksum(run.holds[sink]))

    def _send_digests(self, cluster: int, second: int) -> None:
        if second < self._rebuilt[cluster] or not self._backbone.pacer.is_level(cluster):
            return  # what waits to be said would be missing on the other side
        for other in self._backbone.clusters.beside(cluster):
            if self._backbone.tells(cluster, other):
                told = self._backbone.tables[cluster].told(other)
                self._backbone.say(cluster, other, Say.DIGEST, checksum(told))

    def _forget_silent(self, cluster: int, second: int) -> None:
        for link in self._backbone.tables[cluster].links:
            if link < 0 and second - self._heard.get((cluster, link), 0.0) > _PATIENCE * self._period:
                self._heard.pop((cluster, link), None)
                self._backbone.part(cluster, link)

    # --- sinks

    def register(self, sink: int) -> None:
        """A sink has moved: it says so to its head, and if that is another one, says everything."""
        run = self._backbone.run
        access = run.access[sink]
        if access < 0:
            return
        cluster, before = self._backbone.clusters.of[access], self.registered[sink]
        self.registered[sink] = cluster
        self._from_sink(sink, Say.PLACE, access)
        if cluster != before:
            self._list_of_sink(sink)
            if before >= 0 and self._backbone.head(before) >= 0:
                radio = run.radio
                radio.send(radio.sensors + sink, self._backbone.head(before), Say.LEAVE)

    def say_of_sink(self, sink: int, interest: int, *, is_new: bool) -> None:
        """A sink wants something more, or something less."""
        if self.registered[sink] >= 0:
            self._from_sink(sink, Say.ADD if is_new else Say.CANCEL, interest)

    def _list_of_sink(self, sink: int) -> None:
        self._from_sink(sink, Say.BEGIN)
        for interest in sorted(self._backbone.run.holds[sink]):
            self._from_sink(sink, Say.ADD, interest)
        self._from_sink(sink, Say.END)

    def _from_sink(self, sink: int, meaning: Say, reference: int = -1) -> None:
        radio = self._backbone.run.radio
        head = self._backbone.head(self.registered[sink])
        if head >= 0 and self._backbone.run.access[sink] >= 0:
            radio.send(radio.sensors + sink, head, meaning, reference)

    # --- frames

    def receive(self, cluster: int, arrival: Arrival) -> None:
        """A head has received a control frame."""
        backbone = self._backbone
        table = backbone.tables[cluster]
        link = backbone.link_of(arrival.source)
        meaning, reference = arrival.tag, arrival.reference
        if meaning in (Say.ENTRY, Say.LAST_ENTRY):
            if self._hand_overs.receive(cluster, arrival):
                self._announce(cluster)
            return
        if link < 0:
            self._heard[cluster, link] = backbone.run.seconds
            if meaning != Say.LEAVE:
                backbone.tell(cluster, table.open(link, tells=False))
        elif link in backbone.clusters.beside(cluster):
            backbone.join(cluster, link)
        elif meaning != Say.LEAVE:
            return
        if meaning == Say.ADD:
            backbone.tell(cluster, table.add(link, reference))
            if (cluster, link) in self._listing:
                self._listing[cluster, link].add(reference)
        elif meaning == Say.CANCEL:
            backbone.tell(cluster, table.cancel(link, reference))
        elif meaning == Say.BEGIN:
            self._listing[cluster, link] = set()
        elif meaning == Say.END:
            listed = self._listing.pop((cluster, link), None)
            if listed is not None:
                for gone in sorted(table.held(link) - listed):
                    backbone.tell(cluster, table.cancel(link, gone))
        elif meaning == Say.DIGEST:
            if checksum(table.held(link)) != reference:
                backbone.say(cluster, link, Say.ASK)
        elif meaning == Say.ASK:
            self._list(cluster, link)
        elif meaning == Say.LEAVE:
            self._leave(cluster, link)
        elif meaning == Say.PLACE:
            backbone.run.radio.set_home(-1 - link, reference)
        elif meaning == Say.ADVERTISE:
            backbone.hear_topics(cluster, link, reference)

    def receive_at_sink(self, sink: int, arrival: Arrival) -> None:
        """A sink is asked to say everything again."""
        if arrival.tag == Say.ASK and self._backbone.link_of(arrival.source) == self.registered[sink]:
            self._list_of_sink(sink)
            self._from_sink(sink, Say.PLACE, self._backbone.run.access[sink])

    def _leave(self, cluster: int, link: Link) -> None:
        if link < 0 or link not in self._backbone.clusters.beside(cluster):
            self._backbone.part(cluster, link)
        else:
            # it is above now: what came from below is over, the link is not
            self._backbone.tell(cluster, self._backbone.tables[cluster].forget(link))

    def _list(self, cluster: int, link: Link) -> None:
        """Say everything that a link should know."""
        backbone = self._backbone
        told = backbone.tables[cluster].told(link)
        backbone.say(cluster, link, Say.BEGIN)
        for one in told:
            backbone.say(cluster, link, Say.ADD, one)
        backbone.say(cluster, link, Say.END)

    # --- heads come and go

    def died(self, nodes: set[int]) -> None:
        """Clusters whose head has died choose another one, which knows nothing; the tree goes around dead clusters."""
        backbone = self._backbone
        is_broken = False
        for cluster in range(len(backbone.tables)):
            if backbone.head(cluster) not in nodes:
                continue
            self._hand_overs.abandon(cluster)
            successor = backbone.clusters.candidate(cluster)
            backbone.clusters.head[cluster] = successor
            links = [link for link in backbone.tables[cluster].links if link >= 0]
            backbone.tables[cluster] = HeadTable(backbone.style.covering, backbone.run.world.interests)
            if successor < 0:
                is_broken = True
                continue
            self._rebuilt[cluster] = backbone.run.seconds + self._period
            for other in links:
                backbone.join(cluster, other)
                backbone.say(cluster, other, Say.ASK)
            self._announce(cluster)
            for sink, registered in enumerate(self.registered):
                if registered == cluster:
                    self._list_of_sink(sink)
        if is_broken:
            backbone.rewire(backbone.clusters.repair())

    def _announce(self, cluster: int) -> None:
        """A new head tells its members and the heads beside it."""
        backbone = self._backbone
        backbone.run.radio.flood(backbone.head(cluster), scope=cluster)
        for other in backbone.clusters.beside(cluster):
            backbone.say(cluster, other, Say.HELLO)

    def settle(self) -> None:
        """The first links and the first registrations."""
        backbone = self._backbone
        for cluster in range(len(backbone.tables)):
            for other in backbone.clusters.beside(cluster):
                backbone.join(cluster, other)
        for sink in range(len(self.registered)):
            self.register(sink)
