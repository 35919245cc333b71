"""How the pictures look: colours and sizes, and a column beside the network that says what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap

INK: Final = "#1f2933"
QUIET: Final = "#7b8794"
#: A link that carries nothing.
UNUSED: Final = "#d5dae0"
BROKER: Final = "#27364a"
PUBLISHER: Final = "#0b7a5b"
SUBSCRIBER: Final = "#ffffff"
SUBSCRIBER_EDGE: Final = "#3d5a80"
UNMET: Final = "#b5179e"
#: A link that carries something and has no limit.
LIMITLESS: Final = "#52606d"
#: A link of a network without a plan.
CAPACITY: Final = "#a9b4c0"
#: From idle to full.  Lightness falls all the way, so that it can be read in grey and by every eye.
_RAMP: Final = ("#f0dca0", "#f2ab3c", "#dd5f1e", "#8a1a12")
#: Points, in a picture with room.
THINNEST, WIDEST = 1.1, 6.5
#: Inches.
LEGEND_IN = 1.95
_ROW_IN, _GAP_IN, _RAMP_IN = 0.24, 0.12, 1.15
#: Above the first row, and below the last one.
_EDGE_IN = 0.25


def utilisation_colours() -> LinearSegmentedColormap:
    """The colour of a link by the share of its capacity that is used."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("utilisation", list(zip((0.0, 0.5, 0.8, 1.0), _RAMP, strict=True)))


def width_of(load: float, greatest: float, widest: float = WIDEST) -> float:
    """Points for a link that carries so much; by the root, since loads differ by orders of magnitude."""
    return THINNEST + (widest - THINNEST) * (max(load, 0.0) / greatest) ** 0.5 if greatest > 0 else THINNEST


class _Column:
    """Rows from the top down; the axes' unit is an inch."""

    def __init__(self, axes: Axes, height: float) -> None:
        self.axes = axes
        self.y = height - _EDGE_IN
        axes.set_xlim(0, LEGEND_IN)
        axes.set_ylim(0, height)
        axes.set_xticks([])
        axes.set_yticks([])

    def heading(self, text: str) -> None:
        self.y -= _GAP_IN
        self.axes.text(0.05, self.y, text, fontsize=8, fontweight="bold", color=INK, va="center")
        self.y -= _ROW_IN

    def note(self, text: str) -> None:
        self.axes.text(0.05, self.y + 0.05, text, fontsize=7, color=QUIET, va="center")
        self.y -= _ROW_IN - 0.04

    def words(self, text: str) -> None:
        self.axes.text(0.55, self.y, text, fontsize=8, color=INK, va="center")
        self.y -= _ROW_IN

    def line(self, text: str, colour: str, width: float, dashes: str = "-") -> None:
        self.axes.plot(
            [0.1, 0.42], [self.y, self.y], color=colour, linewidth=width, linestyle=dashes, solid_capstyle="round"
        )
        self.words(text)

    def node(self, text: str, marker: str, face: str, edge: str) -> None:
        self.axes.scatter([0.26], [self.y], s=60, marker=marker, c=face, edgecolors=edge, linewidths=1.2)
        self.words(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What occurs in a picture, and so needs to be explained."""

    #: Of the links that carry something.
    loads: Sequence[float]
    #: The width of the link that carries most, in points.
    widest: float
    has_plan: bool
    #: Whether one topic is picked out.
    is_topic: bool
    has_limits: bool
    has_limitless: bool
    has_unmet: bool
    has_dashes: bool


def legend_height(signs: Signs) -> float:
    """Inches that the column takes from its upper to its lower edge."""
    headings = [True, bool(signs.loads), signs.has_limits, signs.has_dashes]
    rows = 3 + signs.has_unmet + (len(_samples(signs.loads)) + 1 if signs.loads else 0) + signs.has_plan
    rows += signs.has_limitless and signs.has_limits
    rows += signs.has_dashes
    ramp = (_RAMP_IN + _ROW_IN) * signs.has_limits
    return sum(headings) * (_GAP_IN + _ROW_IN) + rows * _ROW_IN + ramp + 2 * _EDGE_IN


def _samples(loads: Sequence[float]) -> list[float]:
    """The most, the middle and the least, without repetition as they are written."""
    found = {_written(load): load for load in (max(loads), median(loads), min(loads))}
    return list(found.values())


def _written(load: float) -> str:
    return f"{load:,.4g}" if load < 10_000 else f"{load:,.0f}"


def draw_legend(axes: Axes, height: float, signs: Signs) -> None:
    """Explain what is in the picture, and only that."""
    column = _Column(axes, height)
    column.heading("nodes")
    column.node("broker", "o", BROKER, "white")
    column.node("publisher", "^", PUBLISHER, "white")
    column.node("subscriber", "o", SUBSCRIBER, SUBSCRIBER_EDGE)
    if signs.has_unmet:
        axes.scatter([0.26], [column.y], s=130, facecolors="none", edgecolors=UNMET, linewidths=1.8)
        axes.scatter([0.26], [column.y], s=28, marker="x", c=UNMET, linewidths=1.4)
        column.words("misses a topic")
    if signs.loads:
        greatest = max(signs.loads)
        column.heading("load of a link" if signs.has_plan else "capacity of a link")
        column.note("in the unit of the rates")
        for load in _samples(signs.loads):
            width = width_of(load, greatest, signs.widest)
            column.line(_written(load), LIMITLESS if signs.has_plan else CAPACITY, width)
    if signs.has_plan:
        column.line("other links" if signs.is_topic else "carries nothing", UNUSED, 0.9)
    if signs.has_limits:
        column.heading("capacity in use")
        _ramp(column)
    if signs.has_limitless and signs.has_limits:
        column.line("no limit", LIMITLESS, 2.0)
    if signs.has_dashes:
        column.heading("requests")
        column.line("unmet", UNMET, 1.0, "--")


def _ramp(column: _Column) -> None:
    import numpy as np

    bottom, top = column.y - _RAMP_IN, column.y - 0.02
    column.axes.imshow(
        np.linspace(0, 1, 128).reshape(-1, 1),
        extent=(0.16, 0.36, bottom, top),
        cmap=utilisation_colours(),
        origin="lower",
        aspect="auto",
    )
    # an image sets the limits of its axes to its own
    column.axes.set_xlim(0, LEGEND_IN)
    for part in (0.0, 0.5, 1.0):
        column.axes.text(
            0.55, bottom + part * (top - bottom), f"{100 * part:.0f} %", fontsize=8, color=INK, va="center"
        )
    column.y = bottom - _ROW_IN
