"""A network in its axes: links, arrows, unmet requests, nodes and names, from the back to the front."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tieline.plan.arrays import Flags, Floats
from tieline.plan.draw import style
from tieline.plan.draw.labels import Sheet, boxes_around, points_along
from tieline.plan.draw.scene import Scene

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More nodes than this, and only brokers have names; more than that, and nobody has.
_ALL_NAMED = 130
_BROKERS_NAMED = 350
#: More unmet requests than this are marked at their subscribers only.
DASHES = 40


class Drawing:
    """The network inside its axes, whose unit is a point on paper."""

    def __init__(self, scene: Scene, axes: Axes, inches: tuple[float, float]) -> None:
        self.scene = scene
        self.axes = axes
        nodes = scene.instance.nodes
        self.is_broker: Flags = np.array([node.is_broker for node in nodes], np.bool_)
        spacing = 72 * min(inches) / max(2.0, math.sqrt(max(1, len(nodes))))
        #: Points.
        self.radius: Floats = np.where(self.is_broker, 1.0, 0.72) * float(np.clip(spacing / 7.0, 2.2, 9.0))
        self.letter = float(np.clip(spacing / 8.5, 5.0, 8.5))
        self.widest = float(np.clip(spacing / 9.0, 2.5, style.WIDEST))
        # names of outer nodes stand outside
        margin = 40.0 if len(nodes) <= _BROKERS_NAMED else 20.0
        box = np.array(inches) * 72
        low, high = (scene.at.min(axis=0), scene.at.max(axis=0)) if len(nodes) else (np.zeros(2), np.ones(2))
        scale = float(((box - 2 * margin) / np.maximum(high - low, 1e-9)).min())
        self.at: Floats = (scene.at - (low + high) / 2) * scale + box / 2
        axes.set_xlim(0, box[0])
        axes.set_ylim(0, box[1])
        axes.set_xticks([])
        axes.set_yticks([])

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
        self.axes.add_collection(LineCollection(list(lines[idle]), colors=style.UNUSED, linewidths=0.9, zorder=1))
        # busy links lie above idle ones, and full links above all
        order = np.argsort(np.nan_to_num(scene.used, nan=0.0)[~idle], kind="stable")
        load, used = scene.load[~idle][order], scene.used[~idle][order]
        greatest = float(load.max(initial=0.0))
        colours = style.utilisation_colours()
        plain = style.LIMITLESS if scene.plan is not None else style.CAPACITY
        self.axes.add_collection(
            LineCollection(
                list(lines[~idle][order]),
                colors=[plain if np.isnan(part) else colours(min(1.0, float(part))) for part in used],
                linewidths=[style.width_of(float(one), greatest, self.widest) for one in load],
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
                arrowprops={"arrowstyle": "-|>", "facecolor": "white", "edgecolor": style.INK, "mutation_scale": 16},
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
                    connectionstyle="arc3,rad=0.18",
                    linestyle=(0, (4, 2.5)),
                    linewidth=1.0,
                    color=style.UNMET,
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
            (self.is_broker, "o", style.BROKER, "white", 0.8),
            (~self.is_broker & publishes, "^", style.PUBLISHER, "white", 0.6),
            (~self.is_broker & ~publishes, "o", style.SUBSCRIBER, style.SUBSCRIBER_EDGE, 1.2),
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
                facecolors="none", edgecolors=style.UNMET, linewidths=1.8, zorder=7,
            )  # fmt: skip
            self.axes.scatter(
                self.at[missing, 0], self.at[missing, 1], s=(1.1 * self.radius[missing]) ** 2, marker="x",
                c=style.UNMET, linewidths=1.4, zorder=7,
            )  # fmt: skip

    def _names(self) -> None:
        from matplotlib.patheffects import withStroke

        nodes = self.scene.instance.nodes
        if len(nodes) > _BROKERS_NAMED:
            return
        named = [number for number in range(len(nodes)) if len(nodes) <= _ALL_NAMED or self.is_broker[number]]
        # short names of brokers fit into their circles
        brokers = [number for number in named if self.is_broker[number]]
        fits = all(len(nodes[number].id) <= 3 for number in brokers) and self.radius.max() >= 8.0
        inside = set(brokers) if fits else set()
        for number in inside:
            x, y = self.at[number].tolist()
            self.axes.text(
                x, y, nodes[number].id, fontsize=self.letter - 1.2, color="white", ha="center", va="center_baseline",
                zorder=8,
            )  # fmt: skip
        beside = [number for number in named if number not in inside]
        if not beside:
            return
        names = [_short(nodes[number].id) for number in beside]
        sheet = Sheet(boxes_around(self.at, self.radius), points_along(self.at, self.scene.ends, 3.0))
        spots = sheet.place(self.at[beside], names, radius=float(self.radius.max()) + 1.0, line=self.letter)
        for number, name, spot in zip(beside, names, spots, strict=True):
            self.axes.text(
                *spot, name, fontsize=self.letter, ha="center", va="center", zorder=8,
                color=style.UNMET if number in self.scene.missing else style.INK,
                fontweight="bold" if self.is_broker[number] else "normal",
                path_effects=[withStroke(linewidth=2.2, foreground="white")],
            )  # fmt: skip


def _short(name: str) -> str:
    return name if len(name) <= 14 else f"{name[:13]}…"
