"""The picture of a network with its flows: width by load, colour by utilisation, unmet requests marked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tieline.extras import needs
from tieline.plan.arrays import Flags, Floats, Ints
from tieline.plan.draw.labels import (
    BEND,
    Label,
    LabelPlacer,
    beyond,
    boxes_around,
    labelled,
    points_along,
    points_along_bends,
    shortened,
)
from tieline.plan.draw.layout import places
from tieline.plan.draw.legend import (
    BROKER,
    CAPACITY,
    INK,
    LEGEND_IN,
    LIMITLESS,
    PUBLISHER,
    QUIET,
    SUBSCRIBER,
    SUBSCRIBER_EDGE,
    UNMET,
    UNUSED,
    WIDEST,
    Signs,
    draw_legend,
    legend_height,
    utilisation_colours,
    width_of,
)
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan
from tieline.plan.proof import examine
from tieline.plan.routes import Route

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: More nodes than this, and only brokers have names; more than that, and nobody has.
_ALL_NAMED = 130
_BROKERS_NAMED = 350
#: More unmet requests than this are marked at their subscribers only.
DASHES = 40
#: How often the network is made smaller so that names fit beside it.
_FITTINGS = 4
#: Points: a node that misses something has a ring around it.
_RING = 3.5
#: Points: short names fit into circles of this radius.
_ROOMY = 8.0
_TITLE_IN = 0.75
_TITLE_POINTS, _WORDS_POINTS = 13.0, 9.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sketch:
    """What is to be drawn, as numbers."""

    instance: Instance
    plan: Plan | None
    at: Floats
    ends: Ints
    #: Per link; of the topic alone where one is picked out.
    load: Floats
    #: NaN where a link has no limit or there is no plan.
    used: Floats
    #: Subscribers that miss something, and how many topics each.
    missing: dict[int, int]
    #: Source and subscriber of every unmet request.
    unmet: list[tuple[int, int]]
    #: The topic that is picked out, if one is, and its arcs, tail and head.
    picked: str
    arcs: list[tuple[int, int]]

    @property
    def has_limits(self) -> bool:
        return bool(np.isfinite(self.used).any())


def scene_of(instance: Instance, plan: Plan | None, topic: tuple[str, str] | None) -> Sketch:
    """The scene of a plan, or of a bare network; of one topic, if its id and source are given."""
    number = {node.id: place for place, node in enumerate(instance.nodes)}
    ends = np.array([(number[link.a], number[link.b]) for link in instance.links], np.int64).reshape(-1, 2)
    routes: tuple[Route, ...] = () if plan is None else plan.routes
    capacity = np.array([link.capacity for link in instance.links])
    if plan is None:
        load = np.where(np.isfinite(capacity), capacity, 0.0)
        used = np.full(len(capacity), np.nan)
    else:
        load = np.array(examine(instance, routes).load)
        used = np.where(np.isfinite(capacity) & (capacity > 0), load / np.maximum(capacity, 1e-12), np.nan)
    arcs: list[tuple[int, int]] = []
    if topic is not None:
        routes = tuple(route for route in routes if (route.topic, route.source) == topic)
        arcs = [(number[hop.tail], number[hop.head]) for route in routes for hop in route.links]
        on_tree = {frozenset(arc) for arc in arcs}
        load = np.where([frozenset(map(int, pair)) in on_tree for pair in ends], load, 0.0)
    unmet = [(number[route.source], number[name]) for route in routes for name in route.unmet]
    missing: dict[int, int] = {}
    for _, subscriber in unmet:
        missing[subscriber] = missing.get(subscriber, 0) + 1
    return Sketch(
        instance=instance,
        plan=plan,
        at=places(instance),
        ends=ends,
        load=load,
        used=used,
        missing=missing,
        unmet=unmet,
        picked="" if topic is None else topic[0],
        arcs=arcs,
    )


class Drawing:
    """The network inside its axes, whose unit is a point on paper."""

    def __init__(self, scene: Sketch, axes: Axes, inches: tuple[float, float]) -> None:
        self.scene = scene
        self.axes = axes
        nodes = scene.instance.nodes
        self.is_broker: Flags = np.array([node.is_broker for node in nodes], np.bool_)
        spacing = 72 * min(inches) / max(2.0, math.sqrt(max(1, len(nodes))))
        #: Points.
        self.radius: Floats = np.where(self.is_broker, 1.0, 0.72) * float(np.clip(spacing / 7.0, 2.2, 9.0))
        self.letter = float(np.clip(spacing / 8.5, 5.0, 8.5))
        self.widest = float(np.clip(spacing / 9.0, 2.5, WIDEST))
        self.frame = (72 * inches[0], 72 * inches[1])
        self.named = self._named()
        self.at: Floats = np.zeros_like(scene.at)
        #: The box of each name that stands beside its node.
        self.spots: Floats = np.zeros((0, 4))
        self._fit()
        axes.set_xlim(0, self.frame[0])
        axes.set_ylim(0, self.frame[1])
        axes.set_xticks([])
        axes.set_yticks([])

    def _fit(self) -> None:
        """Make the network as large as fits together with the names of its outer nodes."""
        scene, radius = self.scene, float(self.radius.max(initial=0.0))
        margins = np.full(4, radius + 6.0)
        low, high = (scene.at.min(axis=0), scene.at.max(axis=0)) if len(scene.at) else (np.zeros(2), np.ones(2))
        room = np.array(self.frame)
        for _ in range(_FITTINGS):
            inner = room - margins[:2] - margins[2:]
            scale = float((inner / np.maximum(high - low, 1e-9)).min())
            self.at = (scene.at - (low + high) / 2) * scale + margins[:2] + inner / 2
            self.spots = self._spots()
            cut = np.array(beyond(self.spots, self.frame))
            if not cut.any():
                break
            # names never take more than half of the picture
            margins = np.minimum(margins + np.where(cut > 0, cut + 2.0, 0.0), np.tile(room / 4, 2))

    def _named(self) -> list[tuple[int, Label]]:
        """The nodes whose names stand beside them, and how each is written."""
        nodes = self.scene.instance.nodes
        if len(nodes) > _BROKERS_NAMED:
            return []
        shown = [number for number in range(len(nodes)) if len(nodes) <= _ALL_NAMED or self.is_broker[number]]
        beside = [number for number in shown if number not in self._inside()]
        bold = [bool(self.is_broker[number]) for number in beside]
        return list(zip(beside, labelled([nodes[number].id for number in beside], bold, self.letter), strict=True))

    def _inside(self) -> list[int]:
        """Brokers whose names fit into their circles: all of them or none."""
        nodes = self.scene.instance.nodes
        brokers = [number for number in range(len(nodes)) if self.is_broker[number]]
        fits = len(nodes) <= _BROKERS_NAMED and all(len(nodes[number].id) <= 3 for number in brokers)
        return brokers if fits and self.radius.max(initial=0.0) >= _ROOMY else []

    def _spots(self) -> Floats:
        if not self.named:
            return np.zeros((0, 4))
        numbers = [number for number, _ in self.named]
        bends = self.scene.unmet if len(self.scene.unmet) <= DASHES else []
        points = np.vstack([points_along(self.at, self.scene.ends, 3.0), points_along_bends(self.at, bends, 3.0)])
        radius = self.radius.copy()
        radius[list(self.scene.missing)] += _RING
        placer = LabelPlacer(boxes_around(self.at, radius), points, self.frame)
        widths = [label.width for _, label in self.named]
        return placer.place(self.at[numbers], widths, radius=radius[numbers], line=1.25 * self.letter)

    def draw(self) -> None:
        """Everything, from the back to the front."""
        if not len(self.at):
            return
        self._links()
        self._arrows()
        self._unmet()
        self._nodes()
        self._names()

    def _links(self) -> None:
        from matplotlib.collections import LineCollection

        scene = self.scene
        lines = self.at[scene.ends]
        idle = scene.load <= 0
        self.axes.add_collection(LineCollection(list(lines[idle]), colors=UNUSED, linewidths=0.9, zorder=1))
        # busy links lie above idle ones, and full links above all
        order = np.argsort(np.nan_to_num(scene.used, nan=0.0)[~idle], kind="stable")
        load, used = scene.load[~idle][order], scene.used[~idle][order]
        greatest = float(load.max(initial=0.0))
        colours = utilisation_colours()
        plain = LIMITLESS if scene.plan is not None else CAPACITY
        self.axes.add_collection(
            LineCollection(
                list(lines[~idle][order]),
                colors=[plain if np.isnan(part) else colours(min(1.0, float(part))) for part in used],
                linewidths=[width_of(float(one), greatest, self.widest) for one in load],
                capstyle="round",
                zorder=2,
            )
        )

    def _arrows(self) -> None:
        for tail, head in self.scene.arcs:
            start, end = self.at[tail], self.at[head]
            middle = start + 0.58 * (end - start)
            self.axes.annotate(
                "", xy=tuple(middle), xytext=tuple(middle - 0.02 * (end - start)), zorder=3,
                arrowprops={"arrowstyle": "-|>", "facecolor": "white", "edgecolor": INK, "mutation_scale": 16},
            )  # fmt: skip

    def _unmet(self) -> None:
        from matplotlib.patches import FancyArrowPatch

        if not 0 < len(self.scene.unmet) <= DASHES:
            return
        for source, subscriber in self.scene.unmet:
            self.axes.add_patch(
                FancyArrowPatch(
                    tuple(self.at[source]),
                    tuple(self.at[subscriber]),
                    arrowstyle="-|>",
                    connectionstyle=f"arc3,rad={BEND}",
                    linestyle=(0, (4, 2.5)),
                    linewidth=1.0,
                    color=UNMET,
                    alpha=0.85,
                    mutation_scale=8,
                    shrinkA=float(self.radius[source]) + 1,
                    shrinkB=float(self.radius[subscriber]) + 3,
                    zorder=4,
                )
            )

    def _nodes(self) -> None:
        nodes = self.scene.instance.nodes
        publishes = np.array(["publisher" in node.roles for node in nodes])
        kinds = (
            (self.is_broker, "o", BROKER, "white", 0.8),
            (~self.is_broker & publishes, "^", PUBLISHER, "white", 0.6),
            (~self.is_broker & ~publishes, "o", SUBSCRIBER, SUBSCRIBER_EDGE, 1.2),
        )
        for chosen, marker, face, edge, line in kinds:
            size = (2 * self.radius[chosen]) ** 2 * (1.15 if marker == "^" else 1.0)
            self.axes.scatter(
                self.at[chosen, 0], self.at[chosen, 1], s=size, marker=marker, c=face, edgecolors=edge,
                linewidths=line, zorder=6,
            )  # fmt: skip
        missing = np.array(sorted(self.scene.missing), np.int64)
        if len(missing):
            self.axes.scatter(
                self.at[missing, 0], self.at[missing, 1], s=(2 * self.radius[missing] + 5) ** 2, marker="o",
                facecolors="none", edgecolors=UNMET, linewidths=1.8, zorder=7,
            )  # fmt: skip
            self.axes.scatter(
                self.at[missing, 0], self.at[missing, 1], s=(1.1 * self.radius[missing]) ** 2, marker="x",
                c=UNMET, linewidths=1.4, zorder=7,
            )  # fmt: skip

    def _names(self) -> None:
        from matplotlib.patheffects import withStroke

        nodes = self.scene.instance.nodes
        for number in self._inside():
            x, y = self.at[number].tolist()
            self.axes.text(
                x, y, nodes[number].id, fontsize=self.letter - 1.2, color="white", ha="center", va="center_baseline",
                zorder=8,
            )  # fmt: skip
        for (number, label), box in zip(self.named, self.spots, strict=True):
            self.axes.text(
                float(box[0] + box[2]) / 2, float(box[1] + box[3]) / 2, label.text, fontsize=self.letter, ha="center",
                va="center", zorder=8, color=UNMET if number in self.scene.missing else INK,
                fontweight="bold" if self.is_broker[number] else "normal",
                path_effects=[withStroke(linewidth=2.2, foreground="white")],
            )  # fmt: skip


def draw(instance: Instance, plan: Plan | None, path: Path, *, topic: tuple[str, str] | None = None) -> None:
    """Write the picture of an instance, or of a plan for it; the suffix of the path says in which format.

    With ``topic``, an id and a source, only that topic's tree carries colour, and arrows.
    """
    with needs("plan"):
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
    scene = scene_of(instance, plan, topic)
    signs = _signs(scene)
    width, height = _size(scene.at, legend_height(signs))
    with plt.rc_context({"font.family": "DejaVu Sans", "svg.fonttype": "path", "svg.hashsalt": instance.name}):
        figure = plt.figure(figsize=(width, height), facecolor="white")
        network = figure.add_axes(
            (0.01, 0.01, 1 - (LEGEND_IN + 0.15) / width - 0.01, 1 - _TITLE_IN / height - 0.01), frameon=False
        )
        drawing = Drawing(scene, network, (width - LEGEND_IN - 0.15, height - _TITLE_IN))
        drawing.draw()
        _title(figure, scene, width, height)
        beside = figure.add_axes(
            (1 - LEGEND_IN / width, 0.01, LEGEND_IN / width - 0.01, 1 - _TITLE_IN / height - 0.01), frameon=False
        )
        draw_legend(beside, height - _TITLE_IN, replace(signs, widest=drawing.widest))
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        figure.savefig(path, dpi=150, metadata=metadata)
        plt.close(figure)


def _signs(scene: Sketch) -> Signs:
    return Signs(
        loads=scene.load[scene.load > 0].tolist(),
        widest=WIDEST,
        has_plan=scene.plan is not None,
        is_topic=bool(scene.picked),
        has_limits=scene.has_limits,
        has_limitless=bool((np.isnan(scene.used) & (scene.load > 0)).any()),
        has_unmet=bool(scene.unmet),
        has_dashes=0 < len(scene.unmet) <= DASHES,
    )


def _size(at: Floats, legend_in: float) -> tuple[float, float]:
    """Inches: room for every node and for the legend, and the shape of the network."""
    across = float(np.clip(2.2 + 1.05 * math.sqrt(max(1, len(at))), 5.2, 17.0))
    wide, high = np.maximum(np.ptp(at, axis=0), 1e-9) if len(at) else (1.0, 1.0)
    height = max(legend_in, float(np.clip(across * high / wide, 0.55 * across, across)))
    return across + LEGEND_IN, height + _TITLE_IN


def _title(figure: Figure, scene: Sketch, width: float, height: float) -> None:
    instance, plan = scene.instance, scene.plan
    longest = int(72 * (width - 0.3) / (0.68 * _TITLE_POINTS))
    figure.text(
        0.18 / width, 1 - 0.30 / height, shortened(instance.name, longest), fontsize=_TITLE_POINTS, fontweight="bold",
        color=INK, va="center",
    )  # fmt: skip
    words = [f"{len(instance.nodes):,} nodes, {len(instance.links):,} links, {len(instance.topics):,} topics"]
    if plan is None:
        words.append(f"{instance.request_count:,} requests")
    else:
        gap = "proven optimal" if plan.status == "optimal" else f"gap {100 * plan.gap:.2f} %"
        served = instance.request_count - plan.unmet
        words += [f"{served:,} of {instance.request_count:,} requests served", f"cost {plan.cost:,.6g}", gap]
    if scene.picked:
        left = longest * _TITLE_POINTS / _WORDS_POINTS - sum(map(len, words)) - 7 * len(words) - len("topic ")
        words.insert(0, f"topic {shortened(scene.picked, max(12, int(left)))}")
    figure.text(
        0.18 / width, 1 - 0.55 / height, "   ·   ".join(words), fontsize=_WORDS_POINTS, color=QUIET, va="center"
    )
