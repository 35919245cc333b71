"""The planner's benchmark: what its numbers mean, the goals that they are held against, and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import Final

from tieline.bench.metrics import Metric
from tieline.bench.plan.bounds import BOUNDS
from tieline.bench.plan.effort import (
    GAP_PERCENT,
    HUGE,
    LARGE,
    LOOSE,
    MIDDLE,
    NAIVE,
    OURS,
    SMALL,
    TALKATIVE,
    TIGHTNESS,
    WIDE,
    Mesh,
    distributed_name,
    found_name,
    replan_name,
    size_name,
)
from tieline.bench.plan.picture import PICTURE
from tieline.bench.suite.declaration import Goal, GroupTable, Suite, value_goal
from tieline.bench.suite.results import Results
from tieline.plan.proof import Refuted

METRICS: Final = {
    "cpu_s": Metric("CPU time of the process until the plan was returned, its proof included", "s", shows_worst=True),
    "wall_s": Metric("the same by the clock", "s"),
    "found_s": Metric("CPU time until the best plan was there", "s", shows_worst=True),
    "is_found": Metric("instances whose best known plan was found", "yes", more_is_better=True),
    "best_wall_s": Metric(
        "time by the clock until the best known plan was there, or of the run if it never was", "s", shows_worst=True
    ),
    "soon": Metric("objective after a second by the clock, above the best known one", "share", shows_worst=True),
    "is_proven": Metric("plans proven optimal", "yes", more_is_better=True),
    "gap": Metric("distance of objective and bound, as a share of the objective", "share", shows_worst=True),
    "unmet": Metric("requests that stay unmet", ""),
    "objective": Metric("cost of the links and price of the unmet requests", ""),
    "first_s": Metric("CPU time until the first plan that keeps every limit", "s"),
    "first_wall_s": Metric("the same by the clock", "s"),
    "done_s": Metric("CPU time until the gap was at most 1 %", "s"),
    "warm_s": Metric("time by the clock of a planner that stands by to plan again, without the proof", "s"),
    "read_s": Metric("the same with everything read from the instance and the old plan first", "s"),
    "proven_s": Metric("time by the clock of a planner that stands by until its new plan is proven", "s"),
    "cold_s": Metric("time by the clock of a cold start until its gap was at most 1 %, without the proof", "s"),
    "as_good_s": Metric("time by the clock of a cold start until its plan was as good as the re-planned one", "s"),
    "moved": Metric("flows that re-planning moved or ended", ""),
    "moved_cold": Metric("flows that the cold start moved or ended", ""),
    "flows": Metric("flows before the failure", ""),
    "lost": Metric("requests that became unmet", ""),
    "instances": Metric("instances with a known optimum", ""),
    "above": Metric("bounds above the optimum", ""),
    "closeness": Metric("bound : optimum, mean over those that are bounds", "share", more_is_better=True),
    "messages": Metric("messages between brokers until nobody had anything to say", ""),
    "messages_request": Metric("the same for each request", ""),
    "more_unmet": Metric("requests that the central plan serves and this one does not", ""),
    "behind": Metric("cost per served request above the central plan's", "share"),
}

TABLES: Final = {
    "sizes": GroupTable(
        title="The paper's sizes: CPU seconds, median and worst over the seeds",
        columns={
            "cpu_s": "until the end", "found_s": "best plan found", "is_proven": "proven", "gap": "gap",
            "unmet": "unmet",
        },
    ),
    "found": GroupTable(
        title="Other instances of the two largest sizes: when the best plan that is known was there, by the clock",
        columns={
            "best_wall_s": "best plan found", "is_found": "found", "soon": "after 1 s, above it",
            "is_proven": "known to be optimal", "unmet": "unmet",
        },
    ),
    "networks": GroupTable(
        title="Larger meshes: what is proven after the time given",
        columns={
            "gap": "gap", "unmet": "unmet", "first_s": "first plan", "done_s": "gap of 1 %", "cpu_s": "CPU",
            "wall_s": "clock",
        },
    ),
    "first": GroupTable(
        title="Very large: the first plan that keeps every limit",
        columns={"first_s": "first plan, CPU", "first_wall_s": "by the clock", "unmet": "unmet", "gap": "gap"},
    ),
    "replan": GroupTable(
        title="A link fails: planning again, beside a cold start; seconds by the clock",
        columns={
            "warm_s": "again", "read_s": "read first", "proven_s": "with proof", "cold_s": "cold, to a gap of 1 %",
            "as_good_s": "cold, as good", "moved": "flows moved", "moved_cold": "cold", "flows": "of", "lost": "lost",
            "gap": "gap",
        },
    ),
    "bounds": GroupTable(
        title="Bounds against the optimum",
        columns={"instances": "instances", "above": "above the optimum", "closeness": "bound : optimum"},
    ),
    "distributed": GroupTable(
        title="Brokers among themselves, beside the central plan",
        columns={
            "behind": "dearer per served request", "more_unmet": "more unmet", "messages": "messages",
            "messages_request": "per request", "cpu_s": "CPU",
        },
    ),
}  # fmt: skip

#: Seconds: sizes up to res0 proven; the best plan of the larger ones found, and proven where capacity is loose.
SMALL_S, FOUND_S, PROVEN_S = 0.5, 1.0, 10.0
#: The naive model's time, times ours.
TIMES_NAIVE = 5.0
FIRST_S = 30.0
#: A cold start's time, times that of re-planning.
TIMES_COLD = 10.0
#: How much dearer per served request a plan of brokers among themselves may be, in percent.
BEHIND_PERCENT = 5.0


def _goals() -> Iterator[Goal]:
    names = [size_name(size, tightness) for size in SMALL for tightness in TIGHTNESS]
    yield Goal(
        text="tiny to res0, every tightness: proven optimal, the slowest",
        limit=SMALL_S,
        unit="s",
        value=lambda results: _slowest_proof(results, names),
        rows=tuple((name, OURS) for name in names),
    )
    for size in LARGE:
        yield from _large(size)
    for mesh in (MIDDLE, WIDE):
        yield _gap(mesh)
    yield value_goal(
        f"{HUGE.nodes:,} nodes: first plan that keeps every limit", FIRST_S, "s", (f"first-{HUGE.name}", OURS),
        "first_s",
    )  # fmt: skip
    for mesh in (MIDDLE, WIDE):
        # what "cold" means is a matter of opinion: done by its own standard, or no worse than the other
        yield _times_cold(mesh, "cold_s", "to a gap of 1 %")
        yield _times_cold(mesh, "as_good_s", "until as good")
    yield Goal(
        text="{} small instances: bounds above the optimum",
        limit=0.0,
        unit="",
        value=lambda results: _sum(results.value("bounds", name, "above") for name in BOUNDS),
        rows=tuple(("bounds", name) for name in BOUNDS),
        detail=lambda results: f"{results.value('bounds', BOUNDS[0], 'instances') or 0:,.0f}",
    )
    keys = tuple((distributed_name(size, tightness), OURS) for size, tightness in TALKATIVE)
    yield Goal(
        text="brokers among themselves: cost per served request above the central plan's, the most",
        limit=BEHIND_PERCENT,
        unit="%",
        value=lambda results: _worst(
            100 * one["behind"] for key in keys for one in results.each(*key) if one["more_unmet"] <= 0
        ),
        rows=keys,
    )


def _large(size: str) -> Iterator[Goal]:
    found = tuple((found_name(size, tightness), OURS) for tightness in TIGHTNESS)
    loose = size_name(size, LOOSE)

    def fitting(results: Results) -> list[float]:
        return [
            one["best_wall_s"] if one["is_found"] else inf
            for key in found
            for one in results.each(*key)
            if one["unmet"] == 0
        ]

    def times_naive(results: Results) -> float | None:
        theirs, mine = (sum(one["cpu_s"] for one in results.each(loose, peer)) for peer in (NAIVE, OURS))
        return theirs / mine if theirs and mine else None

    yield Goal(
        text=f"{size}, requests fit{{}}: the best known plan found, the slowest",
        limit=FOUND_S,
        unit="s",
        value=lambda results: _worst(fitting(results)),
        rows=found,
        detail=lambda results: f", {len(fitting(results))} instances",
    )
    yield Goal(
        text=f"{size}, loose: proven optimal, the slowest",
        limit=PROVEN_S,
        unit="s",
        value=lambda results: _slowest_proof(results, [loose]),
        rows=((loose, OURS),),
    )
    yield Goal(
        text=f"{size}, loose: the naive model's time, times ours",
        limit=TIMES_NAIVE,
        unit="x",
        value=times_naive,
        rows=((loose, OURS),),
        against=((loose, NAIVE),),
        at_least=True,
    )


def _gap(mesh: Mesh) -> Goal:
    return Goal(
        text=f"{mesh.nodes:,} nodes, {mesh.requests:,} requests, all fit: gap after {mesh.seconds:.0f} s, the largest",
        limit=GAP_PERCENT,
        unit="%",
        value=lambda results: _worst(
            100 * one["gap"] if one["unmet"] == 0 else inf for one in results.each(mesh.name, OURS)
        ),
        rows=((mesh.name, OURS),),
    )


def _times_cold(mesh: Mesh, metric: str, until: str) -> Goal:
    key = (replan_name(mesh), OURS)
    return Goal(
        text=f"{mesh.nodes:,} nodes, a link fails: a cold start's time {until}, times re-planning's, the least",
        limit=TIMES_COLD,
        unit="x",
        value=lambda results: min((one[metric] / max(one["warm_s"], 1e-9) for one in results.each(*key)), default=None),
        rows=(key,),
        at_least=True,
    )


def _slowest_proof(results: Results, names: list[str]) -> float | None:
    """The longest time to a proof; forever where there was none."""
    return _worst(one["cpu_s"] if one["is_proven"] else inf for name in names for one in results.each(name, OURS))


def _worst(values: Iterable[float]) -> float | None:
    return max(values, default=None)


def _sum(values: Iterable[float | None]) -> float | None:
    counted = [value for value in values if value is not None]
    return sum(counted) if counted else None


def _words(results: Results) -> Iterator[str]:
    yield f"compiling and warming up took {results.totals.get('compile_s', 0.0):.1f} s, which are in no number below"
    limited = sum(not one["is_proven"] for row in results.rows if row.peer == NAIVE for one in row.repetitions)
    if limited:
        yield f"the naive model was ended by its time limit {limited} times: its times are at least what is shown"


SUITE: Final = Suite(
    name="plan",
    metrics=METRICS,
    tables=TABLES,
    goals=tuple(_goals()),
    picture=PICTURE,
    words=_words,
    faults=lambda results: results.failures,
    failures=(Refuted,),
)
