"""The planner's benchmark: what its numbers mean, the goals that they are held against, its tables and its picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, Final

from tieline.bench.metrics import Metric, three_digits
from tieline.bench.plan.bounds import BOUNDS, PAPER
from tieline.bench.plan.cases import (
    GAP_PERCENT,
    HUGE,
    LARGE,
    MIDDLE,
    NAIVE,
    OURS,
    SMALL,
    TALKATIVE,
    TIGHTNESS,
    WIDE,
    distributed_name,
    found_name,
    replan_name,
    size_name,
)
from tieline.bench.plan.measures import LOOSE, Mesh
from tieline.bench.suite.declaration import Goal, GroupTable, Suite, value_goal
from tieline.bench.suite.picture import GREEN, OCHRE, RUST, Picture, bars, group_panel, labels, limit, points
from tieline.bench.suite.results import Results
from tieline.plan.proof import Refuted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {OURS: GREEN, NAIVE: RUST}


def _sizes(axis: Axes, results: Results) -> None:
    """A point per instance: hollow if its optimality was not proven in the time."""
    names = list(dict.fromkeys(row.workload for row in results.rows if row.group == "sizes"))
    for peer, shift in ((OURS, -0.14), (NAIVE, 0.14)):
        for proven in (True, False):
            places = [
                (at + shift, one["cpu_s"])
                for at, name in enumerate(names)
                for one in results.each(name, peer)
                if bool(one["is_proven"]) == proven
            ]
            label = peer if proven else f"{peer}, ended by its limit"
            points(axis, {label: places}, {label: _COLOURS[peer]})
            if places and not proven:
                axis.lines[-1].set_markerfacecolor("white")
    # a size is written once, below the first of its capacity factors
    parts = [name.split("-b") for name in names]
    ticks = [
        f"{tightness}\n{size}" if at == 0 or parts[at - 1][0] != size else tightness
        for at, (size, tightness) in enumerate(parts)
    ]
    axis.set_xticks(range(len(names)), ticks, fontsize=7)
    labels(axis, x="capacity factor, size", y="CPU seconds")


def _gaps(axis: Axes, results: Results) -> None:
    """Points: a mesh that cannot serve everybody has a hundred times the gap of the others."""
    rows = [row for row in results.rows if row.group == "networks" and row.metrics]
    worst = [100 * max(one["gap"] for one in row.repetitions) for row in rows]
    points(axis, {OURS: list(enumerate(worst))}, _COLOURS)
    for at, value in enumerate(worst):
        axis.annotate(
            f"{three_digits(value)} %", (at, value), xytext=(9, 0), textcoords="offset points", va="center", fontsize=8
        )
    limit(axis, GAP_PERCENT)
    axis.set_ylim(0.03, 200)
    axis.set_xlim(-0.6, max(len(rows), 3) - 0.4)
    axis.set_xticks(range(len(rows)), [row.title.replace(", ", "\n") for row in rows], fontsize=7)
    labels(axis, y="percent of the objective")


def _failures(axis: Axes, results: Results) -> None:
    """What each failure took, warm and cold."""
    rows = list(results.each(replan_name(MIDDLE), OURS))
    kinds = {"re-planning": "warm_s", "cold, as good": "as_good_s", "cold, gap of 1 %": "cold_s"}
    series = {label: [(float(at), one[metric]) for at, one in enumerate(rows)] for label, metric in kinds.items()}
    points(axis, series, dict(zip(kinds, (GREEN, OCHRE, RUST), strict=True)))
    axis.set_xticks(range(len(rows)), [f"{one['moved']:.0f}" for one in rows], fontsize=7)
    axis.set_xlim(-0.6, len(rows) - 0.4)
    # room for the legend above the points
    axis.set_ylim(top=10 * axis.get_ylim()[1])
    axis.legend(fontsize=7, loc="upper left", ncols=3)
    flows = max((one["flows"] for one in rows), default=0.0)
    labels(axis, x=f"a failure each: flows moved, of {flows:.0f}", y="seconds")


def _bounds(axis: Axes, results: Results) -> None:
    rows = [row for row in results.rows if row.group == "bounds" and row.metrics]
    shares = [100 * row.metrics["above"] / max(1.0, row.metrics["instances"]) for row in rows]
    bars(axis, {"": shares}, [row.peer.replace(", ", ",\n") for row in rows], {"": GREEN}, " %")
    for bar, row in zip(axis.patches, rows, strict=True):
        bar.set_color(RUST if row.peer == PAPER else GREEN)
    axis.set_ylim(bottom=0.0)
    labels(axis, y="percent of the instances")


PICTURE = Picture(
    panels=(
        group_panel("sizes", "The paper's sizes: time until proven optimal", _sizes),
        group_panel("networks", "Larger meshes: proven gap after the time given", _gaps),
        group_panel("replan", "A link fails: planning again, beside a cold start", _failures),
        group_panel("bounds", "Bounds above the optimum (none may be)", _bounds),
    ),
    width=6.8,
    height=4.0,
)


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
