"""The picture: time to proof by size beside the naive model, gaps of larger meshes, re-planning, and bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieline.bench.metrics import three_digits
from tieline.bench.plan.bounds import PAPER
from tieline.bench.plan.effort import GAP_PERCENT, MIDDLE, NAIVE, OURS, replan_name
from tieline.bench.suite.picture import GREEN, OCHRE, RUST, Picture, bars, group_panel, labels, limit, points
from tieline.bench.suite.results import Results

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
