"""Running brokers on one graph, compared by strategy: the part ``strategies`` of the benchmark.

Theory of operation
-------------------
Brokers are processes of this machine, joined by a graph that depends on their number alone.  At each there are a
subscriber and a publisher, and one message with QoS 0 is under way at a time.  After each, all brokers are asked what
has passed their links, until everything that was sent has come and two answers are the same: the difference is what the
message took, retransmissions and copies that somebody has seen before included.  Only frames of the level of these
messages are counted: what brokers have to tell each other about sessions has a higher one.

Who got a copy, and over which links, follows from these numbers; that a ring carries a message twice over one broker
does not, so hops to a receiver are the fewest that its copies can have taken.

On a ring of unknown brokers (``arcs`` and ``partitioned``) nobody goes by the graph: its links are where brokers look
for the ring, and then they dial whom they need.  What is counted there are copies from broker to broker, with the hops
that each has made, and what brokers say beside them grows with time, since they look after each other once a period.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from statistics import fmean, median
from typing import Final, get_args

from tieline.bench.load.clients import PATIENCE_S, clients, subscribe
from tieline.bench.load.job import Garbled, Metrics, TurnedDown
from tieline.bench.load.packets import PUBLISH
from tieline.bench.overlay.network import Edges, JoinedTieline, Member, Network
from tieline.bench.overlay.strategies_work import EVENT_TYPES, WORKS, Published, Work
from tieline.bench.process import until
from tieline.bench.suite.declaration import Running
from tieline.bench.suite.results import Row
from tieline.bench.timed.packets import Inbox
from tieline.conf.overlay import DispatchName, Ring, StrategyName
from tieline.sim.ring.network import random_links

#: Ways around a ring of unknown brokers, and all that is compared.
RINGS: Final[tuple[str, ...]] = get_args(DispatchName)
STRATEGIES: Final[tuple[str, ...]] = (*get_args(StrategyName), *RINGS)
#: How often brokers on a ring look after each other: as by default.
PERIOD_S: Final = Ring().stabilise_s
#: The level of messages that no class was declared for.
_LEVEL: Final = 1
_CHUNK: Final = 65_536
#: Until what passes links has come to rest.
_REST_S: Final = 20.0
#: Until brokers have forgotten what nobody wants any more: on a ring they tell that after a while, one the next.
_FORGOTTEN_S: Final = 90.0
#: From broker to broker.
Hop = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategiesEffort:
    """How much is done."""

    brokers: tuple[int, ...]
    #: Publications, by workload.
    events: dict[str, int]


FULL: Final = StrategiesEffort(brokers=(10, 20), events={"paper": 30, "ours": 200})
QUICK: Final = StrategiesEffort(brokers=(10,), events={"paper": 10, "ours": 60})


def edges(brokers: int) -> Edges:
    """A cycle with chords, about three links for each broker: the graph of the simulated rings."""
    graph = random_links(brokers, Random(brokers)).neighbours
    return [(one, other) for one in sorted(graph) for other in sorted(graph[one]) if other < one]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """What all brokers say at one time; what was told beside messages does not make two of them differ."""

    sent: dict[Hop, int]
    received: dict[Hop, int]
    frame_bytes: int
    useless: int
    #: Entries of others, of all brokers together.
    known: int
    all_bytes: int = field(compare=False)
    #: On a ring of unknown brokers: by broker, copies that came, and the hops that they had made.
    came: dict[int, tuple[int, int]] = field(default_factory=dict)

    def reached(self, before: Passed, source: int) -> dict[int, int]:
        """By broker that has got a copy since, the hops to it; the source is none away."""
        if self.came:
            found = {source: 0}
            for number, (copies, hops_) in self.came.items():
                copies_before, hops_before = before.came[number]
                if copies > copies_before:
                    found[number] = (hops_ - hops_before) // (copies - copies_before)
            return found
        return hops([hop for hop, times in self.sent.items() if times > before.sent.get(hop, 0)], source)


#: All ways from broker to broker, where they are counted together.
_ANYWHERE: Final = (-1, -1)


def look_at_ring(network: Network) -> Passed:
    """The same of brokers on a ring."""
    sent = received = frame_bytes = useless = known = all_bytes = 0
    came: dict[int, tuple[int, int]] = {}
    for number, instance in enumerate(network.instances):
        assert isinstance(instance.peer, Member)
        said = instance.peer.ask("net")
        totals = said["totals"]
        sent += totals["publications/sent"]
        received += totals["publications/received"]
        came[number] = totals["publications/received"], totals["publications/hops"]
        frame_bytes += totals["publications/bytes"]
        useless += totals["useless"]
        all_bytes += totals["bytes/sent"] - totals["publications/bytes"]
        known += sum(1 if each["brokers"] is None else each["brokers"] for each in said["fingers"])
    return Passed(
        sent={_ANYWHERE: sent}, received={_ANYWHERE: received}, frame_bytes=frame_bytes, useless=useless,
        known=known, all_bytes=all_bytes, came=came,
    )  # fmt: skip


def look(network: Network) -> Passed:
    """Ask every broker for its own figures."""
    assert isinstance(network.instances[0].peer, Member)
    if network.instances[0].peer.ask("net").get("mode") == "ring":
        return look_at_ring(network)
    sent: dict[Hop, int] = {}
    received: dict[Hop, int] = {}
    frame_bytes = useless = known = all_bytes = 0
    numbers = {f"b{number}": number for number in range(len(network.instances))}
    for number, instance in enumerate(network.instances):
        assert isinstance(instance.peer, Member)
        said = instance.peer.ask("net")
        for link in said["own"]:
            other = numbers[link["peer"]]
            (level,) = (each for each in link["classes"] if each["level"] == _LEVEL)
            sent[number, other], received[other, number] = level["sent"], level["received"]
            frame_bytes += level["sent_bytes"]
        useless += said["totals"]["useless"]
        all_bytes += said["totals"]["bytes/sent"]
        known += sum(each["wants"] for each in said["brokers"] if not each["is_here"])
    return Passed(
        sent=sent, received=received, frame_bytes=frame_bytes, useless=useless, known=known, all_bytes=all_bytes
    )


def at_rest(network: Network) -> Passed:
    """What brokers say once all that was sent has come, and nobody sends it on any more."""
    seen = [look(network)]

    def rests() -> bool:
        seen.append(look(network))
        return seen[-1] == seen[-2] and seen[-1].sent == seen[-1].received

    until("nothing is under way", _REST_S, rests)
    return seen[-1]


def hops(crossed: Sequence[Hop], source: int) -> dict[int, int]:
    """By broker that got a copy, the fewest links from the source over which copies passed."""
    found = {source: 0}
    waiting = [source]
    for at in waiting:
        for one, other in crossed:
            if one == at and other not in found:
                found[other] = found[at] + 1
                waiting.append(other)
    return found


class Clients:
    """A publisher and a subscriber at every broker."""

    def __init__(self, network: Network, work: Work, stack: ExitStack) -> None:
        self._work = work
        self._publishers: list[socket.socket] = []
        self._subscribers: list[socket.socket] = []
        self._numbers: dict[int, int] = {}
        self._inboxes = [Inbox() for _ in work.asked]
        for number, (at, asked) in enumerate(zip(network.endpoints, work.asked, strict=True)):
            publisher, subscriber = stack.enter_context(clients(at, [f"pub{number}", f"sub{number}"]))
            subscribe(subscriber, asked.filters)
            publisher.settimeout(PATIENCE_S)
            self._publishers.append(publisher)
            self._subscribers.append(subscriber)
            self._numbers[subscriber.fileno()] = number
        self.lost = self.doubled = 0

    def publish(self, published: Published) -> float:
        """Publish, and wait until all who want it have it; seconds until the last one had."""
        owed = set(self._work.receivers(published))
        wanted = frozenset(owed)
        began = time.perf_counter()
        self._publishers[published.source].sendall(published.packet)
        deadline = began + PATIENCE_S
        while owed and (left := deadline - time.perf_counter()) > 0:
            self._take(left, published, owed, wanted)
        took = time.perf_counter() - began
        self.lost += len(owed)
        return took

    def take_late(self, published: Published) -> None:
        """Take what has come since everybody had it: nothing should have."""
        wanted = frozenset(self._work.receivers(published))
        while self._take(0.0, published, set(), wanted):
            pass

    def _take(self, patience_s: float, published: Published, owed: set[int], wanted: frozenset[int]) -> bool:
        ready, _, _ = select.select(self._subscribers, [], [], patience_s)
        for sock in ready:
            number = self._numbers[sock.fileno()]
            data = sock.recv(_CHUNK)
            if not data:
                raise TurnedDown("the broker closed a subscriber's connection")
            for first, body in self._inboxes[number].feed(data):
                if first & 0xF0 != PUBLISH or number not in wanted or _number(body) != published.number:
                    raise Garbled(f"a client of broker {number} got what it had not asked for")
                self.doubled += number not in owed
                owed.discard(number)
        return bool(ready)


def _number(body: bytes) -> int:
    """The number of a publication with QoS 0, from what follows its fixed header."""
    return int(json.loads(body[2 + int.from_bytes(body[:2], "big") :])["number"])


def measure_workload(network: Network, work: Work, count: int) -> Metrics:
    """So many publications, and what each of them took."""
    brokers = len(work.asked)
    receivers = messages = frames = useless = beside = 0
    took: list[float] = []
    far: list[int] = []
    until("nobody wants anything", _FORGOTTEN_S, lambda: not look(network).known)
    told = at_rest(network).all_bytes
    with ExitStack() as stack:
        there = Clients(network, work, stack)
        before = at_rest(network)
        told = before.all_bytes - told
        for published in work.events(count):
            took_s = there.publish(published)
            after = at_rest(network)
            there.take_late(published)
            wanted = {*work.receivers(published)} - {published.source}
            reached = after.reached(before, published.source)
            if wanted:
                took.append(took_s)
                far.append(max(reached.get(number, 0) for number in wanted))
            receivers += len(wanted)
            messages += sum(after.sent.values()) - sum(before.sent.values())
            frames += after.frame_bytes - before.frame_bytes
            useless += after.useless - before.useless
            beside += len(reached.keys() - wanted - {published.source})
            before = after
    copies = receivers + beside
    return {
        "receivers": receivers / count,
        "messages": messages / count,
        "per_receiver": messages / receivers if receivers else 0.0,
        "frame_bytes": frames / count,
        "hops": fmean(far) if far else 0.0,
        "useless": useless / (receivers + useless) if receivers + useless else 0.0,
        "false_positives": beside / copies if copies else 0.0,
        "last_p50_ms": 1e3 * median(took) if took else 0.0,
        "known_entries": before.known / brokers,
        "interest_bytes": told / brokers,
        "lost": there.lost,
        "doubled": there.doubled,
    }


def measure_strategies(brokers: int, effort: StrategiesEffort, run: Running, rows: list[Row]) -> None:
    """Both workloads by each strategy, on brokers that are started anew for each."""
    for strategy in STRATEGIES:
        own = [row for row in rows if row.peer == strategy]
        # a ring forgets what nobody wants any more by and by, so each workload begins with one that knows of nothing
        for together in [[row] for row in own] if strategy in RINGS else [own]:
            kind = JoinedTieline(f"{_overlay(strategy)}{EVENT_TYPES}")
            with run.failing(together), Network(kind, brokers, edges(brokers)) as network:
                for row in together:
                    name = row.group.partition("-")[2]
                    with run.failing([row]):
                        run.step(f"{row.title}, {name}: {strategy}")
                        row.repetitions.append(measure_workload(network, WORKS[name](brokers), effort.events[name]))


def _overlay(strategy: str) -> str:
    if strategy in RINGS:
        return f'[overlay]\nmode = "ring"\n[overlay.ring]\ndispatch = "{strategy}"\nstabilise_s = {PERIOD_S}\n'
    return f'[overlay]\nstrategy = "{strategy}"\n'
