"""The papers' figures, from our numbers; of the planner's paper its times, its "bound" and its smallest network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tieline.bench.metrics import three_digits
from tieline.bench.papers.feedback import SEVERAL, Figures345
from tieline.bench.papers.priority import PriorityReproduction
from tieline.bench.papers.psp_record import PAPER_LAGRANGIAN_S, PAPER_MIP_S, Measured, PlanReproduction
from tieline.bench.papers.wanted_topics import Figure2
from tieline.bench.suite.picture import BLUE, GREEN, OCHRE, RUST, SKY, bars, draw_panels, labels, limit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"mosquitto": RUST, "fifo": OCHRE, "taxonomy": SKY, "heat": GREEN}
_GROUP_COLOURS = ("#c6d8cf", "#8fb8a5", "#4d937a", GREEN)
_FREQUENCY_COLOURS = (OCHRE, SKY, GREEN, RUST)

Panel = Callable[["Axes"], None]


def draw_priority(found: PriorityReproduction, directory: Path) -> list[str]:
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


_OURS, _NAIVE, _THEIRS, _PAPER = GREEN, RUST, BLUE, "#9aa5b1"
#: Shorter times are drawn as this: the axis is logarithmic.
_SHORTEST_S = 1e-3


def draw_psp(found: PlanReproduction, directory: Path) -> list[str]:
    """Write the pictures; their names, none if matplotlib is not installed."""
    if not found.measured:
        return []
    loosest = max(one.tightness for one in found.measured)
    panels: dict[str, Callable[[Axes], None]] = {
        f"Time by size, tightness {loosest:g} (the paper's: its machine, its instances)": partial(
            _times, found=found, loosest=loosest
        ),
        "A bound above the optimum bounds nothing": partial(_bounds, found=found),
    }
    if not draw_panels(panels, directory / "psp.png", size=(7.0, 4.6)):
        return []
    _smallest(directory / "psp-tiny.png")
    return ["psp.png", "psp-tiny.png"]


def _times(axis: Axes, *, found: PlanReproduction, loosest: float) -> None:
    """Seconds by size: the paper's as it prints them, and this run's at the loosest tightness."""
    sizes = list(dict.fromkeys(one.size for one in found.measured))
    places = range(len(sizes))

    def times(of: Callable[[Measured], float]) -> list[float]:
        chosen = ([one for one in found.measured if one.size == size and one.tightness == loosest] for size in sizes)
        return [max(_SHORTEST_S, median(of(one) for one in group)) for group in chosen]

    lines = (
        ([PAPER_MIP_S[size] for size in sizes], _PAPER, "s", "--", "MIP, as the paper prints it"),
        ([PAPER_LAGRANGIAN_S[size] for size in sizes], _PAPER, "v", ":", "Lagrangian, as the paper prints it"),
        (
            times(lambda one: one.naive.cpu_s),
            _NAIVE,
            "s",
            "-",
            f"naive F1 on HiGHS (at most {found.naive_limit_s:.0f} s)",
        ),
        (times(lambda one: one.lagrangian.cpu_s), _THEIRS, "v", "-", "the paper's Lagrangian, here"),
        (times(lambda one: one.ours.cpu_s), _OURS, "o", "-", "ours, to proven optimality"),
    )
    for values, colour, marker, dashes, label in lines:
        axis.plot(places, values, marker=marker, linestyle=dashes, color=colour, markersize=5, label=label)
    axis.set_yscale("log")
    axis.set_xticks(places, sizes)
    labels(axis, y="seconds")
    axis.grid(axis="y", which="major", alpha=0.3)
    axis.legend(fontsize=7.5, loc="upper left")


def _bounds(axis: Axes, *, found: PlanReproduction) -> None:
    """How far the paper's "bound" and ours are from the optimum, where all fit; what lies above bounds nothing.

    Small distances are linear and large ones logarithmic, so that one far off does not hide the others.
    """
    solved = [one for one in found.solved() if one.ours.unmet == 0 and one.optimum]
    sizes = list(dict.fromkeys(one.size for one in solved))
    spread = {id(one): number for number, one in enumerate(solved)}
    theirs, ours = [one.paper_bound for one in solved], [one.ours.bound for one in solved]
    for shift, colour, marker, label, bounds in (
        (-0.16, _THEIRS, "v", "the paper's", theirs),
        (0.16, _OURS, "o", "ours", ours),
    ):
        axis.plot(
            [sizes.index(one.size) + shift + 0.02 * (spread[id(one)] % 7 - 3) for one in solved],
            [100 * (bound / (one.optimum or 1.0) - 1) for bound, one in zip(bounds, solved, strict=True)],
            marker, color=colour, markersize=4.5, alpha=0.8, label=label,
        )  # fmt: skip
    axis.axhline(0.0, color="#444444", linewidth=1)
    axis.set_yscale("symlog", linthresh=1.0)
    axis.set_yticks([-10, -1, 0, 1, 10, 100, 1000], ["-10", "-1", "0", "1", "10", "100", "1,000"])
    axis.set_xticks(range(len(sizes)), sizes)
    labels(axis, y="bound above the optimum, percent")
    axis.grid(axis="y", which="major", alpha=0.3)
    axis.legend(fontsize=7.5, loc="best")


def _smallest(path: Path) -> None:
    """The paper's Figure 5: with broker 1 redundant, both topics meet at the subscriber."""
    from tieline.plan.draw.network import draw as draw_network
    from tieline.plan.generate.testset import tiny
    from tieline.plan.solve import solve

    instance = tiny()
    draw_network(instance, solve(instance, seconds=5.0), path)
