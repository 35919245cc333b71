"""The picture: urgent messages over the thin link, beside a flood, past a slow reader; and what classes cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tieline.bench.metrics import three_digits
from tieline.bench.peers import BASELINE, SUBJECT
from tieline.bench.priority import cost
from tieline.bench.priority.goals import KEPT
from tieline.bench.priority.record import PriorityRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {SUBJECT: "#0b6e4f", BASELINE: "#b5532c"}
_MARKERS = {"thin-broker": "o", "thin-router": "^", "thin-property": "s", "thin-tls": "D"}


def draw(record: PriorityRecord, path: Path) -> bool:
    """Write the picture; false when there is nothing to show or matplotlib is not installed."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError:
        return False
    groups = {row.group for row in record.rows if row.status == "measured"}
    panels = [panel for group, panel in _PANELS.items() if group in groups]
    if not panels:
        return False
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(6 * columns, 4 * rows), layout="constrained", squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, panel in zip(axes.flat, panels, strict=False):
        panel(axis, record)
        axis.spines[["top", "right"]].set_visible(False)
    machine = record.machine
    figure.suptitle(
        f"Tieline {record.versions.get(SUBJECT, '')}, mosquitto {record.versions.get(BASELINE, '')}; "
        f"{machine['processor']}, {machine['cores']} cores",
        fontsize=9,
        x=0.01,
        ha="left",
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return True


def _title(axis: Axes, text: str) -> None:
    axis.set_title(text, loc="left", fontsize=10, fontweight="bold")


def _thin(axis: Axes, record: PriorityRecord) -> None:
    for name, points in record.timelines.items():
        workload, peer = name.split()
        axis.scatter(
            [sent for sent, _ in points],
            [max(took, 1e-3) for _, took in points],
            s=14,
            marker=_MARKERS.get(workload, "o"),
            color=COLOURS[peer],
            alpha=0.7,
            label=f"{peer}, {workload.removeprefix('thin-')}",
        )
    bound = next((row.metrics["bound_ms"] / 1e3 for row in record.rows if "bound_ms" in row.metrics), None)
    if bound is not None:
        axis.axhline(bound, color="#444444", linewidth=1, linestyle="--")
        axis.annotate("stated bound", (0, bound), xytext=(2, 3), textcoords="offset points", fontsize=8)
    axis.set_yscale("log")
    axis.set_xlabel("second of sending", fontsize=8)
    axis.set_ylabel("seconds to arrive (missing: the whole run)", fontsize=8)
    axis.legend(fontsize=7, loc="best")
    _title(axis, "Thin link, 128 kbit/s: urgent messages")


def _busy(axis: Axes, record: PriorityRecord) -> None:
    _bars(axis, record, "busy", ("urgent_p50_ms", "urgent_p99_ms", "urgent_max_ms"), ("p50", "p99", "longest"))
    axis.set_ylabel("ms", fontsize=8)
    _title(axis, "Beside 50 publishers at full speed: urgent messages")


def _slow(axis: Axes, record: PriorityRecord) -> None:
    _bars(axis, record, "slow", ("ahead_p50_bytes", "ahead_max_bytes"), ("p50", "most"))
    bound = record.value("slow", SUBJECT, "ahead_bound_bytes")
    if bound is not None:
        axis.axhline(bound, color="#444444", linewidth=1, linestyle="--")
    axis.set_ylabel("bytes taken before an urgent message", fontsize=8)
    _title(axis, "Slow reader, 1 kB/s")


def _cost(axis: Axes, record: PriorityRecord) -> None:
    cases = [case for case in cost.CASES if record.value(case.name, cost.HAVING, "rate_ratio") is not None]
    for offset, metric, colour in ((-0.2, "rate_ratio", "#7a9cc6"), (0.2, "cpu_ratio", "#c9a227")):
        ratios = [record.value(case.name, cost.HAVING, metric) or 0.0 for case in cases]
        label = "throughput" if metric == "rate_ratio" else "CPU per message"
        bars = axis.bar([at + offset for at in range(len(cases))], ratios, width=0.38, color=colour, label=label)
        axis.bar_label(bars, [f"{ratio:.2f}" for ratio in ratios], fontsize=7)
    axis.axhline(KEPT, color="#444444", linewidth=1, linestyle="--")
    axis.set_xticks(range(len(cases)), [case.title for case in cases], fontsize=7)
    axis.margins(y=0.15)
    axis.legend(fontsize=7, loc="lower right")
    _title(axis, "Classes without congestion: with : without")


def _bars(
    axis: Axes, record: PriorityRecord, workload: str, metrics: tuple[str, ...], headings: tuple[str, ...]
) -> None:
    peers = [peer for peer in (SUBJECT, BASELINE) if record.value(workload, peer, metrics[0]) is not None]
    for number, peer in enumerate(peers):
        values = [record.value(workload, peer, metric) or 0.0 for metric in metrics]
        places = [at + (number - (len(peers) - 1) / 2) * 0.4 for at in range(len(metrics))]
        bars = axis.bar(places, values, width=0.38, color=COLOURS[peer], label=peer)
        axis.bar_label(bars, [three_digits(value) for value in values], fontsize=7)
    axis.set_xticks(range(len(metrics)), list(headings), fontsize=8)
    axis.margins(y=0.15)
    axis.legend(fontsize=7, loc="upper left")


_PANELS: dict[str, Callable[[Axes, PriorityRecord], None]] = {
    "thin": _thin,
    "busy": _busy,
    "slow": _slow,
    "cost": _cost,
}
