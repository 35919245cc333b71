"""What becomes of publications on a ring: who got them, what that took, and what brokers know.

Everything is counted in virtual time with the shipped code; what a table takes is the size of what it would say of
itself, so that it does not depend on how Python keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean
from typing import Final

from tieline.overlay.ring.node import RingNode
from tieline.sim.ring.network import Network, PlacedNode
from tieline.sim.ring.workload import Workload, event

#: Virtual seconds after which a publication has been everywhere.
SETTLE_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What was measured of some publications; numbers for each are means."""

    events: int
    receivers: float
    #: Pairs of a publication and a broker that wanted it and did not get it, as a share; and got it more than once.
    missed: float
    doubled: int
    #: Copies that were sent, their bytes, and the same on every link that they crossed.
    messages: float
    bytes: float
    link_bytes: float
    #: Of all brokers that got a copy, the share that wanted nothing; and copies that a broker got for each event.
    false_positives: float
    visits: float
    #: Until the last receiver had it, and the mean over receivers; hops to the last.
    last_ms: float
    mean_ms: float
    hops: float

    @property
    def messages_per_receiver(self) -> float:
        """How many copies it takes to reach one that wants it."""
        return self.messages / self.receivers if self.receivers else 0.0


def publish(  # who publishes what, on which ring, and how it is judged
    places: Sequence[PlacedNode],
    network: Network,
    work: Workload,
    random: Random,
    *,
    events: int,
    payload: int = 100,
    is_assured: bool = False,
    settle_s: float = SETTLE_S,
) -> Spread:
    """Publish events anywhere, one after the other, and judge each by looking at all subscriptions."""
    network.forget()
    before = sum(place.node.counts.visits for place in places) / events / len(places)
    receivers = missed = doubled = reached = false = 0
    last: list[float] = []
    mean: list[float] = []
    hops: list[int] = []
    for number in range(events):
        published = event(number, random, payload, work.dimensions)
        source = random.choice([place for place in places if not place.is_dead])
        now = network.clock.now
        if is_assured:
            source.node.publish_assured([published], 0, lambda _now: None, now)
        else:
            source.node.publish([published], 0, now)
        network.clock.run_for(settle_s)
        wanted = {number for number in work.receivers(published, source.number) if not places[number].is_dead}
        got = {place.number: place.given[number] for place in places if number in place.given}
        receivers += len(wanted)
        missed += len(wanted - got.keys())
        doubled += sum(len(visits) - 1 for visits in got.values())
        reached += len(got)
        false += len(got.keys() - wanted)
        visits = [got[one][0] for one in wanted & got.keys()]
        if visits:
            last.append(max(visit.at for visit in visits) - now)
            mean.append(fmean(visit.at for visit in visits) - now)
            hops.append(max(visit.hops for visit in visits))
    data = network.data
    return Spread(
        events=events,
        receivers=receivers / events,
        missed=missed / receivers if receivers else 0.0,
        doubled=doubled,
        messages=data.messages / events,
        bytes=data.bytes / events,
        link_bytes=data.crossed_bytes / events,
        false_positives=false / reached if reached else 0.0,
        visits=sum(place.node.counts.visits for place in places) / events / len(places) - before,
        last_ms=1e3 * fmean(last or [0.0]),
        mean_ms=1e3 * fmean(mean or [0.0]),
        hops=fmean(hops or [0]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What one broker keeps of others, as a mean over all, and for the one that keeps most."""

    fingers: float
    table_bytes: float
    most_bytes: int


def state_of(places: Sequence[PlacedNode]) -> State:
    """What brokers know of each other."""
    sizes = [_size(place.node) for place in places]
    return State(
        fingers=fmean(len(place.node.table) for place in places), table_bytes=fmean(sizes), most_bytes=max(sizes)
    )


def _size(node: RingNode) -> int:
    entries = sum(20 + finger.told.size for finger in node.table)
    watched = sum(20 + watcher.told.size for watcher in node.growth.watchers.values())
    return entries + watched + 20 * len(node.table.successors)
