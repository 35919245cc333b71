"""The picture: how long answers take as subscriptions grow, and what brokers keep of their throughput."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tieline.bench.match.broker import WITH_NUMBA, WITHOUT_NUMBA
from tieline.bench.match.engines import ENGINES
from tieline.bench.match.goals import KEPT_WITH_CONDITIONS
from tieline.bench.match.plan import COLUMNS, HEADLINE, LARGE, MANY, SMALL
from tieline.bench.match.record import MatchRecord
from tieline.bench.metrics import three_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {
    "small": "#7a9cc6",
    "numpy": "#2f6fb3",
    "numba": "#0b6e4f",
    "brute force": "#c9a227",
    "rtree": "#b07aa1",
    "predicates": "#b5532c",
    WITH_NUMBA: "#0b6e4f",
    WITHOUT_NUMBA: "#2f6fb3",
}


def draw(record: MatchRecord, path: Path) -> bool:
    """Write the picture; false when there is nothing to show or matplotlib is not installed."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError:
        return False
    panels = [panel for panel, is_there in _PANELS if is_there(record)]
    if not panels:
        return False
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(6.5 * columns, 4.2 * rows), layout="constrained", squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, panel in zip(axes.flat, panels, strict=False):
        panel(axis, record)
        axis.spines[["top", "right"]].set_visible(False)
    machine = record.machine
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    figure.suptitle(f"{versions}; {machine['processor']}, {machine['cores']} cores", fontsize=9, x=0.01, ha="left")
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return True


def _title(axis: Axes, text: str) -> None:
    axis.set_title(text, loc="left", fontsize=10, fontweight="bold")


def _growth(axis: Axes, record: MatchRecord, metric: str) -> None:
    """A line per engine over the number of subscriptions."""
    for engine in ENGINES:
        points = [
            (number, value)
            for number in (SMALL, MANY, LARGE)
            if (value := record.value(HEADLINE.with_subscriptions(number).name, engine, metric)) is not None
        ]
        if points:
            numbers, values = zip(*points, strict=True)
            axis.plot(numbers, values, marker="o", markersize=4, color=_COLOURS[engine], label=engine)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("subscriptions", fontsize=8)
    axis.grid(which="major", alpha=0.3)
    axis.legend(fontsize=7, loc="best")


def _latency(axis: Axes, record: MatchRecord) -> None:
    _growth(axis, record, "match_p50_us")
    axis.set_ylabel("µs", fontsize=8)
    _title(axis, "One event, p50: 3 attributes, 0.1 %")


def _batches(axis: Axes, record: MatchRecord) -> None:
    _growth(axis, record, "batch_rate")
    axis.set_ylabel("events/s of CPU time", fontsize=8)
    _title(axis, "Batches: 3 attributes, 0.1 %")


def _columns(axis: Axes, record: MatchRecord) -> None:
    """All configurations with the most subscriptions."""
    places = [column for column in COLUMNS if any(row.workload == column.name for row in record.rows)]
    engines = [name for name in ENGINES if any(record.value(place.name, name, "match_p50_us") for place in places)]
    for engine in engines:
        values = [record.value(place.name, engine, "match_p50_us") for place in places]
        points = [(at, value) for at, value in enumerate(values) if value is not None]
        # no bars: on a logarithmic axis nothing begins at zero
        axis.plot(*zip(*points, strict=True), "o", markersize=6, color=_COLOURS[engine], label=engine)
    axis.set_yscale("log")
    axis.grid(axis="y", which="major", alpha=0.3)
    axis.margins(x=0.1, y=0.15)
    axis.set_xticks(range(len(places)), [place.column.replace(", ", "\n") for place in places], fontsize=6)
    axis.set_ylabel("µs", fontsize=8)
    axis.legend(fontsize=7, loc="best")
    _title(axis, "1M subscriptions: one event, p50")


def _brokers(axis: Axes, record: MatchRecord) -> None:
    """Throughput with conditions against that with plain topics."""
    cases = list(dict.fromkeys((row.workload, row.title) for row in record.rows if row.group == "end"))
    peers = [peer for peer in (WITH_NUMBA, WITHOUT_NUMBA) if any(row.peer == peer for row in record.rows)]
    for number, peer in enumerate(peers):
        ratios = [record.value(name, peer, "rate_ratio") or 0.0 for name, _ in cases]
        places = [at + (number - (len(peers) - 1) / 2) * 0.4 for at in range(len(cases))]
        bars = axis.bar(places, ratios, width=0.38, color=_COLOURS[peer], label=peer)
        axis.bar_label(bars, [three_digits(ratio) for ratio in ratios], fontsize=7)
    axis.axhline(KEPT_WITH_CONDITIONS, color="#444444", linewidth=1, linestyle="--")
    axis.set_xticks(range(len(cases)), [title.replace(", ", "\n") for _, title in cases], fontsize=8)
    axis.margins(y=0.15)
    axis.legend(fontsize=7, loc="best")
    _title(axis, "Brokers: throughput with conditions : with plain topics")


def _has_growth(record: MatchRecord) -> bool:
    names = {HEADLINE.with_subscriptions(number).name for number in (SMALL, MANY, LARGE)}
    return any(row.workload in names and row.metrics for row in record.rows)


def _has_columns(record: MatchRecord) -> bool:
    names = {column.name for column in COLUMNS}
    return any(row.workload in names and row.metrics for row in record.rows)


def _has_brokers(record: MatchRecord) -> bool:
    return any(row.group == "end" and row.metrics for row in record.rows)


_PANELS: tuple[tuple[Callable[[Axes, MatchRecord], None], Callable[[MatchRecord], bool]], ...] = (
    (_latency, _has_growth),
    (_batches, _has_growth),
    (_columns, _has_columns),
    (_brokers, _has_brokers),
)
