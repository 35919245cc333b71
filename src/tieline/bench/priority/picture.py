"""The picture: urgent messages over the thin link, beside a flood, past a slow reader; and what classes cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tieline.bench.peers import BASELINE, SUBJECT
from tieline.bench.priority import cost
from tieline.bench.suite.picture import GREEN, OCHRE, RUST, SKY, Picture, bars, group_panel, labels, limit
from tieline.bench.suite.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS: Final = {SUBJECT: GREEN, BASELINE: RUST}
_MARKERS: Final = {"thin-broker": "o", "thin-router": "^", "thin-property": "s", "thin-tls": "D"}


def _thin(axis: Axes, record: Record) -> None:
    for name, places in record.timelines.items():
        workload, peer = name.split()
        axis.scatter(
            [sent for sent, _ in places],
            [max(took, 1e-3) for _, took in places],
            s=14,
            marker=_MARKERS.get(workload, "o"),
            color=_COLOURS[peer],
            alpha=0.7,
            label=f"{peer}, {workload.removeprefix('thin-')}",
        )
    bound = next((row.metrics["bound_ms"] / 1e3 for row in record.rows if "bound_ms" in row.metrics), None)
    limit(axis, bound, "stated bound")
    axis.set_yscale("log")
    labels(axis, x="second of sending", y="seconds to arrive (missing: the whole run)")


def _busy(axis: Axes, record: Record) -> None:
    _peers(axis, record, "busy", {"urgent_p50_ms": "p50", "urgent_p99_ms": "p99", "urgent_max_ms": "longest"})
    labels(axis, y="ms")


def _slow(axis: Axes, record: Record) -> None:
    _peers(axis, record, "slow", {"ahead_p50_bytes": "p50", "ahead_max_bytes": "most"})
    limit(axis, record.value("slow", SUBJECT, "ahead_bound_bytes"))
    labels(axis, y="bytes taken before an urgent message")


def _peers(axis: Axes, record: Record, workload: str, metrics: dict[str, str]) -> None:
    """Some numbers of a workload, the brokers side by side."""
    series = {
        peer: [record.value(workload, peer, metric) or 0.0 for metric in metrics]
        for peer in (SUBJECT, BASELINE)
        if record.value(workload, peer, next(iter(metrics))) is not None
    }
    bars(axis, series, list(metrics.values()), _COLOURS)


def _cost(axis: Axes, record: Record) -> None:
    cases = [case for case in cost.CASES if record.value(case.name, cost.HAVING, "rate_ratio") is not None]
    kinds = {"throughput": "rate_ratio", "CPU per message": "cpu_ratio"}
    series = {
        label: [record.value(case.name, cost.HAVING, metric) or 0.0 for case in cases]
        for label, metric in kinds.items()
    }
    bars(axis, series, [case.title.replace(", ", ",\n") for case in cases], dict(zip(kinds, (SKY, OCHRE), strict=True)))
    limit(axis, cost.KEPT)
    axis.legend(fontsize=7, loc="lower right")


PICTURE: Final = Picture(
    panels=(
        group_panel("thin", "Thin link, 128 kbit/s: urgent messages", _thin),
        group_panel("busy", "Beside 50 publishers at full speed: urgent messages", _busy),
        group_panel("slow", "Slow reader, 1 kB/s", _slow),
        group_panel("cost", "Classes without congestion: with : without", _cost),
    ),
    width=6.0,
    height=4.0,
)
