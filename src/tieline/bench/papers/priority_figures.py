"""The papers' figures, drawn from our numbers: one PNG each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tieline.bench.metrics import three_digits
from tieline.bench.papers.feedback import SEVERAL, Figures345
from tieline.bench.papers.priority import PriorityReproduction
from tieline.bench.papers.wanted_topics import Figure2
from tieline.bench.suite.picture import GREEN, OCHRE, RUST, SKY, bars, draw_panels, labels, limit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"mosquitto": RUST, "fifo": OCHRE, "taxonomy": SKY, "heat": GREEN}
_GROUP_COLOURS = ("#c6d8cf", "#8fb8a5", "#4d937a", GREEN)
_FREQUENCY_COLOURS = (OCHRE, SKY, GREEN, RUST)

Panel = Callable[["Axes"], None]


def draw(found: PriorityReproduction, directory: Path) -> list[str]:
    """Write a picture for each figure that has numbers; returns their names, none without matplotlib."""
    return [
        name
        for name, panels in _pictures(found).items()
        if draw_panels(panels, directory / name, columns=len(panels), size=(5.5, 3.8))
    ]


def _pictures(found: PriorityReproduction) -> dict[str, dict[str, Panel]]:
    pictures: dict[str, dict[str, Panel]] = {}
    if found.heat is not None:
        pictures["heat-fig2.png"] = {"Fig. 2: delay of the most wanted topics": _figure2(found.heat)}
    if found.feedback is not None:
        pictures["heat-fig3.png"] = {"Fig. 3: feedback period and high priority": _figure3(found.feedback)}
        pictures["heat-fig4-5.png"] = {"Figs. 4, 5: delay ratio of low priority": _figures45(found.feedback)}
    for name, title, wanted in (
        ("groups-fig7.png", "Fig. 7", ("QoS 0", "QoS 1", "QoS 2", "QoS 0, header byte")),
        ("groups-fig8.png", "Fig. 8", ("equal levels",)),
        ("groups-fig9.png", "Fig. 9", ("mosquitto", "without levels", "QoS 0")),
    ):
        panels = {
            f"{title}: {variant}": _groups({one: groups[one] for one in wanted if one in groups})
            for variant, groups in (("1 KB every 50 ms", found.groups), ("saturated", found.groups_saturated))
            if any(one in groups for one in wanted)
        }
        if panels:
            pictures[name] = panels
    return pictures


def _figure2(heat: Figure2) -> Panel:
    def panel(axis: Axes) -> None:
        for name, values in heat.delays_ms.items():
            label = name if name == "mosquitto" else f"Tieline, {name}"
            axis.plot(heat.counts, values, marker="o", markersize=4, color=_COLOURS[name], label=label)
        labels(axis, x="distributions in the burst", y="mean delay, ms")

    return panel


def _figure3(found: Figures345) -> Panel:
    def panel(axis: Axes) -> None:
        axis.plot(found.periods_s, found.high_ms[SEVERAL], marker="o", color=GREEN, label="high, mean delay")
        _periods(axis, found)
        labels(axis, x=f"time period, s ({SEVERAL} low messages in each)", y="ms")
        axis.set_ylim(bottom=0)
        late = axis.twinx()
        shares = [100 * share for share in found.late_share[SEVERAL]]
        late.plot(found.periods_s, shares, marker="s", color=RUST, linestyle="--")
        axis.plot([], [], marker="s", color=RUST, linestyle="--", label="low, timed out (right)")
        late.set_ylabel("% of low messages beyond 1 s", fontsize=8)
        late.set_ylim(0, 100)
        late.tick_params(labelsize=8)

    return panel


def _figures45(found: Figures345) -> Panel:
    def panel(axis: Axes) -> None:
        for colour, (frequency, ratios) in zip(_FREQUENCY_COLOURS, found.ratio.items(), strict=False):
            axis.plot(found.periods_s, ratios, marker="o", color=colour, label=f"frequency {frequency}")
        limit(axis, 1.0)
        _periods(axis, found)
        axis.set_ylim(bottom=0)
        labels(axis, x="time period, s", y=f"delay : unblocked delay ({three_digits(found.unblocked_ms)} ms)")

    return panel


def _periods(axis: Axes, found: Figures345) -> None:
    axis.set_xscale("log")
    axis.set_xticks(found.periods_s, [f"{period:g}" for period in found.periods_s])
    axis.minorticks_off()


def _groups(groups: dict[str, list[float]]) -> Panel:
    def panel(axis: Axes) -> None:
        names = [name.replace("QoS 0, ", "") if len(groups) > 3 else name for name in groups]
        colours = {f"group {number}": colour for number, colour in enumerate(_GROUP_COLOURS, start=1)}
        series = {name: [means[number] for means in groups.values()] for number, name in enumerate(colours)}
        bars(axis, series, names, colours)
        labels(axis, y="mean delay, µs")

    return panel
