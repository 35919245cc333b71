"""What a network of regions takes: publications, what each broker knows of others, and brokers that are replaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import fmean
from typing import Final

from tieline.conf.schema import Attribute, Event
from tieline.core.message import Message
from tieline.match.box import Box
from tieline.overlay.interests.entries import size_of_all
from tieline.overlay.node import Node
from tieline.sim.region_network import Network, PlacedBroker
from tieline.sim.ring.workload import SHARE, sparse

#: What all brokers have declared.
EVENTS: Final = {
    "reading": Event(topic="site/#", attributes=(Attribute("x", bounds=(0, 1)), Attribute("y", bounds=(0, 1))))
}
_FILTER: Final = "site/#"
_TOPIC: Final = b"site/reading"
#: How long everybody has to find everybody, and a publication to come to its end.
_SETTLE_S: Final = 12.0
_SPREAD_S: Final = 3.0
#: How long a place is empty before a newcomer takes it, and how long that one is there before its clients ask.
_AWAY_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Publications, each on average."""

    receivers: float
    missed: float
    doubled: float
    #: Frames on links, and their bytes with those of TCP and IP around each.
    messages: float
    bytes: float
    hops: float
    last_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """Brokers that were replaced."""

    replaced: int
    #: Newcomers whose subscriptions were acknowledged.
    granted: int
    #: From a newcomer's first subscription until it was acknowledged: mean and longest.
    granted_s: float
    worst_s: float
    #: For each change, what was said on the links of its region beyond what is said anyway, and on all links elsewhere.
    told_bytes: float
    told_elsewhere: float
    missed: int
    doubled: int
    judged: int


