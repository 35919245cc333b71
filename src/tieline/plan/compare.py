"""Several methods on one instance: each against the best bound of all, as figures and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tieline.extras import needs
from tieline.plan.draw.labels import shortened
from tieline.plan.draw.legend import BROKER, INK, PUBLISHER, UNUSED
from tieline.plan.plan import Plan, gap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Times below this are drawn as this: the axis is logarithmic.
_SHORTEST_S = 1e-3
#: A longer name would be cut at the edge of the picture.
_TITLE_LETTERS = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodResult:
    """What one method found."""

    method: str
    plan: Plan
    #: The best bound of all methods: what is a bound for one plan is a bound for all.
    bound: float

    @property
    def gap(self) -> float:
        """The share of the objective that an optimal plan might save at most."""
        return gap(self.plan.objective, self.bound)


def results(plans: Mapping[str, Plan]) -> list[MethodResult]:
    """Plans of several methods for one instance, side by side."""
    best = max(plan.bound for plan in plans.values())
    return [MethodResult(method=method, plan=plan, bound=best) for method, plan in plans.items()]


def rendered(name: str, found: list[MethodResult]) -> bytes:
    """The same as a JSON document."""
    rows = [
        {
            "method": result.method,
            "objective": result.plan.objective,
            "cost": result.plan.cost,
            "unmet": result.plan.unmet,
            "bound": result.plan.bound,
            "best_bound": result.bound,
            "gap": result.gap,
            "seconds": result.plan.seconds,
            "status": result.plan.status,
            "notes": dict(result.plan.notes),
        }
        for result in found
    ]
    document = {"format": "tieline-plan-compare-1", "instance": name, "methods": rows}
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def draw_comparison(name: str, found: list[MethodResult], path: Path) -> None:
    """Write the picture: unmet requests, cost and time, a bar per method."""
    with needs("plan"):
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
    rows = list(range(len(found)))
    with plt.rc_context({"font.family": "DejaVu Sans", "svg.hashsalt": name}):
        figure, panels = plt.subplots(
            1, 3, sharey=True, figsize=(11, 1.4 + 0.42 * len(found)), layout="constrained", facecolor="white"
        )
        least = min(result.plan.unmet for result in found)
        # a plan that serves fewer is cheap for a bad reason, and is drawn pale
        colours = [BROKER if result.plan.unmet == least else UNUSED for result in found]
        columns = (
            ("unmet requests", [float(result.plan.unmet) for result in found]),
            ("cost of the links", [result.plan.cost for result in found]),
            ("seconds", [max(_SHORTEST_S, result.plan.seconds) for result in found]),
        )
        for axis, (title, values) in zip(panels, columns, strict=True):
            if title == "seconds":
                # no bars: on a logarithmic axis nothing begins at zero
                axis.scatter(values, rows, s=60, c=colours)
                axis.set_xscale("log")
            else:
                axis.barh(rows, values, height=0.62, color=colours)
            for row, value in zip(rows, values, strict=True):
                axis.annotate(
                    f"{value:,.3g}" if value < 1000 else f"{value:,.0f}", (value, row), xytext=(7, 0),
                    textcoords="offset points", va="center", fontsize=8, color=INK,
                )  # fmt: skip
            _sane_ticks(axis, title, values)
            axis.set_title(title, loc="left", fontsize=9.5, fontweight="bold", color=INK)
            axis.spines[["top", "right"]].set_visible(False)
            axis.tick_params(labelsize=8)
            axis.grid(axis="x", alpha=0.25)
            axis.set_axisbelow(True)
        if least == 0:
            bound = found[0].bound
            panels[1].axvline(bound, color=PUBLISHER, linewidth=1.2, linestyle="--")
            panels[1].text(
                bound, 1.0, f" bound {bound:,.6g}", transform=panels[1].get_xaxis_transform(), fontsize=8,
                color=PUBLISHER, va="bottom", ha="right",
            )  # fmt: skip
        panels[0].set_yticks(rows, [result.method for result in found], fontsize=9)
        panels[0].invert_yaxis()
        figure.suptitle(shortened(name, _TITLE_LETTERS), fontsize=12, fontweight="bold", x=0.01, ha="left", color=INK)
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else {})
        plt.close(figure)


def _sane_ticks(axis: Axes, title: str, values: Sequence[float]) -> None:
    """Counts have whole numbers, nothing begins below zero, and seconds are written as people write them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if title == "seconds":
        axis.set_xlim(min(values) / 3, max(values) * 12)
        axis.xaxis.set_major_locator(LogLocator(numticks=6))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        return
    axis.set_xlim(0, 1.25 * max(1.0, *values))
    axis.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=title == "unmet requests"))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:,.6g}"))
