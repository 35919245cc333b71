"""The picture: every broker against mosquitto, throughput and CPU per message, one bar each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tieline.bench.metrics import three_digits
from tieline.bench.peers import BASELINE, SUBJECT
from tieline.bench.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"tieline": "#0b6e4f", "nats": "#7a9cc6", "aedes": "#c9a227", "amqtt": "#b07aa1"}
_PANELS = (
    ("rate", ("throughput",), "throughput, times mosquitto's (right of 1x is better)"),
    ("cpu_us_delivered", ("throughput", "paced"), "broker CPU per message, times mosquitto's (left of 1x is better)"),
)


def draw(record: Record, path: Path) -> bool:
    """Write the picture; false when there is nothing to compare or matplotlib is not installed."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError:
        return False
    panels = [panel for panel in _PANELS if _titles(record, panel[0], panel[1])]
    if not panels:
        return False
    heights = [len(_titles(record, metric, groups)) for metric, groups, _ in panels]
    figure, axes = plt.subplots(
        len(panels),
        1,
        figsize=(10, 1.6 + 0.42 * sum(heights)),
        height_ratios=heights,
        layout="constrained",
        squeeze=False,
    )
    for axis, (metric, groups, title) in zip(axes[:, 0], panels, strict=True):
        _panel(axis, record, metric, groups)
        axis.set_title(title, loc="left", fontsize=11, fontweight="bold")
    machine = record.machine
    figure.suptitle(
        f"Tieline {record.versions.get(SUBJECT, '')}, mosquitto {record.versions.get(BASELINE, '')}; "
        f"{machine['processor']}, {machine['cores']} cores; median of repetitions in one run",
        fontsize=9,
        x=0.01,
        ha="left",
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return True


def _titles(record: Record, metric: str, groups: tuple[str, ...]) -> dict[str, str]:
    """Workloads where at least one broker can be held against the baseline."""
    return {
        row.workload: row.title
        for row in record.rows
        if row.group in groups
        and row.peer != BASELINE
        and record.ratio(row.workload, metric, row.peer, BASELINE) is not None
    }


def _panel(axis: Axes, record: Record, metric: str, groups: tuple[str, ...]) -> None:
    titles = _titles(record, metric, groups)
    peers = [name for name in record.versions if name != BASELINE]
    thickness = 0.8 / len(peers)
    for number, peer in enumerate(peers):
        ratios = [record.ratio(workload, metric, peer, BASELINE) for workload in titles]
        places = [at + (number - (len(peers) - 1) / 2) * thickness for at in range(len(titles))]
        bars = [(place, ratio) for place, ratio in zip(places, ratios, strict=True) if ratio is not None]
        if not bars:
            continue
        axis.barh(
            [place for place, _ in bars],
            [ratio - 1 for _, ratio in bars],
            left=1,  # bars leave the baseline to the right or to the left: on a logarithmic axis nothing begins at zero
            height=thickness * 0.92,
            color=_COLOURS.get(peer, "#888888"),
            label=peer,
        )
        for place, ratio in bars:
            side, anchor = (3, "left") if ratio >= 1 else (-3, "right")
            axis.annotate(
                f"{three_digits(ratio)}x",
                (ratio, place),
                xytext=(side, 0),
                textcoords="offset points",
                va="center",
                ha=anchor,
                fontsize=7,
            )
    axis.axvline(1.0, color="#444444", linewidth=1, linestyle="--")
    axis.set_xscale("log")
    axis.margins(x=0.15)
    axis.set_yticks(range(len(titles)), list(titles.values()), fontsize=8)
    axis.invert_yaxis()
    axis.grid(axis="x", which="major", alpha=0.3)
    axis.tick_params(axis="x", labelsize=8)
    axis.xaxis.set_major_formatter(lambda value, _position: f"{value:g}x")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=8, loc="best", framealpha=0.9)
