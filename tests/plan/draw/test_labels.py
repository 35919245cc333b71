"""Names stand beside their nodes, inside the picture, and are not cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.plan.worlds import small
from tieline.plan.arrays import arrays
from tieline.plan.certify import certified, shortest_paths_bound
from tieline.plan.draw.labels import (
    LabelPlacer,
    beyond,
    boxes_around,
    labelled,
    points_along,
    points_along_bends,
    shortened,
    told_apart,
)
from tieline.plan.draw.legend import LEGEND_IN, Signs, draw_legend, legend_height
from tieline.plan.draw.network import Drawing, draw, scene_of
from tieline.plan.greedy import greedy
from tieline.plan.instance import Instance, Link, Node, Topic

figure = pytest.importorskip("matplotlib.figure", reason="pictures need matplotlib")


def long_names() -> Instance:
    """Brokers and clients as the pipeline names them."""
    brokers = [f"broker-substation-{name}.grid.example" for name in ("north", "south", "control-centre")]
    clients = [f"site/{number}/meter-with-a-long-name-{number}" for number in range(8)]
    return Instance(
        name="traffic measured between 08:00 and 09:00 at three brokers, in bytes for each second of that hour",
        nodes=(
            *(Node(id=name, roles=("broker",)) for name in brokers),
            *(Node(id=name, roles=("publisher", "subscriber")) for name in clients),
        ),
        links=(
            *(Link(a=brokers[a], b=brokers[b], capacity=1234.5, cost=1.0) for a, b in ((0, 1), (1, 2), (0, 2))),
            *(Link(a=name, b=brokers[number % 3], capacity=np.inf, cost=0.0) for number, name in enumerate(clients)),
        ),
        topics=tuple(
            Topic(id=f"grid/{name}/power", source=name, rate=700.5, subscribers=(clients[(number + 1) % 8],))
            for number, name in enumerate(clients)
        ),
    )


@pytest.mark.parametrize("instance", [long_names(), *(small(seed) for seed in range(4))], ids=lambda one: one.name[:8])
def test_no_name_is_cut_and_none_covers_another(instance: Instance) -> None:
    compact = arrays(instance)
    plan = certified(compact, greedy(compact), method="greedy", bound=shortest_paths_bound(compact), seconds=0.0)
    axes = figure.Figure().add_subplot()
    inches = (7.0, 5.0)
    drawing = Drawing(scene_of(instance, plan, None), axes, inches)
    assert beyond(drawing.spots, (72 * inches[0], 72 * inches[1])) == (0.0, 0.0, 0.0, 0.0)
    for number, box in enumerate(drawing.spots):
        for other in drawing.spots[:number]:
            apart = (box[0] >= other[2]) | (box[2] <= other[0]) | (box[1] >= other[3]) | (box[3] <= other[1])
            assert apart, f"{box} and {other}"


def test_labels_do_not_cover_nodes_where_there_is_room() -> None:
    at = np.array([[0.0, 0.0], [60.0, 0.0], [0.0, 60.0], [60.0, 60.0]])
    nodes = boxes_around(at, np.full(4, 3.0))
    placer = LabelPlacer(nodes, points_along(at, np.array([[0, 1]]), 1.0))
    boxes = placer.place(at, [20.0, 25.0, 30.0, 15.0], radius=np.full(4, 3.0), line=6.0)
    for box in boxes:
        assert all(box[0] >= node[2] or box[2] <= node[0] or box[1] >= node[3] or box[3] <= node[1] for node in nodes)


def test_long_names_lose_their_middle_and_keep_what_tells_them_apart() -> None:
    assert shortened("hill") == "hill"
    one, other = shortened("broker-substation-north.grid.example"), shortened("broker-substation-south.plain.example")
    assert one != other and len(one) == len(other) == 24
    assert one.startswith("broker-subst") and one.endswith("grid.example"[-11:])


def test_names_that_would_look_alike_show_where_they_differ() -> None:
    names = [f"broker-substation-{name}.grid.example" for name in ("north", "south")]
    assert told_apart(names) == ["broker…north.grid.examp…", "broker…south.grid.examp…"]
    assert told_apart(["hill", "mill"]) == ["hill", "mill"]


def test_widths_are_those_of_the_typeface() -> None:
    thin, wide, bold = labelled(["iiii", "mmmm", "iiii"], [False, False, True], 8.0)
    assert thin.width < bold.width < wide.width


def test_bends_begin_and_end_at_their_nodes() -> None:
    at = np.array([[0.0, 0.0], [100.0, 0.0]])
    points = points_along_bends(at, [(0, 1)], 5.0)
    assert points[0] == pytest.approx(at[0]) and points[-1] == pytest.approx(at[1])
    assert points[:, 1].min() == pytest.approx(-9.0, abs=0.5)  # half of 0.18 of the distance


@pytest.mark.parametrize("has_plan", [False, True])
@pytest.mark.parametrize("has_limits", [False, True])
@pytest.mark.parametrize("has_unmet", [False, True])
def test_the_legend_is_as_high_as_it_says(has_plan: bool, has_limits: bool, has_unmet: bool) -> None:
    signs = Signs(
        loads=[9.0, 4.0, 1.0], widest=6.0, has_plan=has_plan, is_topic=False, has_limits=has_limits, has_limitless=True,
        has_unmet=has_unmet, has_dashes=has_unmet,
    )  # fmt: skip
    height = legend_height(signs)
    axes = figure.Figure(figsize=(LEGEND_IN, height)).add_axes((0, 0, 1, 1))
    draw_legend(axes, height, signs)
    low, high = min(text.get_position()[1] for text in axes.texts), max(text.get_position()[1] for text in axes.texts)
    assert 0.1 < low < 0.6 and height - 0.6 < high < height


def test_a_picture_of_long_names_is_drawn(tmp_path: Path) -> None:
    draw(long_names(), None, tmp_path / "long.png")
    assert (tmp_path / "long.png").stat().st_size > 10_000
