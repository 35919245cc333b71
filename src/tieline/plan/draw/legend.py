"""What the signs in a picture of a network mean, in a column beside it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from tieline.plan.draw import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Inches.
LEGEND_IN = 1.95
#: The column is never higher.
LEGEND_HEIGHT_IN = 5.0
_ROW_IN = 0.24


class _Column:
    """Rows from the top down; the axes' unit is an inch."""

    def __init__(self, axes: Axes, height: float) -> None:
        self.axes = axes
        self.y = height - 0.2
        axes.set_xlim(0, LEGEND_IN)
        axes.set_ylim(0, height)
        axes.set_xticks([])
        axes.set_yticks([])

    def heading(self, text: str) -> None:
        self.y -= 0.12
        self.axes.text(0.05, self.y, text, fontsize=8, fontweight="bold", color=style.INK, va="center")
        self.y -= _ROW_IN

    def words(self, text: str) -> None:
        self.axes.text(0.55, self.y, text, fontsize=8, color=style.INK, va="center")
        self.y -= _ROW_IN

    def line(self, text: str, colour: str, width: float, dashes: str = "-") -> None:
        self.axes.plot(
            [0.1, 0.42], [self.y, self.y], color=colour, linewidth=width, linestyle=dashes, solid_capstyle="round"
        )
        self.words(text)

    def node(self, text: str, marker: str, face: str, edge: str) -> None:
        self.axes.scatter([0.26], [self.y], s=60, marker=marker, c=face, edgecolors=edge, linewidths=1.2)
        self.words(text)


def draw_legend(
    axes: Axes,
    height: float,
    *,
    loads: Sequence[float],
    widest: float,
    has_plan: bool,
    is_topic: bool,
    has_limits: bool,
    has_limitless: bool,
    has_unmet: bool,
    has_dashes: bool,
) -> None:
    """Explain what is in the picture, and only that; ``loads`` are those of the links that carry something."""
    column = _Column(axes, height)
    column.heading("nodes")
    column.node("broker", "o", style.BROKER, "white")
    column.node("publisher", "^", style.PUBLISHER, "white")
    column.node("subscriber", "o", style.SUBSCRIBER, style.SUBSCRIBER_EDGE)
    if has_unmet:
        axes.scatter([0.26], [column.y], s=130, facecolors="none", edgecolors=style.UNMET, linewidths=1.8)
        axes.scatter([0.26], [column.y], s=28, marker="x", c=style.UNMET, linewidths=1.4)
        column.words("misses a topic")
    greatest = max(loads, default=0.0)
    if greatest > 0:
        column.heading("load of a link" if has_plan else "capacity of a link")
        samples = (greatest, median(loads), min(loads))
        for load in dict.fromkeys(samples):
            column.line(
                f"{load:,.4g}",
                style.LIMITLESS if has_plan else style.CAPACITY,
                style.width_of(load, greatest, widest),
            )
    if has_plan:
        column.line("other links" if is_topic else "carries nothing", style.UNUSED, 0.9)
    if has_limits:
        column.heading("capacity in use")
        _ramp(column)
    if has_limitless and has_limits:
        column.line("no limit", style.LIMITLESS, 2.0)
    if has_dashes:
        column.heading("requests")
        column.line("unmet", style.UNMET, 1.0, "--")


def _ramp(column: _Column) -> None:
    import numpy as np

    bottom, top = column.y - 1.15, column.y - 0.02
    column.axes.imshow(
        np.linspace(0, 1, 128).reshape(-1, 1),
        extent=(0.16, 0.36, bottom, top),
        cmap=style.utilisation_colours(),
        origin="lower",
        aspect="auto",
    )
    # an image sets the limits of its axes to its own
    column.axes.set_xlim(0, LEGEND_IN)
    for part in (0.0, 0.5, 1.0):
        column.axes.text(
            0.55, bottom + part * (top - bottom), f"{100 * part:.0f} %", fontsize=8, color=style.INK, va="center"
        )
    column.y = bottom - _ROW_IN
