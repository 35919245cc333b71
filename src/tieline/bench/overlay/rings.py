"""Rings of simulated brokers beside what brokers take that all know each other: the part ``ring`` of the benchmark.

The code is the shipped one, in virtual time: messages, bytes and delays are those of the simulated links, and do not
depend on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from statistics import fmean
from typing import Final

from tieline.bench.suite.declaration import Running
from tieline.bench.suite.results import Row
from tieline.overlay.ring.dispatch import DISPATCHES
from tieline.overlay.ring.settings import PAPER, RingSettings
from tieline.sim.ring import known
from tieline.sim.ring.churn import churn, kill, wrong_fingers
from tieline.sim.ring.founding import RingPlan, found
from tieline.sim.ring.measure import publish, state_of
from tieline.sim.ring.network import Direct, Links, Network, random_links
from tieline.sim.ring.workload import Workload, event, sparse

PAYLOAD: Final = 100
KNOWING: Final = {"path": known.path, "tree": known.tree, "flood": known.flood}
WAYS: Final = (*DISPATCHES, *KNOWING)
#: More brokers than this are not joined by a graph: the shortest ways between all of them take too much memory.
_MOST_JOINED: Final = 1_000
#: More brokers than this are not sent what visits everybody several times.
_MOST_VISITED: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RingEffort:
    """How much is done."""

    brokers: tuple[int, ...]
    events: int
    #: Brokers of the ring of which a fifth dies.
    dying: int
    #: Brokers of the ring of which one in a hundred is replaced each minute, and for how long.
    churned: int
    churn_s: float


FULL: Final = RingEffort(brokers=(100, 1_000, 10_000), events=20, dying=1_000, churned=300, churn_s=60.0)
QUICK: Final = RingEffort(brokers=(100, 1_000), events=5, dying=1_000, churned=100, churn_s=60.0)


def ways_of(brokers: int) -> Iterator[str]:
    """By which ways publications are sent among so many."""
    for way in WAYS:
        if brokers <= _MOST_VISITED or way in ("arcs", "partitioned", "circulation-literal", *KNOWING):
            yield way


def measure_ways(brokers: int, effort: RingEffort, run: Running, rows: list[Row]) -> None:
    """The same publications by every way."""
    work = sparse(brokers, Random(brokers))
    graph = random_links(brokers, Random(brokers))
    for row in rows:
        with run.failing([row]):
            run.step(f"{row.title}: {row.peer}")
            numbers = (
                _knowing(work, graph, row.peer, effort) if row.peer in KNOWING else _ring(work, graph, row.peer, effort)
            )
            row.repetitions.append(numbers)


def _ring(work: Workload, graph: Links, way: str, effort: RingEffort) -> dict[str, float]:
    brokers = len(work.subscriptions)
    network = Network(graph if brokers <= _MOST_JOINED else Direct(brokers, Random(brokers)))
    places = found(RingPlan(subscriptions=work.subscriptions, spaces=work.spaces, dispatch=way), network)
    spread = publish(places, network, work, Random(1), events=effort.events, payload=PAYLOAD)
    numbers = {
        "receivers": spread.receivers,
        "messages": spread.messages,
        "per_receiver": spread.messages_per_receiver,
        "event_bytes": spread.bytes,
        "missed": spread.missed,
        "false_positives": spread.false_positives,
        "hops": spread.hops,
        "last_ms": spread.last_ms,
        "table_bytes": state_of(places).table_bytes,
    }
    if brokers <= _MOST_JOINED:
        numbers["link_bytes"] = spread.link_bytes
    return numbers


def _knowing(work: Workload, graph: Links, way: str, effort: RingEffort) -> dict[str, float]:
    random = Random(1)
    crossings = []
    receivers = 0
    for number in range(effort.events):
        published = event(number, random, PAYLOAD)
        source = random.randrange(len(work.subscriptions))
        wanted = work.receivers(published, source)
        receivers += len(wanted)
        crossings.append(KNOWING[way](graph, source, wanted, len(published.payload) + len(published.topic) + 30))
        graph.forget()
    entries = sum(len(subscriptions) * 60 for subscriptions in work.subscriptions)
    return {
        "receivers": receivers / effort.events,
        "messages": fmean(one.messages for one in crossings),
        "per_receiver": sum(one.messages for one in crossings) / receivers,
        "event_bytes": fmean(one.bytes for one in crossings),
        "link_bytes": fmean(one.bytes for one in crossings),
        "missed": 0.0,
        "hops": fmean(one.links for one in crossings),
        "last_ms": 1e3 * fmean(one.last_s for one in crossings),
        "table_bytes": entries,
    }


def measure_deaths(effort: RingEffort, run: Running, rows: list[Row]) -> None:
    """A fifth of all brokers dies at once; publications before anybody has looked around, and after repair."""
    (row,) = rows
    with run.failing(rows):
        run.step(f"{row.title}: QoS 0 and QoS 1")
        numbers = {}
        for name, is_assured in (("", False), ("_assured", True)):
            work = sparse(effort.dying, Random(7))
            network = Network(Direct(effort.dying, Random(7)))
            plan = RingPlan(
                subscriptions=work.subscriptions, spaces=work.spaces, settings=RingSettings(stabilise_s=12.0)
            )
            places = found(plan, network, is_alive=True)
            kill(places, 0.2, Random(8))
            settle_s = 60.0 if is_assured else 1.0
            stale = publish(
                places, network, work, Random(9), events=5, payload=PAYLOAD, is_assured=is_assured, settle_s=settle_s
            )
            numbers[f"missed_stale{name}"] = stale.missed
            if not is_assured:
                network.clock.run_for(120.0)
                healed = publish(places, network, work, Random(10), events=5, payload=PAYLOAD, settle_s=1.0)
                numbers["missed_healed"] = healed.missed
                numbers["wrong_fingers"] = wrong_fingers(places)
        row.repetitions.append(numbers)


def measure_churn(effort: RingEffort, run: Running, rows: list[Row]) -> None:
    """One broker in a hundred is replaced each minute; and what looking around takes, by its period."""
    (row,) = rows
    with run.failing(rows):
        run.step(f"{row.title}: newcomers")
        work = sparse(effort.churned, Random(3))
        network = Network(Direct(2 * effort.churned, Random(3)))
        plan = RingPlan(subscriptions=work.subscriptions, spaces=work.spaces)
        places = found(plan, network, is_alive=True)
        seen = churn(plan, places, network, work, Random(4), per_minute=0.01, seconds=effort.churn_s, quiet_s=30.0)
        row.repetitions.append(
            {
                "worst_fingers": max(seen.wrong),
                "wrong_fingers": seen.wrong[-1],
                "upkeep_kbit_s": seen.upkeep_bits / 1e3,
                "paper_upkeep_kbit_s": _paper_upkeep(),
                "joined": seen.joined / seen.asked if seen.asked else 1.0,
            }
        )


def _paper_upkeep() -> float:
    """What a broker of twenty sends that stabilises every 60 ms, in kbit/s."""
    work = sparse(20, Random(5))
    network = Network(Direct(20, Random(5)))
    found(RingPlan(subscriptions=work.subscriptions, spaces=work.spaces, settings=PAPER), network, is_alive=True)
    network.clock.run_for(3.0)
    return 8 * network.upkeep.bytes / 3.0 / 20 / 1e3
