"""The pictures of the reproduction: times by size, the paper's "bound" against the optimum, its smallest network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tieline.bench.papers.psp_record import PAPER_LAGRANGIAN_S, PAPER_MIP_S, Measured, PlanReproduction
from tieline.bench.suite.picture import BLUE, GREEN, RUST, draw_panels, labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OURS, _NAIVE, _THEIRS, _PAPER = GREEN, RUST, BLUE, "#9aa5b1"
#: Shorter times are drawn as this: the axis is logarithmic.
_SHORTEST_S = 1e-3


def draw(found: PlanReproduction, directory: Path) -> list[str]:
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
