"""The picture: every broker against mosquitto, throughput and CPU per message, one bar each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tieline.bench.metrics import three_digits
from tieline.bench.peers import BASELINE, SUBJECT
from tieline.bench.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Room between two workloads, in bars.
_GAP = 0.7
_COLOURS = {"tieline": "#0b6e4f", "nats": "#7a9cc6", "aedes": "#c9a227", "amqtt": "#b07aa1"}
_MESSAGES = ("throughput", "payloads", "durable")
_PANELS = (
    ("rate", _MESSAGES, "throughput, times mosquitto's (right of 1x is better)"),
    ("cpu_us_delivered", (*_MESSAGES, "paced"), "broker CPU per message, times mosquitto's (left of 1x is better)"),
)


def draw(record: Record, path: Path) -> bool:
    """Write the picture; false when there is nothing to compare or matplotlib is not installed."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError:
        return False
    panels = [(title, bars) for metric, groups, title in _PANELS if (bars := _bars(record, metric, groups))]
    if not panels:
        return False
    heights = [bars[-1].place + _GAP for _, bars in panels]
    figure, axes = plt.subplots(
        len(panels),
        1,
        figsize=(11, 1.4 + 0.17 * sum(heights)),
        height_ratios=heights,
        layout="constrained",
        squeeze=False,
    )
    for axis, (title, bars) in zip(axes[:, 0], panels, strict=True):
        _panel(axis, bars)
        axis.set_title(title, loc="left", fontsize=11, fontweight="bold")
    machine = record.machine
    figure.suptitle(
        f"Tieline {record.versions.get(SUBJECT, '')}, mosquitto {record.versions.get(BASELINE, '')}; "
        f"{machine['processor']}, {machine['cores']} cores; median of repetitions in one run",
        fontsize=9,
        x=0.01,
        ha="left",
    )
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return True


@dataclass(frozen=True, slots=True)
class _Bar:
    workload: str
    peer: str
    ratio: float
    place: float


def _bars(record: Record, metric: str, groups: tuple[str, ...]) -> list[_Bar]:
    """A bar for every broker that can be held against the baseline, workload by workload from top to bottom."""
    bars: list[_Bar] = []
    place = 0.0
    for row in record.rows:
        ratio = record.ratio(row.workload, metric, row.peer, BASELINE)
        if row.group not in groups or row.peer == BASELINE or ratio is None:
            continue
        if bars:
            place += 1 if bars[-1].workload == row.title else 1 + _GAP
        bars.append(_Bar(row.title, row.peer, ratio, place))
    return bars


def _panel(axis: Axes, bars: list[_Bar]) -> None:
    for peer in dict.fromkeys(bar.peer for bar in bars):
        mine = [bar for bar in bars if bar.peer == peer]
        axis.barh(
            [bar.place for bar in mine],
            [bar.ratio - 1 for bar in mine],
            left=1,  # bars leave the baseline to the right or to the left: on a logarithmic axis nothing begins at zero
            height=0.9,
            color=_COLOURS.get(peer, "#888888"),
            label=peer,
        )
    for bar in bars:
        side, anchor = (3, "left") if bar.ratio >= 1 else (-3, "right")
        axis.annotate(
            f"{three_digits(bar.ratio)}x",
            (bar.ratio, bar.place),
            xytext=(side, 0),
            textcoords="offset points",
            va="center",
            ha=anchor,
            fontsize=7,
        )
    places: dict[str, list[float]] = {}
    for bar in bars:
        places.setdefault(bar.workload, []).append(bar.place)
    axis.set_yticks([sum(of) / len(of) for of in places.values()], list(places), fontsize=8)
    axis.axvline(1.0, color="#444444", linewidth=1, linestyle="--")
    axis.set_xscale("log")
    axis.margins(x=0.15, y=0.02)
    axis.invert_yaxis()
    axis.grid(axis="x", which="major", alpha=0.3)
    axis.tick_params(axis="x", labelsize=8)
    axis.xaxis.set_major_formatter(lambda value, _position: f"{value:g}x")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=8, loc="best", framealpha=0.9)
