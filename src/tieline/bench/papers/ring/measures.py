"""What is measured for the ring paper: its workload by every way of dispatching, ours at scale, and one node alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

from tieline.bench.papers.frame.declaration import Request
from tieline.bench.papers.frame.table import Table
from tieline.match.index import AdaptiveIndex
from tieline.overlay.ring.events import RingSubscription
from tieline.overlay.ring.merging import Digests, Merging, Rectangles
from tieline.overlay.ring.settings import PAPER, RingSettings
from tieline.sim.ring.churn import kill
from tieline.sim.ring.founding import RingPlan, found
from tieline.sim.ring.known import messages_by_topics
from tieline.sim.ring.measure import Spread, publish, state_of
from tieline.sim.ring.network import Direct, Network, PlacedNode
from tieline.sim.ring.workload import Workload, constrained, event, paper, spaces, sparse

#: The paper's two routings, with what each of them stands for here.
CIRCULATION: Final = "circulation"
LITERAL: Final = "circulation-literal"
ARCS: Final = "arcs"
DUPLICATING: Final = "duplicating"
PARTITIONED: Final = "partitioned"
WAYS: Final = (CIRCULATION, LITERAL, ARCS, DUPLICATING, PARTITIONED)
#: Seconds that a node takes for a publication: the same for everybody, and what the paper measured for matching.
EQUAL_S: Final = 0.013
PAPER_MATCHING_S: Final = {CIRCULATION: 0.013, LITERAL: 0.013, ARCS: 0.013, DUPLICATING: 0.029, PARTITIONED: 0.029}
TIMES: Final = ("equal", "the paper's")
NODES: Final = (5, 10, 15, 20)
PAYLOADS: Final = (50, 100, 500)
#: The order of the grid of our sums.
OURS_ORDER: Final = 6
#: Bytes per second of every way: a link of Table I.
RATE: Final = 100_000 / 8
#: Seconds between two events, as in the paper; with thousands of brokers copies are longer on their way.
EVERY_S: Final = 10.0
_SCALE_EVERY_S: Final = 20.0
#: Publications right after brokers have died: with a thousand brokers one delivery is a tenth of a percent of all.  A
#: copy that meets one dead broker after the other takes a round trip for each, and so may be seconds on its way.
_MOURNED: Final = 25
_MOURNING_S: Final = 4.0
#: Nobody looks around before the last of them, and so long until all who are left have done so several times.
_STABILISE_S: Final = 120.0
_REPAIR_S: Final = 10 * _STABILISE_S
#: Brokers beyond which ways are left out by which every event visits every broker.
_ALL_VISITED: Final = 1_000


def _merging(dispatch: str) -> Callable[..., Merging]:
    return Digests if dispatch == ARCS else Rectangles


def _ring(work: Workload, dispatch: str, seed: int, *, service_s: float = 0.0, rate: float = 0.0,
          merging: Callable[..., Merging] | None = None) -> tuple[Network, list[PlacedNode]]:  # fmt: skip
    network = Network(Direct(len(work.subscriptions), Random(seed)), service_s=service_s, rate=rate)
    plan = RingPlan(
        subscriptions=work.subscriptions, spaces=work.spaces, dispatch=dispatch, merging=merging or _merging(dispatch)
    )
    return network, found(plan, network)


def paper_workload(request: Request) -> list[Table]:
    """The paper's nodes and subscriptions by every way of dispatching, with equal processing and with its own times."""
    rows = []
    events = request.chosen("events", quick=15, full=90)
    request.state("an event every", EVERY_S, "s", origin="paper")
    seeds = request.seeds(quick=2, full=5)
    for nodes in NODES:
        request.step(f"the paper's workload, {nodes} nodes")
        for seed in seeds:
            work = paper(nodes, Random(seed))
            for dispatch in WAYS:
                # our sums need not be as coarse as the paper's third order
                asked = replace(work, spaces=spaces(OURS_ORDER)) if dispatch == ARCS else work
                for payload in PAYLOADS:
                    for times, service_s in zip(TIMES, (EQUAL_S, PAPER_MATCHING_S[dispatch]), strict=True):
                        network, places = _ring(asked, dispatch, seed, service_s=service_s, rate=RATE)
                        spread = publish(places, network, work, Random(seed), events=events, payload=payload,
                                         settle_s=EVERY_S)  # fmt: skip
                        rows.append((dispatch, nodes, payload, times, seed, *_numbers(spread)))
    columns = {"dispatch": "way of dispatching", "nodes": "nodes", "payload": "payload, B",
               "times": "processing times", "seed": "seed", **_COLUMNS}  # fmt: skip
    return [Table("delivery", columns, rows)]


