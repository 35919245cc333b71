"""The parts of the priority benchmark as cases, the two brokers side by side or taking turns within each.

The thin link and the slow reader need hardly any processor time, so they run together; everything else runs alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tieline.bench.brokers import BASELINE, SUBJECT, known_peers
from tieline.bench.load.job import Generator
from tieline.bench.peer import executable
from tieline.bench.priority import busy, cost, onlookers, slow, thin
from tieline.bench.suite.declaration import Case, Running, Schedule
from tieline.bench.suite.results import Row, rows_of
from tieline.bench.timed import link

PARTS: Final = {
    "thin": "a subscriber behind 128 kbit/s: urgent, bulk and low flows (needs root)",
    "busy": "50 publishers at full speed beside an urgent one",
    "slow": "a subscriber that reads 1 kB/s, and what others notice of it",
    "onlookers": "the same with twenty live pages open, and with none",
    "cost": "what classes cost while nothing is congested",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityEffort:
    """How much is done."""

    thin_s: float = 45.0
    slow_s: float = 30.0
    busy_s: float = 5.0
    busy_repetitions: int = 3
    onlooker_s: float = 5.0
    onlooker_repetitions: int = 5
    stranger_s: float = 0.6
    stranger_repetitions: int = 3
    cost_s: float = 0.5
    cost_repetitions: int = 7


FULL: Final = PriorityEffort()
QUICK: Final = PriorityEffort(
    thin_s=14.0,
    slow_s=16.0,
    busy_s=1.5,
    onlooker_s=1.5,
    onlooker_repetitions=2,
    stranger_s=0.2,
    cost_s=0.2,
    cost_repetitions=3,
)
_BUDGET_S: Final = 600.0


def make_plan(parts: Sequence[str] = tuple(PARTS), *, quick: bool) -> Schedule:
    """What is measured in these parts, with those of the two brokers that are installed."""
    effort = QUICK if quick else FULL
    known = known_peers()
    found = {name: known[name].version() for name in (SUBJECT, BASELINE)}
    versions = {name: version for name, version in found.items() if version is not None}
    peers = list(versions)
    watch = slow.Watch(peers, effort.slow_s)
    pair = cost.Pair()
    cases: list[Case] = []
    if "thin" in parts:
        cases.append(_thin(effort, peers, watch if "slow" in parts else None))
    if "slow" in parts:
        left_s = effort.slow_s - (effort.thin_s if cases and not cases[0].obstacle else 0.0)
        rows = rows_of("slow", "reads 1 kB/s of 4", "slow", peers)
        cases.append(Case(rows=rows, measure=partial(_slow, watch), seconds=max(0.0, left_s) + 2.0))
    if "busy" in parts:
        cases.append(_busy(effort, peers))
    if "onlookers" in parts:
        cases.append(_onlookers(effort))
    if "slow" in parts:
        cases.append(_strangers(effort))
    if "cost" in parts:
        cases += _cost(effort, pair)
    return Schedule(
        cases=cases,
        quick=quick,
        versions=versions,
        absent={name: known[name].install for name, version in found.items() if version is None},
        budget_s=_BUDGET_S,
        resources=[watch, pair],
    )


def _thin(effort: PriorityEffort, peers: list[str], watch: slow.Watch | None) -> Case:
    lanes = [case for case in thin.CASES if case.peer in peers]
    rows = [row for case in lanes for row in rows_of(case.name, case.title, "thin", [case.peer])]
    if executable("openssl") is None:
        for case, row in zip(lanes, rows, strict=True):
            if case.is_tls:
                row.end("not run", "the openssl command is missing")
    return Case(
        rows=rows,
        measure=partial(_measure_thin, effort.thin_s, watch),
        seconds=effort.thin_s + 10.0,
        obstacle=link.obstacle() or "",
    )


def _measure_thin(seconds: float, watch: slow.Watch | None, run: Running, rows: list[Row]) -> None:
    if watch is not None:
        watch.begin()
    rows = [row for row in rows if row.status == "measured"]
    named = {(case.name, case.peer): case for case in thin.CASES}
    lanes = [named[row.workload, row.peer] for row in rows]
    run.step(f"thin link: {len(lanes)} links at once for {seconds:.0f} s")
    with run.failing(rows):
        for row, result in zip(rows, thin.run(lanes, seconds=seconds), strict=True):
            row.repetitions.append(result.metrics)
            run.results.timelines[f"{row.workload} {row.peer}"] = result.urgent


def _slow(watch: slow.Watch, run: Running, rows: list[Row]) -> None:
    run.step("slow reader")
    found = watch.result()
    for row in rows:
        row.repetitions.append(found[row.peer])


def _busy(effort: PriorityEffort, peers: list[str]) -> Case:
    steps = effort.busy_repetitions * len(peers)
    return Case(
        rows=rows_of("busy", "50 publishers", "busy", peers),
        measure=partial(_measure_busy, effort),
        steps=steps,
        seconds=steps * (effort.busy_s + 1.5),
    )


def _measure_busy(effort: PriorityEffort, run: Running, rows: list[Row]) -> None:
    for repetition in range(effort.busy_repetitions):
        for row in rows:
            if row.status == "measured":
                run.step(f"busy broker: {row.peer} ({repetition + 1})")
                with run.failing([row]):
                    row.repetitions.append(busy.measure(row.peer, seconds=effort.busy_s))


def _onlookers(effort: PriorityEffort) -> Case:
    steps = 2 * effort.onlooker_repetitions
    return Case(
        rows=rows_of("onlookers", "50 publishers", "onlookers", [onlookers.ALONE, onlookers.WATCHED]),
        measure=partial(_measure_onlookers, effort),
        steps=steps,
        seconds=steps * (effort.onlooker_s + 3.0),
    )


def _measure_onlookers(effort: PriorityEffort, run: Running, rows: list[Row]) -> None:
    alone, watched = rows
    for repetition in range(effort.onlooker_repetitions):
        for row in rows if repetition % 2 else reversed(rows):
            run.step(f"onlookers: {row.peer} ({repetition + 1})")
            pages = onlookers.PAGES if row is watched else 0
            row.repetitions.append(onlookers.measure(seconds=effort.onlooker_s, pages=pages))
        before, after = alone.repetitions[-1], watched.repetitions[-1]
        for name, metric in (("p50_ratio", "urgent_p50_ms"), ("p99_ratio", "urgent_p99_ms")):
            after[name] = after[metric] / before[metric]
        after["rate_ratio"] = after["flood_rate"] / before["flood_rate"]


def _strangers(effort: PriorityEffort) -> Case:
    steps = 2 * effort.stranger_repetitions
    return Case(
        rows=rows_of("strangers", "1:1 and 50 paced clients", "strangers", [slow.WITH_PROMPT, slow.WITH_SLOW]),
        measure=partial(_measure_strangers, effort),
        steps=steps,
        seconds=steps * (2 * effort.stranger_s + 2.5),
    )


def _measure_strangers(effort: PriorityEffort, run: Running, rows: list[Row]) -> None:
    prompt, slowed = rows
    with slow.broker(SUBJECT) as at, Generator() as generator:
        for repetition in range(effort.stranger_repetitions):
            for row in rows:
                run.step(f"others, {row.peer} ({repetition + 1})")
                is_slow = row is slowed
                row.repetitions.append(slow.strangers(at, generator, seconds=effort.stranger_s, is_slow_there=is_slow))
            before, after = prompt.repetitions[-1], slowed.repetitions[-1]
            for name, metric in (("rate_ratio", "rate"), ("p50_ratio", "p50_us"), ("p99_ratio", "p99_us")):
                after[name] = after[metric] / before[metric]


def _cost(effort: PriorityEffort, pair: cost.Pair) -> Iterator[Case]:
    for case in cost.CASES:
        yield Case(
            rows=rows_of(case.name, case.title, "cost", [cost.LACKING, cost.HAVING]),
            measure=partial(_measure_cost, case, effort, pair),
            seconds=2.0 + 2 * effort.cost_repetitions * (effort.cost_s + 0.5),
        )


def _measure_cost(case: cost.CostCase, effort: PriorityEffort, pair: cost.Pair, run: Running, rows: list[Row]) -> None:
    run.step(f"cost: {case.title}")
    found = pair.measure(case, seconds=effort.cost_s, repetitions=effort.cost_repetitions)
    for row, repetitions in zip(rows, found, strict=True):
        row.repetitions += repetitions
    for without, having in zip(*found, strict=True):
        having["rate_ratio"] = having["rate"] / without["rate"]
        having["cpu_ratio"] = having["cpu_us_delivered"] / without["cpu_us_delivered"]
