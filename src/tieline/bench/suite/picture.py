"""One style for all pictures: panels side by side, one colour for each peer, limits as dashed lines.

matplotlib is an extra: it is imported when something is drawn, and without it there is no picture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tieline.bench.metrics import three_digits
from tieline.bench.suite.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREEN, RUST, SKY, OCHRE, BLUE, MAUVE, GREY = (
    "#0b6e4f", "#b5532c", "#7a9cc6", "#c9a227", "#2f6fb3", "#b07aa1", "#888888",
)  # fmt: skip
_LINE = "#444444"
_DPI = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One drawing of a picture."""

    title: str
    draw: Callable[[Axes, Results], None]
    #: Whether the results have what is drawn.
    shows: Callable[[Results], bool]
    #: How high it is beside the others, where panels stand one below the other.
    height: Callable[[Results], float] | None = None


def group_panel(group: str, title: str, draw: Callable[[Axes, Results], None]) -> Panel:
    """A panel that is there if a row of this group was measured."""
    return Panel(
        title=title, draw=draw, shows=lambda results: any(row.group == group and row.metrics for row in results.rows)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The panels of a benchmark."""

    panels: Sequence[Panel]
    columns: int = 2
    #: The size of one panel.
    width: float = 6.5
    height: float = 4.1

    def draw(self, results: Results, path: Path) -> bool:
        """Write the picture; false when there is nothing to show or matplotlib is not installed."""
        shown = [panel for panel in self.panels if panel.shows(results)]
        machine = results.machine
        versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
        title = f"{versions}; {machine.get('processor')}, {machine.get('cores')} cores"
        heights = [panel.height(results) for panel in shown if panel.height is not None]
        drawings = {panel.title: _drawing(panel, results) for panel in shown}
        return draw_panels(drawings, path, columns=self.columns, size=(self.width, self.height), heights=heights,
                           title=title)  # fmt: skip


def _drawing(panel: Panel, results: Results) -> Callable[[Axes], None]:
    return lambda axis: panel.draw(axis, results)


def draw_panels(  # what is drawn and where; the rest is how it looks
    drawings: Mapping[str, Callable[[Axes], None]],
    path: Path,
    *,
    columns: int = 2,
    size: tuple[float, float] = (6.5, 4.1),
    heights: Sequence[float] = (),
    title: str = "",
    also: Sequence[str] = (),
    explain: Callable[[Figure, Sequence[Axes]], None] | None = None,
) -> bool:
    """Write a picture of some drawings by their titles; false without any, or without matplotlib.

    ``also`` are the endings of further forms, ``.svg`` for one; they hold no date, so that equal drawings are equal
    files.  ``explain`` says what the series are once all panels are drawn; without it each panel has its own legend.
    """
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError:
        return False
    if not drawings:
        return False
    columns = min(columns, len(drawings))
    lines = -(-len(drawings) // columns)
    width, height = size
    figure, axes = plt.subplots(
        lines,
        columns,
        figsize=(width * columns, sum(heights) if heights else height * lines),
        height_ratios=heights or None,
        layout="constrained",
        squeeze=False,
    )
    for axis in axes.flat[len(drawings) :]:
        axis.set_axis_off()
    for axis, (heading, drawing) in zip(axes.flat, drawings.items(), strict=False):
        axis.tick_params(labelsize=8)
        drawing(axis)
        axis.set_title(heading, loc="left", fontsize=10, fontweight="bold")
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_axisbelow(True)
        if explain is None and axis.get_legend_handles_labels()[0] and axis.get_legend() is None:
            axis.legend(fontsize=7, loc="best")
    if explain is not None:
        explain(figure, [*axes.flat[: len(drawings)]])
    if title:
        figure.suptitle(title, fontsize=9, x=0.01, ha="left")
    figure.savefig(path, dpi=_DPI)
    with mpl.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}):
        for ending in also:
            figure.savefig(path.with_suffix(ending), metadata={"Date": None})
    plt.close(figure)
    return True


def bars(
    axis: Axes, series: Mapping[str, Sequence[float]], ticks: Sequence[str], colours: Mapping[str, str], unit: str = ""
) -> None:
    """Bars side by side at each tick, one for each series, with their numbers above."""
    width = 0.78 / max(1, len(series))
    for number, (name, values) in enumerate(series.items()):
        places = [at + (number - (len(series) - 1) / 2) * width for at in range(len(values))]
        drawn = axis.bar(places, values, width=width * 0.95, color=colours.get(name, GREY), label=name)
        axis.bar_label(drawn, [f"{three_digits(value)}{unit}" if value else "0" for value in values], fontsize=7)
    axis.set_xticks(range(len(ticks)), list(ticks), fontsize=7)
    axis.margins(y=0.15)
    # a few bars do not have to fill the panel
    axis.set_xlim(-0.8, max(len(ticks), 3) - 0.2)
    axis.grid(axis="y", which="major", alpha=0.3)


def points(
    axis: Axes, series: Mapping[str, Sequence[tuple[float, float]]], colours: Mapping[str, str], style: str = "o"
) -> None:
    """Points on a logarithmic axis, where bars would begin nowhere: one colour for each series."""
    for name, places in series.items():
        if places:
            axis.plot(*zip(*places, strict=True), style, markersize=6, color=colours.get(name, GREY), label=name)
    axis.set_yscale("log")
    axis.grid(axis="y", which="major", alpha=0.3)


def limit(axis: Axes, value: float | None, text: str = "") -> None:
    """A dashed line that numbers are to stay below, or above."""
    if value is None:
        return
    axis.axhline(value, color=_LINE, linewidth=1, linestyle="--")
    if text:
        axis.annotate(text, (axis.get_xlim()[0], value), xytext=(2, 3), textcoords="offset points", fontsize=8)


def labels(axis: Axes, *, x: str = "", y: str = "") -> None:
    """What the axes are."""
    axis.set_xlabel(x, fontsize=8)
    axis.set_ylabel(y, fontsize=8)