_COLUMNS: Final = {
    "receivers": "receivers of an event",
    "missed": "share of deliveries that were missed",
    "messages": "messages for an event",
    "bytes": "bytes for an event, with 40 B of TCP and IP each",
    "false": "share of visited nodes that wanted nothing",
    "visits": "copies that a node got for each event",
    "last_ms": "until the last receiver had it, ms",
    "hops": "hops to the last receiver",
}


def _numbers(spread: Spread) -> tuple[float, ...]:
    return (
        round(spread.receivers, 3),
        round(spread.missed, 5),
        round(spread.messages, 3),
        round(spread.bytes, 1),
        round(spread.false_positives, 4),
        round(spread.visits, 4),
        round(spread.last_ms, 2),
        round(spread.hops, 2),
    )


def _unlimited(request: Request) -> None:
    """Say that messages, hops and bytes are counted and time is that of the ways alone."""
    request.state("rate of a way", "unlimited")
    request.state("processing time of a node", "none")


def constraints(request: Request) -> list[Table]:
    """Messages for an event with one to three constraints: topics, and one key of the curve."""
    rows: list[tuple[str | float, ...]] = []
    events = request.chosen("events", quick=15, full=60)
    _unlimited(request)
    seeds = request.seeds(quick=2, full=5)
    for nodes in NODES:
        request.step(f"constraints, {nodes} nodes")
        for seed in seeds:
            random = Random(seed)
            for dimensions in (1, 2, 3):
                work = constrained(nodes, random, dimensions)
                network, places = _ring(work, ARCS, seed)
                spread = publish(places, network, work, Random(seed), events=events, settle_s=5.0)
                # one key says all constraints, so the figure shows the ring once
                rows.append(("content", "content", int(dimensions == 2), nodes, dimensions, seed, spread.messages))
            work = constrained(nodes, random, 3)
            published = [event(number, random, dimensions=3) for number in range(events)]
            for count in (0, 1, 2):
                total = sum(
                    messages_by_topics(work.subscriptions, one, count, random.randrange(nodes)) for one in published
                )
                label = f"topics, {count} constraint{'' if count == 1 else 's'}"
                rows.append(("topics", label, 1, nodes, count, seed, total / events))
    columns = {"approach": "approach", "label": "approach with its constraints", "drawn": "whether it is in the figure",
               "nodes": "nodes", "constraints": "constraints", "seed": "seed",
               "messages": "messages for an event"}  # fmt: skip
    return [Table("constraints", columns, rows)]


def at_scale(request: Request) -> list[Table]:
    """Brokers that want 4.5 % of all events, as many of them as the machine allows."""
    rows = []
    _unlimited(request)
    request.state("an event every", _SCALE_EVERY_S, "s")
    request.state("what a broker says that it wants", "a digest under a budget of bytes", note="by every way")
    events = request.chosen("events", quick=5, full=20)
    sizes = request.chosen("brokers", quick=(20, 100, 1_000), full=(20, 100, 300, 1_000),
                           long=(20, 100, 300, 1_000, 10_000))  # fmt: skip
    seeds = request.seeds(quick=1, full=3, note="of ten thousand brokers the first alone")
    for nodes in sizes:
        for seed in seeds if nodes <= _ALL_VISITED else seeds[:1]:
            work = sparse(nodes, Random(seed))
            for dispatch in WAYS:
                if nodes > _ALL_VISITED and dispatch in (CIRCULATION, DUPLICATING):
                    continue
                request.step(f"{nodes:,} brokers, {dispatch}")
                network, places = _ring(work, dispatch, seed, merging=Digests)
                spread = publish(places, network, work, Random(seed), events=events, settle_s=_SCALE_EVERY_S)
                state = state_of(places)
                rows.append((dispatch, nodes, seed, *_numbers(spread), round(spread.messages_per_receiver, 3),
                             round(state.fingers, 2), round(state.table_bytes)))  # fmt: skip
    columns = {"dispatch": "way of dispatching", "nodes": "brokers", "seed": "seed", **_COLUMNS,
               "per_receiver": "messages for each receiver", "fingers": "fingers of a broker",
               "table_bytes": "what a broker knows of others, B"}  # fmt: skip
    return [Table("scale", columns, rows)]


