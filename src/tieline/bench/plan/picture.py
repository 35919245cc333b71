"""The picture: time to proof by size beside the naive model, gaps of larger meshes, and what re-planning saves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tieline.bench.metrics import three_digits
from tieline.bench.plan.bounds import PAPER
from tieline.bench.plan.effort import MIDDLE, replan_name
from tieline.bench.plan.goals import GAP_PERCENT
from tieline.bench.plan.record import NAIVE, OURS, PlanRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {OURS: "#0b6e4f", NAIVE: "#b5532c"}


def draw(record: PlanRecord, path: Path) -> bool:
    """Write the picture; false when there is nothing to show or matplotlib is not installed."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError:
        return False
    panels = [
        panel for group, panel in _PANELS.items() if any(row.group == group and row.metrics for row in record.rows)
    ]
    if not panels:
        return False
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(6.8 * columns, 4.0 * lines), layout="constrained", squeeze=False
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, panel in zip(axes.flat, panels, strict=False):
        panel(axis, record)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    machine = record.machine
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    figure.suptitle(f"{versions}; {machine['processor']}, {machine['cores']} cores", fontsize=9, x=0.01, ha="left")
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return True


def _title(axis: Axes, text: str) -> None:
    axis.set_title(text, loc="left", fontsize=10, fontweight="bold")


def _sizes(axis: Axes, record: PlanRecord) -> None:
    """A point per instance: hollow if its optimality was not proven in the time."""
    names = list(dict.fromkeys(row.workload for row in record.rows if row.group == "sizes"))
    for peer, shift in ((OURS, -0.14), (NAIVE, 0.14)):
        for proven in (True, False):
            points = [
                (at + shift, one["cpu_s"])
                for at, name in enumerate(names)
                for one in record.each(name, peer)
                if bool(one["is_proven"]) == proven
            ]
            if points:
                axis.plot(
                    *zip(*points, strict=True), "o", markersize=5, color=_COLOURS[peer],
                    markerfacecolor=_COLOURS[peer] if proven else "white",
                    label=peer if proven else f"{peer}, ended by its limit",
                )  # fmt: skip
    axis.set_yscale("log")
    # a size is written once, below the first of its capacity factors
    parts = [name.split("-b") for name in names]
    labels = [
        f"{tightness}\n{size}" if at == 0 or parts[at - 1][0] != size else tightness
        for at, (size, tightness) in enumerate(parts)
    ]
    axis.set_xticks(range(len(names)), labels, fontsize=7)
    axis.set_xlabel("capacity factor, size", fontsize=8)
    axis.set_ylabel("CPU seconds", fontsize=8)
    axis.grid(axis="y", which="major", alpha=0.3)
    axis.legend(fontsize=7, loc="upper left")
    _title(axis, "The paper's sizes: time until proven optimal")


def _gaps(axis: Axes, record: PlanRecord) -> None:
    """Points: a mesh that cannot serve everybody has a hundred times the gap of the others."""
    rows = [row for row in record.rows if row.group == "networks" and row.metrics]
    worst = [100 * max(one["gap"] for one in row.repetitions) for row in rows]
    axis.plot(range(len(rows)), worst, "o", markersize=8, color=_COLOURS[OURS])
    for at, value in enumerate(worst):
        axis.annotate(
            f"{three_digits(value)} %", (at, value), xytext=(9, 0), textcoords="offset points", va="center", fontsize=8
        )
    axis.axhline(GAP_PERCENT, color="#444444", linewidth=1, linestyle="--")
    axis.set_yscale("log")
    axis.set_ylim(0.03, 200)
    axis.set_xlim(-0.6, max(len(rows), 3) - 0.4)
    axis.set_xticks(range(len(rows)), [row.title.replace(", ", "\n") for row in rows], fontsize=7)
    axis.set_ylabel("percent of the objective", fontsize=8)
    axis.grid(axis="y", which="major", alpha=0.3)
    _title(axis, "Larger meshes: proven gap after the time given")


def _failures(axis: Axes, record: PlanRecord) -> None:
    """What each failure took, warm and cold."""
    rows = list(record.each(replan_name(MIDDLE)))
    kinds = (
        ("warm_s", "re-planning", OURS),
        ("as_good_s", "cold, as good", None),
        ("cold_s", "cold, gap of 1 %", NAIVE),
    )
    for metric, label, peer in kinds:
        colour = _COLOURS[peer] if peer else "#c9a227"
        # no bars: on a logarithmic axis nothing begins at zero
        axis.plot(range(len(rows)), [one[metric] for one in rows], "o", markersize=7, color=colour, label=label)
    axis.set_yscale("log")
    axis.set_xticks(range(len(rows)), [f"{one['moved']:.0f}" for one in rows], fontsize=7)
    flows = max((one["flows"] for one in rows), default=0.0)
    axis.set_xlabel(f"a failure each: flows moved, of {flows:.0f}", fontsize=8)
    axis.set_xlim(-0.6, len(rows) - 0.4)
    # room for the legend above the points
    axis.set_ylim(top=10 * axis.get_ylim()[1])
    axis.set_ylabel("seconds", fontsize=8)
    axis.grid(axis="y", which="major", alpha=0.3)
    axis.legend(fontsize=7, loc="upper left", ncols=3)
    _title(axis, "A link fails: planning again, beside a cold start")


def _bounds(axis: Axes, record: PlanRecord) -> None:
    rows = [row for row in record.rows if row.group == "bounds"]
    shares = [100 * row.metrics["above"] / max(1.0, row.metrics["instances"]) for row in rows]
    _bars(axis, [row.peer.replace(", ", ",\n") for row in rows], shares, "{} %")
    for bar, row in zip(axis.patches, rows, strict=True):
        bar.set_color(_COLOURS[NAIVE] if row.peer == PAPER else _COLOURS[OURS])
    axis.set_ylabel("percent of the instances", fontsize=8)
    _title(axis, "Bounds above the optimum (none may be)")


def _bars(axis: Axes, names: list[str], values: list[float], form: str) -> None:
    bars = axis.bar(range(len(values)), values, width=0.55, color=_COLOURS[OURS])
    axis.bar_label(bars, [form.format(three_digits(value)) if value else "0" for value in values], fontsize=8)
    axis.set_xticks(range(len(names)), names, fontsize=7)
    axis.margins(y=0.15)
    # a few bars do not have to fill the panel
    axis.set_xlim(-0.8, max(len(names), 3) - 0.2)
    axis.set_ylim(bottom=0.0)
    axis.grid(axis="y", which="major", alpha=0.3)
    axis.set_axisbelow(True)


_PANELS: dict[str, Callable[[Axes, PlanRecord], None]] = {
    "sizes": _sizes,
    "networks": _gaps,
    "replan": _failures,
    "bounds": _bounds,
}