class Regions:
    """Brokers in regions, each with a gateway, which want what the ring's sparse workload says."""

    def __init__(self, regions: int, brokers: int, random: Random, *, share: float = SHARE) -> None:
        """``brokers`` are those of each region beside its gateway."""
        self.random = random
        self.network = Network(EVENTS, self._look)
        self._share = share
        #: By broker that has clients, what it wants.
        self.boxes: dict[PlacedBroker, list[Box]] = {}
        #: By number of a publication, who had it and when.
        self.seen: dict[int, list[tuple[PlacedBroker, float]]] = {}
        self.gateways: list[PlacedBroker] = []
        subscriptions = sparse(regions * brokers, self.random, share=share).subscriptions
        for region in range(regions):
            name = f"r{region}"
            members = [self.network.add(f"{name}-{number}", name) for number in range(brokers)]
            for place in members:
                own = subscriptions[region * brokers + members.index(place)]
                self.boxes[place] = [subscription.box for subscription in own if subscription.box is not None]
            gateway = self.network.add(f"{name}-gate", name, is_gateway=True)
            self.gateways.append(gateway)
            self._graph([*members, gateway], are_regions=False)
        self._graph(self.gateways, are_regions=True)
        self.network.clock.run_for(2.0)
        for place in self.boxes:
            self._ask(place)
        self.network.clock.run_for(_SETTLE_S)

    def _graph(self, places: Sequence[PlacedBroker], *, are_regions: bool) -> None:
        """About three links for each: a cycle with chords."""
        count = len(places)
        pairs = {(number, (number + 1) % count) for number in range(count)}
        for _ in range(count // 2):
            one, other = self.random.sample(range(count), 2) if count > 1 else (0, 0)
            pairs.add((one, other))
        joined: set[frozenset[int]] = set()
        for one, other in sorted(pairs):
            if one != other and frozenset((one, other)) not in joined:
                joined.add(frozenset((one, other)))
                delay = self.random.uniform(0.002, 0.02)
                self.network.join(places[one], places[other], delay, are_regions=are_regions)

    def _ask(self, place: PlacedBroker) -> None:
        for box in self.boxes[place]:
            low, high = box.lo, box.hi
            condition = f"{low[0]:.4f} <= x <= {high[0]:.4f} and {low[1]:.4f} <= y <= {high[1]:.4f}"
            place.want(_FILTER, condition)

    def _look(self, place: PlacedBroker, message: Message, now: float) -> None:
        number = int(message.payload.partition(b'"n":')[2].rstrip(b"} "))
        self.seen[number].append((place, now))

    def publish(self, number: int, qos: int, payload: int = 100) -> tuple[PlacedBroker, set[PlacedBroker]]:
        """Some broker's client publishes something; who that was, and who should have it."""
        x, y = (round(self.random.random(), 4) for _ in range(2))
        source = self.random.choice([place for place in self.boxes if place.is_alive])
        body = b'{"x":%.4f,"y":%.4f,"n":%d}' % (x, y, number)
        self.seen[number] = []
        source.publish(_TOPIC, body + b" " * (payload - len(body)), qos)
        wanted = {
            place for place, boxes in self.boxes.items() if place.is_alive and any(_has(box, x, y) for box in boxes)
        }
        return source, wanted

    def _nodes(self) -> list[Node]:
        return [node for place in self.network.places if place.is_alive for node in place.nodes]

    def _sent(self) -> tuple[int, int]:
        """Frames with messages that were written to links so far, and their bytes."""
        frames = size = 0
        for node in self._nodes():
            for link in node.links.values():
                frames += sum(link.meter.sent)
                size += sum(link.meter.sent_bytes)
        return frames, size

    def spread(self, events: int, overhead: int) -> Spread:
        """Publications with QoS 0, one after the other."""
        receivers, missed, doubled, hops, last = [], 0, 0, [], []
        frames, size = self._sent()
        for number in range(events):
            for node in self._nodes():
                node.carrier.taker.carried.take(node.directory.names)
            source, wanted = self.publish(number, 0)
            begun = self.network.clock.now
            self.network.clock.run_for(_SPREAD_S)
            seen = self.seen[number]
            had = {place for place, _ in seen}
            receivers.append(len(wanted - {source}))
            missed += len(wanted - had)
            doubled += len(seen) - len(had) + len(had - wanted)
            last.append(max([at - begun for _, at in seen], default=0.0))
            hops.append(self._hops(source))
        after, written = self._sent()
        messages = (after - frames) / events
        return Spread(
            receivers=fmean(receivers),
            missed=missed / max(1, sum(receivers)),
            doubled=doubled,
            messages=messages,
            bytes=(written - size) / events + overhead * messages,
            hops=fmean(hops),
            last_ms=1e3 * fmean(last),
        )

    def _hops(self, source: PlacedBroker) -> int:
        """Links to the last broker that had the last publication: to the gateway, to others, and behind them."""

        def most(node: Node) -> int:
            carried = node.carrier.taker.carried.take(node.directory.names)
            return max([links for each in carried for links in each["hops"]], default=0)

        inside: dict[str, int] = {}
        for place in self.boxes:
            if place.is_alive:
                inside[place.region] = max(inside.get(place.region, 0), most(place.joined.node))
        gate = next(each for each in self.gateways if each.region == source.region)
        out = most(gate.joined.node)
        longest = inside.pop(source.region, 0)
        for gateway in self.gateways:
            if gateway is not gate and gateway.gateway is not None:
                crossed = most(gateway.gateway.outside.node)
                if crossed:
                    longest = max(longest, out + crossed + inside.get(gateway.region, 0))
        return max(longest, out)

    def known_bytes(self, *, of_gateways: bool) -> float:
        """What a broker knows of others, on average: what they want, and who is joined with whom."""
        places = self.gateways if of_gateways else [place for place in self.boxes if place.is_alive]
        return fmean(sum(_known(node) for node in place.nodes) for place in places)

    def churn(self, replaced: int, every_s: float) -> Churn:
        """Brokers are replaced one after the other by others that want something else.

        Around every other one messages with QoS 1 are published; what is said is counted around the others.
        """
        random, network = self.random, self.network
        granted: list[float] = []
        judged: list[tuple[int, set[PlacedBroker]]] = []
        stable = set(self.boxes)
        told: list[int] = []
        elsewhere: list[int] = []
        number = 1_000_000
        for life in range(replaced):
            is_loaded = life % 2 == 1
            old = random.choice([place for place in self.boxes if place.is_alive])
            written = network.written
            begin = Counter(written)
            network.clock.run_for(every_s)
            before = Counter(written)
            wires = [(wire.other(old), wire.delay_s) for wire in old.wires.values()]
            old.end()
            stable.discard(old)
            network.clock.run_for(_AWAY_S)
            for _ in range(3 * is_loaded):
                number += 1
                judged.append((number, self.publish(number, 1)[1]))
            new = network.add(old.name, old.region, life=life + 2)
            subscriptions = sparse(1, random, share=self._share).subscriptions[0]
            self.boxes[new] = [subscription.box for subscription in subscriptions if subscription.box is not None]
            for other, delay_s in wires:
                network.join(new, other, delay_s)
            network.clock.run_for(_AWAY_S)
            self._ask(new)
            new.when_known(partial(self._note, granted, network.clock.now))
            for _ in range(3 * is_loaded):
                number += 1
                judged.append((number, self.publish(number, 1)[1]))
            network.clock.run_for(every_s - 2 * _AWAY_S)
            if not is_loaded:
                said = {each: written[each] - 2 * before[each] + begin[each] for each in written}
                told.append(said.pop(old.region))
                elsewhere.append(sum(said.values()))
        network.clock.run_for(_SETTLE_S)
        missed = doubled = count = 0
        for each, wanted in judged:
            had = [place for place, _ in self.seen[each]]
            due = wanted & stable
            count += len(due)
            missed += len(due - {*had})
            doubled += len(had) - len({*had})
        return Churn(
            replaced=replaced,
            granted=len(granted),
            granted_s=fmean(granted) if granted else 0.0,
            worst_s=max(granted, default=0.0),
            told_bytes=fmean(told),
            told_elsewhere=fmean(elsewhere),
            missed=missed,
            doubled=doubled,
            judged=count,
        )

    def _note(self, granted: list[float], asked: float) -> None:
        granted.append(self.network.clock.now - asked)


def _has(box: Box, x: float, y: float) -> bool:
    """Whether a point is in a box, by the numbers that were written into its condition."""
    low, high = box.lo, box.hi
    sides = zip((x, y), low, high, strict=True)
    return all(round(least, 4) <= value <= round(most, 4) for value, least, most in sides)


def _known(node: Node) -> int:
    interests = sum(size_of_all([*known.entries]) for known in node.interests.known.values())
    return interests + sum(len(state.bytes) for state in node.membership.states.values())
