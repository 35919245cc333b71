"""The picture of a network with its flows: width by load, colour by utilisation, unmet requests marked."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tieline.extras import needs
from tieline.plan.arrays import Floats
from tieline.plan.draw import style
from tieline.plan.draw.legend import LEGEND_HEIGHT_IN, LEGEND_IN, draw_legend
from tieline.plan.draw.network import DASHES, Drawing
from tieline.plan.draw.scene import Scene
from tieline.plan.draw.scene import scene as scene_of
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLE_IN = 0.75


def draw(instance: Instance, plan: Plan | None, path: Path, *, topic: tuple[str, str] | None = None) -> None:
    """Write the picture of an instance, or of a plan for it; the suffix of the path says in which format.

    With ``topic``, an id and a source, only that topic's tree carries colour, and arrows.
    """
    with needs("plan"):
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
    scene = scene_of(instance, plan, topic)
    width, height = _size(scene.at)
    with plt.rc_context({"font.family": "DejaVu Sans", "svg.fonttype": "path", "svg.hashsalt": instance.name}):
        figure = plt.figure(figsize=(width, height), facecolor="white")
        network = figure.add_axes(
            (0.01, 0.01, 1 - (LEGEND_IN + 0.15) / width - 0.01, 1 - _TITLE_IN / height - 0.01), frameon=False
        )
        drawing = Drawing(scene, network, (width - LEGEND_IN - 0.15, height - _TITLE_IN))
        drawing.draw()
        _title(figure, scene, height)
        beside = figure.add_axes(
            (1 - LEGEND_IN / width, 0.01, LEGEND_IN / width - 0.01, 1 - _TITLE_IN / height - 0.01), frameon=False
        )
        draw_legend(
            beside,
            height - _TITLE_IN,
            loads=scene.load[scene.load > 0].tolist(),
            widest=drawing.widest,
            has_plan=plan is not None,
            is_topic=bool(scene.picked),
            has_limits=scene.has_limits,
            has_limitless=bool((np.isnan(scene.used) & (scene.load > 0)).any()),
            has_unmet=bool(scene.unmet),
            has_dashes=0 < len(scene.unmet) <= DASHES,
        )
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        figure.savefig(path, dpi=150, metadata=metadata)
        plt.close(figure)


def _size(at: Floats) -> tuple[float, float]:
    """Inches: room for every node, and the shape of the network."""
    across = float(np.clip(2.2 + 1.05 * math.sqrt(max(1, len(at))), 5.2, 17.0))
    wide, high = np.maximum(np.ptp(at, axis=0), 1e-9) if len(at) else (1.0, 1.0)
    height = max(LEGEND_HEIGHT_IN, float(np.clip(across * high / wide, 0.55 * across, across)))
    return across + LEGEND_IN, height + _TITLE_IN


def _title(figure: Figure, scene: Scene, height: float) -> None:
    instance, plan = scene.instance, scene.plan
    figure.text(0.015, 1 - 0.30 / height, instance.name, fontsize=13, fontweight="bold", color=style.INK, va="center")
    size = f"{len(instance.nodes):,} nodes, {len(instance.links):,} links, {len(instance.topics):,} topics"
    words = f"{size}, {instance.request_count:,} requests"
    if plan is not None:
        gap = "proven optimal" if plan.status == "optimal" else f"gap {100 * plan.gap:.2f} %"
        served = instance.request_count - plan.unmet
        words = f"{size}   ·   {served:,} of {instance.request_count:,} requests served   ·   cost {plan.cost:,.6g}"
        words += f"   ·   {gap}"
        if scene.picked:
            words = f"topic {scene.picked}   ·   {words}"
    figure.text(0.015, 1 - 0.55 / height, words, fontsize=9, color=style.QUIET, va="center")
