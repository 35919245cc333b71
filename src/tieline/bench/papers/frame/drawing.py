"""The one style of all figures: a line or bar through the medians, and every seed a dot.

A figure is written as PNG, for pages, and as SVG, for print.  Colours go by role, so that ours is green and what it is
compared with has the same colour in all five papers.  What the series are stands below the panels, where it hides no
point, and once if all panels have the same.  A line that runs where another one does is dashed and has hollow marks, so
that both can be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tieline.bench.papers.frame.declaration import Panel
from tieline.bench.papers.frame.table import Cell, Table
from tieline.bench.suite.picture import BLUE, GREEN, GREY, MAUVE, OCHRE, RUST, SKY, draw_panels, labels, limit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "bars", "colour", "draw", "labels", "limit", "lines", "plain_ticks"]

#: What a series is to the reader; names that are none of these are taken for colours themselves.
COLOURS: Final = {
    "ours": GREEN, "paper": BLUE, "baseline": RUST, "second": OCHRE, "third": SKY, "fourth": MAUVE, "bound": GREY,
}  # fmt: skip
_IN_TURN: Final = tuple(COLOURS.values())
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
Roles = Mapping[str, str]
_NONE: Final[Roles] = MappingProxyType({})
#: Two lines are one to the eye if no point is further apart than this share of the greatest.
_SAME_TO_THE_EYE: Final = 0.012
#: Inches of a letter of the legend, and of what stands before its words.
_LETTER_IN, _SIGN_IN = 0.062, 0.6
_SMALL: Final = 7.5
#: How far below an axis its legend begins, in heights of a letter: past the numbers, and past the words.
_BELOW_TICKS, _BELOW_WORDS = 2.4, 4.2


def draw(panels: Mapping[str, Panel], stem: Path, *, columns: int, size: tuple[float, float]) -> bool:
    """Write a figure as ``stem``.png and .svg; false without matplotlib, or if nothing is to be drawn."""
    framed = {title: _framed(panel) for title, panel in panels.items()}
    place = stem.with_name(f"{stem.name}.png")
    return draw_panels(framed, place, columns=columns, size=size, also=(".svg",),
                       explain=partial(_explained, columns=columns))  # fmt: skip


def _framed(panel: Panel) -> Panel:
    def drawn(axis: Axes) -> None:
        panel(axis)
        axis.grid(axis="y", which="major", alpha=0.25)

    return drawn


def _explained(figure: Figure, axes: Sequence[Axes], *, columns: int) -> None:
    """One legend below the figure if all panels that need one need the same, else one below each of them."""
    found = [(axis, *axis.get_legend_handles_labels()) for axis in axes]
    named = [(axis, handles, words) for axis, handles, words in found if words]
    if not named:
        return
    _, handles, words = named[0]
    if all(set(others) == set(words) for _, _, others in named):
        figure.legend(handles, words, loc="outside lower center", ncols=_beside(words, figure.get_figwidth()),
                      fontsize=_SMALL, frameon=False)  # fmt: skip
        return
    width = figure.get_figwidth() / min(len(axes), columns)
    for axis, handles, words in named:
        below = _BELOW_WORDS if axis.get_xlabel() else _BELOW_TICKS
        axis.legend(handles, words, loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=below, frameon=False,
                    ncols=_beside(words, 0.85 * width), fontsize=_SMALL)  # fmt: skip


def _beside(words: Sequence[str], inches: float) -> int:
    """How many columns of a legend have room in so many inches; columns are filled one after the other."""
    for columns in range(len(words), 1, -1):
        rows = -(-len(words) // columns)
        longest = [max(map(len, words[first : first + rows])) for first in range(0, len(words), rows)]
        if len(longest) * _SIGN_IN + _LETTER_IN * sum(longest) <= inches:
            return len(longest)
    return 1


def plain_ticks(axis: Axes, which: str = "y") -> None:
    """Write the numbers along a logarithmic axis as one reads them: 1,000 and 0.1, not powers of ten."""
    chosen = axis.yaxis if which == "y" else axis.xaxis
    chosen.set_major_formatter(lambda value, _place: f"{value:,.10g}")


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
        below = _lines_below(axis, places, middles)
        axis.plot(
            places,
            middles,
            linestyle=(0, (3, 3 + 2 * below)) if below and style(name) == "-" else style(name),
            marker=marker,
            markersize=4.5 + 3 * below,
            markerfacecolor="none" if below else ink,
            color=ink,
            label=label or None,
            zorder=3 + below,
        )
    if words:
        axis.set_xticks(range(len(words)), table.words(x), fontsize=8)


def _lines_below(axis: Axes, places: Sequence[float], middles: Sequence[float]) -> int:
    """How many of the lines that are there already a new one would hide."""
    import numpy as np

    count = 0
    for line in axis.get_lines():
        if len(places) < 2 or line.get_marker() == ".":
            continue
        others, other = (np.asarray(data, float) for data in line.get_data(orig=False))
        if np.array_equal(others, places):
            room = _SAME_TO_THE_EYE * float(np.abs([*other, *middles]).max())
            count += bool((np.abs(other - middles) <= room).all())
    return count


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
    ticks: Mapping[str, str] = _NONE,
) -> None:
    """Bars at the medians, side by side for each value of x, with a dot for each row.

    ``ticks`` are words for values of x.
    """
    places, shown = table.words(x), table.words(series) if series else [""]
    words = [ticks.get(place, place) for place in places]
    width = 0.8 / max(1, len(shown))
    for number, name in enumerate(shown):
        ink = colour(colours, name, number)
        chosen = table.where(**{series: _written(name)}) if series else table
        at_once = True
        for place, value in enumerate(places):
            here = chosen.where(**{x: _written(value)})
            values = [scale * value for value in here.column(y)]
            if not values:
                continue
            at = place + (number - (len(shown) - 1) / 2) * width
            label = names.get(name, name) if at_once else None
            at_once = False
            axis.bar(at, scale * here.median(y), width=width * 0.92, color=ink, alpha=0.8, label=label or None)
            if len(values) > 1:
                axis.plot([at] * len(values), values, ".", color="#222222", markersize=3.5, alpha=0.7)
    turned = max(map(len, words), default=0) > 14 and len(words) > 4
    axis.set_xticks(
        range(len(words)), words, fontsize=8, rotation=30 if turned else 0, ha="right" if turned else "center"
    )
    axis.margins(y=0.12)
    # a single bar does not have to fill the panel, a single group of them does
    edge = 0.6 if len(words) * len(shown) > 2 else 1.2
    axis.set_xlim(-edge, len(words) - 1 + edge)