def deaths(request: Request) -> list[Table]:
    """Publications right after a part of all brokers has died, before anybody has looked around, and once they have."""
    rows = []
    _unlimited(request)
    nodes = request.chosen("brokers", quick=150, full=1_000)
    settings = RingSettings(stabilise_s=_STABILISE_S)
    request.state("stabilising", settings.stabilise_s, "s", note="so that publications come before any repair")
    request.state("repaired after", _REPAIR_S, "s")
    request.state("events", _MOURNED, note="before repair, and after it")
    request.state("an event every", _MOURNING_S, "s")
    seeds = request.seeds(quick=1, full=2, note="brokers that die")
    for share in (0.05, 0.1, 0.2):
        for seed in seeds:
            request.step(f"{share:.0%} of {nodes:,} brokers die")
            work = sparse(nodes, Random(seed))
            network = Network(Direct(nodes, Random(seed)))
            plan = RingPlan(subscriptions=work.subscriptions, spaces=work.spaces, settings=settings)
            places = found(plan, network, is_alive=True)
            kill(places, share, Random(seed + 1))
            stale = publish(places, network, work, Random(seed + 2), events=_MOURNED, settle_s=_MOURNING_S)
            network.clock.run_for(_REPAIR_S)
            healed = publish(places, network, work, Random(seed + 3), events=_MOURNED, settle_s=_MOURNING_S)
            rows.append((nodes, share, seed, round(stale.missed, 6), round(healed.missed, 6)))
    columns = {"nodes": "brokers", "dead": "share of them that died", "seed": "seed",
               "stale": "deliveries missed before repair", "healed": "deliveries missed after it"}  # fmt: skip
    return [Table("deaths", columns, rows)]


def upkeep(request: Request) -> list[Table]:
    """What stabilising costs a broker, by its period."""
    rows = []
    seeds = request.seeds(quick=1, full=3, note="upkeep, of 20 brokers")
    for settings in (PAPER, RingSettings(stabilise_s=1.0), RingSettings(), RingSettings(stabilise_s=5.0)):
        request.step(f"stabilising every {settings.stabilise_s:g} s")
        for seed in seeds:
            work = paper(20, Random(seed))
            network = Network(Direct(20, Random(seed)))
            found(
                RingPlan(subscriptions=work.subscriptions, spaces=work.spaces, settings=settings),
                network,
                is_alive=True,
            )
            seconds = 20 * settings.stabilise_s
            network.clock.run_for(seconds)
            rows.append((settings.stabilise_s, seed, round(8 * network.upkeep.bytes / seconds / 20 / 1e3, 3)))
    columns = {"period_s": "period, s", "seed": "seed", "kbit_s": "upkeep of a broker, kbit/s"}
    return [Table("upkeep", columns, rows)]


def matching(request: Request) -> list[Table]:
    """Matching one event against up to 3,000 subscriptions, through the index and one by one."""
    rows = []
    published = request.chosen("events", quick=100, full=400, note="matching")
    seeds = request.seeds(quick=2, full=5, note="matching")
    for count in (500, 1_000, 2_000, 3_000):
        request.step(f"{count:,} subscriptions at one node")
        for seed in seeds:
            random = Random(seed)
            subscriptions = paper(1, random, subscriptions=count).subscriptions[0]
            events = [event(number, random) for number in range(published)]
            index = AdaptiveIndex(2)
            for number, subscription in enumerate(subscriptions):
                assert subscription.box is not None
                index.add(number, subscription.box)
            index.match(events[0].point)
            for way, match in (("index", index.match), ("one by one", partial(_one_by_one, subscriptions))):
                began = time.process_time()
                for one in events:
                    match(one.point)
                rows.append((way, count, seed, 1e6 * (time.process_time() - began) / len(events)))
    columns = {"way": "way", "subscriptions": "subscriptions", "seed": "seed", "us": "CPU for an event, µs"}
    return [Table("node", columns, rows)]


def _one_by_one(subscriptions: Sequence[RingSubscription], point: Sequence[float]) -> list[int]:
    return [number for number, one in enumerate(subscriptions) if one.box is not None and one.box.contains(point)]
