"""The one style of figures: what the series are is said where it hides nothing, and no line hides another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tieline.bench.papers.frame import drawing
from tieline.bench.papers.frame.declaration import Panel
from tieline.bench.papers.frame.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = {"name": "name", "x": "x", "seed": "seed", "y": "y"}
NAMES = [f"a series with a long name, number {number}" for number in range(7)]


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are drawn, which nobody closes."""
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="without matplotlib there are no drawings")
    drawn: list[Figure] = []
    monkeypatch.setattr(pyplot, "close", drawn.append)
    return drawn


def panel(table: Table) -> Panel:
    def drawn(axis: Axes) -> None:
        drawing.lines(axis, table, x="x", y="y", series="name")
        drawing.labels(axis, x="nodes" if len(table.rows) > 8 else "")

    return drawn


def series(*names: str) -> Table:
    return Table("t", COLUMNS, [(name, x, 0, 10.0 * n + x) for n, name in enumerate(names, 1) for x in range(4)])


def test_panels_of_the_same_series_have_one_legend_that_hides_no_point(tmp_path: Path, figures: list[Figure]) -> None:
    one = panel(series(*NAMES))
    assert drawing.draw({"left": one, "right": one}, tmp_path / "fig", columns=2, size=(6.0, 4.0))
    (figure,) = figures
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == NAMES
    assert all(axis.get_legend() is None for axis in figure.axes)
    box, page = legend.get_window_extent(), figure.bbox
    assert box.x0 >= page.x0 and box.x1 <= page.x1 and box.y0 >= page.y0
    assert not any(box.overlaps(axis.get_window_extent()) for axis in figure.axes)


def test_panels_of_other_series_have_each_their_own_below_it(tmp_path: Path, figures: list[Figure]) -> None:
    panels = {"left": panel(series(*NAMES[:5])), "right": panel(series("other", "another"))}
    drawing.draw(panels, tmp_path / "fig", columns=2, size=(6.0, 4.0))
    (figure,) = figures
    assert not figure.legends
    for axis in figure.axes:
        legend = axis.get_legend()
        assert legend is not None
        box = legend.get_window_extent()
        numbers = axis.xaxis.get_tightbbox()
        assert numbers is not None
        assert figure.bbox.y0 <= box.y0 and box.y1 <= numbers.y0 + 1.0


def test_a_line_that_would_hide_another_one_is_dashed(tmp_path: Path, figures: list[Figure]) -> None:
    rows = [(name, x, 0, y) for name, y in (("first", 100.0), ("same", 99.5), ("far", 50.0)) for x in range(3)]
    drawing.draw({"one": panel(Table("t", COLUMNS, rows))}, tmp_path / "fig", columns=1, size=(6.0, 4.0))
    first, same, far = figures[0].axes[0].get_lines()
    assert (first.get_linestyle(), far.get_linestyle()) == ("-", "-")
    assert same.get_linestyle() == "--" and same.get_markerfacecolor() == "none"
    assert same.get_markersize() > first.get_markersize()


def test_a_logarithmic_axis_has_numbers_that_one_reads(tmp_path: Path, figures: list[Figure]) -> None:
    def drawn(axis: Axes) -> None:
        axis.plot([1, 2], [0.1, 10_000.0])
        axis.set_yscale("log")
        drawing.plain_ticks(axis)

    drawing.draw({"one": drawn}, tmp_path / "fig", columns=1, size=(6.0, 4.0))
    words = {label.get_text() for label in figures[0].axes[0].get_yticklabels()}
    assert {"0.1", "1", "10", "1,000", "10,000"} <= words


def test_one_group_of_bars_fills_its_panel(tmp_path: Path, figures: list[Figure]) -> None:
    table = Table("t", COLUMNS, [(f"group {number}", "all", 0, 5.0) for number in range(4)])
    drawing.draw({"one": lambda axis: drawing.bars(axis, table, x="x", y="y", series="name")},
                 tmp_path / "fig", columns=1, size=(6.0, 4.0))  # fmt: skip
    axis = figures[0].axes[0]
    left, right = axis.get_xlim()
    assert (right - left) < 1.5 and left + right == pytest.approx(0.0)
