"""The parts of the benchmark of joined brokers as cases: which rows they fill, and about how long they take."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal

from tieline.bench.brokers import BASELINE, SUBJECT, known_peers
from tieline.bench.machine import disk_of
from tieline.bench.overlay import parts, regional, rings, strategies
from tieline.bench.overlay.parts import FULL, QUICK, OverlayEffort
from tieline.bench.overlay.strategies_work import WORKS
from tieline.bench.suite.declaration import Case, Schedule
from tieline.bench.suite.results import rows_of
from tieline.bench.timed.link import obstacle

#: The parts of the benchmark, in the order in which they are measured.
PARTS: Final = {
    "hop": "two brokers beside one, a bridge of mosquitto's and a cluster of NATS: throughput, CPU, latency",
    "wire": "bytes that a message takes between two brokers",
    "growth": "how long a SUBACK takes when other brokers have to know",
    "memory": "many brokers, each knowing what all want",
    "thin": "urgent messages over three thin hops that bulk fills; needs root, for network namespaces",
    "death": "a broker on the way is killed: how long until messages cross again",
    "strategies": "10 and 20 running brokers by each strategy, and rings: messages, bytes, links, in vain, entries",
    "ring": "rings of simulated brokers that cannot all know each other, beside those that do",
    "regions": "regions of simulated brokers behind gateways",
    "plan": "twelve brokers on thin links, by the shortest ways and by a plan; needs root, for network namespaces",
    "replan": "ten plans in turns under load; needs root, for network namespaces",
    "cut": "a link that was planned dies, on this machine and between namespaces",
}
#: What a relay on each link adds in either direction, where there is one.
DELAY_S: Final = 0.02
PAIR: Final = (SUBJECT, BASELINE)
ALL: Final = (*PAIR, "nats")
#: How a planned link dies on this machine.
CUTS: Final[Mapping[str, tuple[str, Literal["reset", "silent"]]]] = {
    "cut-reset": ("reset, on this machine", "reset"),
    "cut-silent": ("silent, on this machine", "silent"),
}
#: What is said of the links, in words and in settings, and how long each takes in either direction.
THIN: Final = {
    "thin-measured": ("found out by the broker", "", 0.0),
    "thin-capacity": ("with their capacity in the settings", "capacity = 124_000", 0.0),
    "thin-delayed": ("20 ms each way, by a relay on each", "", DELAY_S),
}


def make_plan(chosen: Collection[str], *, quick: bool, disk: Path) -> Schedule:
    """The chosen parts, in order."""
    effort = QUICK if quick else FULL
    makers = {
        "hop": _hop, "wire": _wire, "growth": _grow, "memory": _memory, "thin": _thin, "death": _death, "ring": _rings,
        "regions": _regions, "strategies": _strategies,
        "plan": _plan, "replan": _replan, "cut": _cut,
    }  # fmt: skip
    known = known_peers()
    return Schedule(
        cases=[case for part in PARTS if part in chosen for case in makers[part](effort, disk)],
        quick=quick,
        versions={name: known[name].version() or "unknown" for name in ALL},
        absent={name: known[name].install for name in ALL if known[name].version() is None},
        budget_s=effort.budget_s,
    )


def _hop(effort: OverlayEffort, disk: Path) -> Iterator[Case]:
    kinds = (
        ("hop-qos0", "QoS 0, 64 B", parts.throughput(0), 0, None, ALL),
        ("hop-qos1", "QoS 1, 64 B", parts.throughput(1), 1, None, ALL),
        (
            "hop-durable",
            "QoS 1, 64 B, sessions stay, on disk",
            parts.throughput(1, keeps_sessions=True),
            1,
            disk,
            PAIR,
        ),
        ("hop-latency", "one at a time", parts.latency, 0, None, ALL),
    )
    for name, title, job, qos, place, peers in kinds:
        volatile = place is not None and disk_of(place).is_volatile
        yield Case(
            rows=rows_of(name, title, "hop", peers),
            measure=partial(parts.measure_hop, job, qos, effort, place),
            steps=len(peers) * effort.repetitions,
            seconds=len(peers) * effort.repetitions * (2 * effort.seconds + 4.0),
            obstacle=f"{disk} keeps nothing: give --disk a disk" if volatile else "",
        )


def _wire(effort: OverlayEffort, _disk: Path) -> Iterator[Case]:
    rows = rows_of("wire", "64 B of payload", "wire", ALL)
    yield Case(rows=rows, measure=partial(parts.measure_wire, effort), steps=len(rows), seconds=6.0 * len(rows))


def _grow(effort: OverlayEffort, _disk: Path) -> Iterator[Case]:
    rows = [rows_of(f"growth-{count}", f"{count} brokers", "growth", [SUBJECT])[0] for count in effort.brokers]
    seconds = sum(effort.brokers) * 1.0 + effort.grown * len(rows) * 0.1
    yield Case(rows=rows, measure=partial(parts.measure_growth, effort), steps=len(rows), seconds=seconds)


def _memory(effort: OverlayEffort, _disk: Path) -> Iterator[Case]:
    brokers = max(effort.brokers)
    rows = [
        rows_of(f"memory-{each}", f"{brokers} brokers, {each:,} subscriptions each", "memory", [SUBJECT])[0]
        for each in effort.subscriptions
    ]
    measure = partial(parts.measure_memory, brokers, effort)
    yield Case(rows=rows, measure=measure, steps=len(rows), seconds=len(rows) * 2.0 * brokers)


def _thin(effort: OverlayEffort, _disk: Path) -> Iterator[Case]:
    for name, (title, link, delay_s) in THIN.items():
        yield Case(
            rows=rows_of(name, title, "thin", [SUBJECT]),
            measure=partial(parts.measure_thin, link, delay_s, effort),
            steps=1,
            seconds=effort.thin_seconds + 8.0,
            obstacle=obstacle() or "",
        )
    yield Case(
        rows=rows_of("thin-cut", "the middle one is cut one way, then the other", "thin-cut", [SUBJECT]),
        measure=partial(parts.measure_thin_cut, DELAY_S),
        steps=1,
        seconds=60.0,
        obstacle=obstacle() or "",
    )


def _plan(effort: OverlayEffort, _disk: Path) -> Iterator[Case]:
    titles = {"plan-path": "by the shortest ways", "plan-applied": "by the plan"}
    yield Case(
        rows=[rows_of(name, title, "plan", [SUBJECT])[0] for name, title in titles.items()],
        measure=partial(parts.measure_plan, effort),
        steps=1,
        seconds=2 * effort.plan_seconds + 90.0,
        obstacle=obstacle() or "",
    )


def _replan(effort: OverlayEffort, _disk: Path) -> Iterator[Case]:
    yield Case(
        rows=rows_of("replan-ten", "two plans in turns", "replan", [SUBJECT]),
        measure=partial(parts.measure_replans, effort),
        steps=1,
        seconds=150.0,
        obstacle=obstacle() or "",
    )


def _cut(effort: OverlayEffort, _disk: Path) -> Iterator[Case]:
    yield Case(
        rows=rows_of("cut-thin", "silent, 128 kbit/s, twelve brokers", "cut", [SUBJECT]),
        measure=parts.measure_silent_link,
        steps=1,
        seconds=100.0,
        obstacle=obstacle() or "",
    )
    for name, (title, how) in CUTS.items():
        yield Case(
            rows=rows_of(name, title, "cut", [SUBJECT]),
            measure=partial(parts.measure_lan_link, how, effort),
            steps=1,
            seconds=25.0 * effort.deaths,
        )


def _death(effort: OverlayEffort, disk: Path) -> Iterator[Case]:
    yield Case(
        rows=rows_of("death-line", "the middle of a line of three, until it is back", "death", [SUBJECT]),
        measure=partial(parts.measure_line, effort, disk),
        steps=effort.deaths,
        seconds=8.0 * effort.deaths,
    )
    yield Case(
        rows=rows_of("death-cycle", "one of a cycle of five on the shorter way, which stays dead", "death", [SUBJECT]),
        measure=partial(parts.measure_cycle, effort),
        steps=effort.deaths,
        seconds=8.0 * effort.deaths,
    )
    yield Case(
        rows=rows_of("death-silent", "the same, silent and with its connections", "death", [SUBJECT]),
        measure=partial(parts.measure_cycle, effort, is_silent=True),
        steps=effort.deaths,
        seconds=12.0 * effort.deaths,
    )


def _strategies(effort: OverlayEffort, _disk: Path) -> Iterator[Case]:
    work = effort.strategies
    for brokers in work.brokers:
        rows = [
            row
            for name in WORKS
            for row in rows_of(
                f"strategies-{name}-{brokers}", f"{brokers} brokers", f"strategies-{name}", strategies.STRATEGIES
            )
        ]
        events = sum(work.events.values())
        yield Case(
            rows=rows,
            measure=partial(strategies.measure_strategies, brokers, work),
            steps=len(rows),
            seconds=len(strategies.STRATEGIES) * brokers * (1.0 + events * 0.01),
        )


def _rings(effort: OverlayEffort, _disk: Path) -> Iterator[Case]:
    work = effort.rings
    for brokers in work.brokers:
        ways = list(rings.ways_of(brokers))
        yield Case(
            rows=rows_of(f"ring-{brokers}", f"{brokers:,} brokers", "ring", ways),
            measure=partial(rings.measure_ways, brokers, work),
            steps=len(ways),
            seconds=brokers * 0.04,
        )
    yield Case(
        rows=rows_of("ring-deaths", f"{work.dying:,} brokers", "ring-deaths", ["arcs"]),
        measure=partial(rings.measure_deaths, work),
        seconds=0.06 * work.dying,
    )
    yield Case(
        rows=rows_of("ring-churn", f"{work.churned:,} brokers", "ring-churn", ["arcs"]),
        measure=partial(rings.measure_churn, work),
        seconds=0.2 * work.churned,
    )


def _regions(effort: OverlayEffort, _disk: Path) -> Iterator[Case]:
    work = effort.regions
    for regions in work.regions:
        brokers = regional.brokers_of(regions)
        yield Case(
            rows=rows_of(f"regions-{brokers}", f"{brokers:,} brokers in {regions} regions", "regions", [SUBJECT]),
            measure=partial(regional.measure_regions, regions, work),
            seconds=0.2 * brokers,
        )
