"""The one style of all figures: a line or bar through the medians, and every seed a dot.

A figure is written as PNG, for pages, and as SVG, for print.  Colours go by role, so that ours is green and what it is
compared with has the same colour in all five papers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tieline.bench.papers.frame.declaration import Panel
from tieline.bench.papers.frame.table import Cell, Table
from tieline.bench.suite.picture import BLUE, GREEN, GREY, MAUVE, OCHRE, RUST, SKY, draw_panels, labels, limit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "bars", "colour", "draw", "labels", "limit", "lines"]

#: What a series is to the reader; names that are none of these are taken for colours themselves.
COLOURS: Final = {
    "ours": GREEN, "paper": BLUE, "baseline": RUST, "second": OCHRE, "third": SKY, "fourth": MAUVE, "bound": GREY,
}  # fmt: skip
_IN_TURN: Final = tuple(COLOURS.values())
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
Roles = Mapping[str, str]
_NONE: Final[Roles] = MappingProxyType({})


def draw(panels: Mapping[str, Panel], stem: Path, *, columns: int, size: tuple[float, float]) -> bool:
    """Write a figure as ``stem``.png and .svg; false without matplotlib, or if nothing is to be drawn."""
    framed = {title: _framed(panel) for title, panel in panels.items()}
    return draw_panels(framed, stem.with_name(f"{stem.name}.png"), columns=columns, size=size, also=(".svg",))


def _framed(panel: Panel) -> Panel:
    def drawn(axis: Axes) -> None:
        panel(axis)
        axis.grid(axis="y", which="major", alpha=0.25)
        if axis.get_legend() is None and axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=7.5, loc="best", framealpha=0.85, edgecolor="none")

    return drawn


def colour(roles: Roles, name: str, number: int) -> str:
    """The colour of a series: by its role, or the next one in turn."""
    role = roles.get(name)
    return _IN_TURN[number % len(_IN_TURN)] if role is None else COLOURS.get(role, role)


def _written(word: str) -> Callable[[Cell], bool]:
    """Whether a cell reads so."""
    return lambda cell: str(cell) == word


def lines(  # table, two axes and a series are what a line is; the rest is how it looks
    axis: Axes,
    table: Table,
    *,
    x: str,
    y: str,
    series: str = "",
    colours: Roles = _NONE,
    names: Mapping[str, str] = _NONE,
    scale: float = 1.0,
    style: Callable[[str], str] = lambda _name: "-",
) -> None:
    """A line through the medians for each series, and a dot for each row.

    ``x`` may be words: they stand side by side in the order of the rows.  ``scale`` multiplies y.
    """
    words: list[Cell] = [] if table.column(x) else table.values(x)
    for number, name in enumerate(table.words(series) if series else [""]):
        chosen = table.where(**{series: _written(name)}) if series else table
        ink, marker = colour(colours, name, number), _MARKERS[number % len(_MARKERS)]
        places: list[float] = []
        middles: list[float] = []
        keys: Sequence[Cell] = words or chosen.numbers(x)
        for place, key in enumerate(keys):
            here = chosen.where(**{x: key})
            values = [scale * value for value in here.column(y)]
            if not values:
                continue
            at = float(place) if isinstance(key, str) or key is None else float(key)
            places.append(at)
            middles.append(scale * here.median(y))
            if len(values) > 1:
                axis.plot([at] * len(values), values, ".", color=ink, markersize=4, alpha=0.45, zorder=2)
        label = names.get(name, name)
        axis.plot(
            places,
            middles,
            linestyle=style(name),
            marker=marker,
            markersize=4.5,
            color=ink,
            label=label or None,
            zorder=3,
        )
    if words:
        axis.set_xticks(range(len(words)), table.words(x), fontsize=8)


def bars(  # as lines
    axis: Axes,
    table: Table,
    *,
    x: str,
    y: str,
    series: str = "",
    colours: Roles = _NONE,
    names: Mapping[str, str] = _NONE,
    scale: float = 1.0,
) -> None:
    """Bars at the medians, side by side for each value of x, with a dot for each row."""
    ticks, shown = table.words(x), table.words(series) if series else [""]
    width = 0.8 / max(1, len(shown))
    for number, name in enumerate(shown):
        ink = colour(colours, name, number)
        chosen = table.where(**{series: _written(name)}) if series else table
        at_once = True
        for place, tick in enumerate(ticks):
            here = chosen.where(**{x: _written(tick)})
            values = [scale * value for value in here.column(y)]
            if not values:
                continue
            at = place + (number - (len(shown) - 1) / 2) * width
            label = names.get(name, name) if at_once else None
            at_once = False
            axis.bar(at, scale * here.median(y), width=width * 0.92, color=ink, alpha=0.8, label=label or None)
            if len(values) > 1:
                axis.plot([at] * len(values), values, ".", color="#222222", markersize=3.5, alpha=0.7)
    turned = max(map(len, ticks), default=0) > 14 and len(ticks) > 4
    axis.set_xticks(
        range(len(ticks)), ticks, fontsize=8, rotation=30 if turned else 0, ha="right" if turned else "center"
    )
    axis.margins(y=0.12)
    axis.set_xlim(-0.6, max(len(ticks), 2) - 0.4)
