"""Theorems 1 to 4 on random trees of covering tables, without radio and loss; and Algorithm 2 taken at its word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np

from tieline.bench.papers.frame import drawing, verdicts
from tieline.bench.papers.frame.declaration import Claim, Panel, Request, Tables
from tieline.bench.papers.frame.table import Table
from tieline.bench.papers.rpcp.trees import (
    LAYERS,
    OWN,
    boxes,
    covered_share,
    grown,
    layers_of_nested,
    taken_at_its_word,
)
from tieline.sim.sensors.tables import Covering

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Widest boxes, as shares of a domain; the narrowest have a tenth of it.
_WIDTHS: Final = (0.02, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95)
#: What an entry costs a head that looks through its table: a slow processor of a sensor.
_ENTRY_US: Final = 20.0
_HOP_MS: Final = 8.0
_LAYER: Final = "layer, 0 is the core"
_RATIO: Final = "share of boxes that another covers"
_DIMENSIONS: Final = (1, 2, 3, 4, 5, 6)


_ORDERS: Final[tuple[tuple[str, Covering], ...]] = (
    ("wide first", "suboptimal"), ("at random", "suboptimal"), ("narrow first", "suboptimal"), ("at random", "optimal"),
)  # fmt: skip


def measure(request: Request) -> list[Table]:
    """Random trees under growing covering, in several orders of arrival; boxes of more attributes; Algorithm 2."""
    seeds = request.seeds(quick=4, full=20)
    seed_column = {"seed": "seed"}
    nested = [(seed, layer, entries) for seed in seeds for layer, entries in enumerate(layers_of_nested(seed))]
    orders = [
        (f"{covering}, {order}", seed, len(grown(seed, 0.6, covering, order=order)[0].tables[0]))
        for seed in seeds
        for order, covering in _ORDERS
    ]
    ratios = [
        (count, seed, covered_share(boxes(np.random.default_rng([seed, count]), 1000, 0.8, count)))
        for seed in seeds
        for count in _DIMENSIONS
    ]
    reached = [
        (seed, *taken_at_its_word(np.random.default_rng([seed, 99]))) for seed in request.seeds(quick=20, full=100)
    ]
    return [
        *_under_covering(seeds),
        Table("nested", seed_column | {"layer": _LAYER, "entries": "mean entries of a head"}, nested),
        Table("orders", {"order": "covering and order"} | seed_column | {"core": "entries of the core"}, orders),
        Table("dimensions", {"dimensions": "attributes"} | seed_column | {"ratio": _RATIO}, ratios),
        Table("reached", seed_column | {"heads": "heads", "reached": "heads that an event reaches"}, reached),
    ]


def _under_covering(seeds: range) -> list[Table]:
    """Entries by layer, and on the way to the core, as boxes get wider."""
    layers: list[tuple[float, float, int, int, float, float]] = []
    routes: list[tuple[float, float, int, float, float, float]] = []
    for seed in seeds:
        for widest in _WIDTHS:
            heads, _interests, ratio = grown(seed, widest, "suboptimal")
            below = heads.below()
            for layer in range(LAYERS):
                inside = [head for head, one in enumerate(heads.layer) if one == layer]
                entries = fmean(len(heads.tables[head]) for head in inside)
                share = fmean(len(heads.tables[head]) / (OWN * below[head]) for head in inside)
                layers.append((widest, ratio, seed, layer, entries, share))
            rim = [head for head, one in enumerate(heads.layer) if one == LAYERS - 1]
            examined = fmean(heads.examined(head) for head in rim)
            route_ms = examined * _ENTRY_US / 1000.0 + (LAYERS - 1) * _HOP_MS
            routes.append((widest, ratio, seed, float(len(heads.tables[0])), examined, route_ms))
    first = {"widest": "widest box, as a share of the domain", "ratio": _RATIO, "seed": "seed"}
    return [
        Table(
            "layers",
            first | {"layer": _LAYER, "entries": "mean entries of a head", "share": "share of subscriptions below"},
            layers,
        ),
        Table(
            "routes",
            first | {"core": "entries of the core", "examined": "entries on a way to the core", "route_ms": "way, ms"},
            routes,
        ),
    ]


def panels(tables: Tables) -> dict[str, Panel]:
    """The four theorems and the order of arrival."""
    layers, routes = tables["layers"], tables["routes"]
    shown = layers.where(widest=lambda cell: cell in (0.02, 0.2, 0.6, 0.95))
    inks = {"0.02": "#b9d9cb", "0.2": "#6fb095", "0.6": "#0b6e4f", "0.95": "#04382a"}
    names = {str(width): f"boxes up to {width:g}" for width in _WIDTHS}

    def entries(axis: Axes) -> None:
        drawing.lines(axis, shown, x="layer", y="entries", series="widest", colours=inks, names=names)
        nested = tables["nested"]
        drawing.lines(axis, nested, x="layer", y="entries", colours={"": "second"},
                      names={"": "thresholds, subscribed to at the rim only"})  # fmt: skip
        _logarithmic(axis, (3, 10, 30, 100, 300))
        axis.set_xticks(range(LAYERS))
        drawing.labels(axis, x="layer of the head, 0 is the core", y="mean entries of a table")

    def share(axis: Axes) -> None:
        drawing.lines(axis, shown, x="layer", y="share", series="widest", colours=inks, names=names, scale=100)
        axis.set_xticks(range(LAYERS))
        axis.set_ylim(bottom=0)
        drawing.labels(axis, x="layer of the head, 0 is the core", y="entries as a share of subscriptions below, %")

    def route(axis: Axes) -> None:
        axis.plot(routes.column("ratio"), routes.column("examined"), ".", color=drawing.COLOURS["ours"], alpha=0.5,
                  label="entries on a way to the core")  # fmt: skip
        axis.plot(routes.column("ratio"), routes.column("core"), ".", color=drawing.COLOURS["baseline"], alpha=0.5,
                  label="entries of the core")  # fmt: skip
        _logarithmic(axis, (50, 100, 200, 400))
        drawing.labels(axis, x="covering ratio: share of boxes that another covers", y="entries")

    def dimensions(axis: Axes) -> None:
        drawing.lines(axis, tables["dimensions"], x="dimensions", y="ratio", colours={"": "ours"})
        axis.set_ylim(0, 1.02)
        drawing.labels(axis, x="attributes of a box", y="covering ratio of 1,000 boxes")

    return {
        "Theorem 1: entries": entries,
        "Theorem 1: as a share": share,
        "Theorems 2 and 3: more covering": route,
        "Theorem 4: more attributes": dimensions,
    }


def _logarithmic(axis: Axes, ticks: Sequence[int]) -> None:
    axis.set_yscale("log")
    axis.set_yticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()


def order_panels(tables: Tables) -> dict[str, Panel]:
    """What the order of arrival does to suboptimal covering."""

    def panel(axis: Axes) -> None:
        drawing.bars(axis, tables["orders"], x="order", y="core", colours={"": "ours"})
        drawing.labels(axis, y="entries of the core")

    return {"Suboptimal covering hangs on the order of arrival": panel}


def claims(tables: Tables) -> Iterator[Claim]:
    """Each theorem over all trees."""
    layers, routes = tables["layers"], tables["routes"]
    for column, says, why in (
        ("entries", "Theorem 1: the closer a head is to the core, the fewer subscriptions it keeps.",
         "a head above k others keeps what none of them covered: less than each only if it is a share below 1/k"),
        ("share", "(ours) Theorem 1, of the share of the subscriptions below that a head keeps.",
         "boxes that cover nothing of each other leave the share as it is"),
    ):  # fmt: skip
        held = of = 0
        widths = []
        for widest in layers.numbers("widest"):
            kept = 0
            for seed in layers.numbers("seed"):
                line = layers.where(widest=widest, seed=int(seed)).column(column)
                rises = all(one < other for one, other in pairwise(line))
                held, of, kept = held + rises, of + 1, kept + rises
            if kept * 2 > len(layers.numbers("seed")):
                widths.append(f"{widest:g}")
        where = f", mostly where boxes are up to {' or '.join(widths)} wide" if widths and held < of else ""
        yield Claim(
            where="Theorem 1",
            paper_says=says,
            we_measure=f"in {held} of {of} random trees{where}",
            judgement=verdicts.always(held, of),
            why=why,
        )
    nested = tables["nested"]
    core, rim = (nested.where(layer=layer).column("entries") for layer in (0, LAYERS - 1))
    smaller = sum(one < other for one, other in zip(core, rim, strict=True))
    yield Claim(
        where="Theorem 1",
        paper_says="(ours) The core keeps fewer than the rim, if only sinks at the rim subscribe and of two "
        "subscriptions one always covers the other.",
        we_measure=f"in {smaller} of {len(core)} random trees: {fmean(core):.1f} entries beside {fmean(rim):.1f}",
        judgement=verdicts.always(smaller, len(core)),
        why="a table has at least one entry for each head below, so from some layer on it shrinks no more",
    )
    series = [routes.where(widest=widest) for widest in routes.numbers("widest")]
    ratios = [fmean(one.column("ratio")) for one in series]
    from_to = f"as the covering ratio rises from {ratios[0]:.0%} to {ratios[-1]:.0%}"
    yield Claim(
        where="Theorem 2",
        paper_says="Theorem 2: the larger the covering ratio, the smaller the table.",
        we_measure=f"the core's falls from {fmean(series[0].column('core')):.0f} to "
        f"{fmean(series[-1].column('core')):.0f} entries {from_to}",
        judgement=verdicts.falls([one.column("core") for one in series]),
        why="it needs one topic: boxes of different topics never cover",
    )
    yield Claim(
        where="Theorem 3",
        paper_says="Theorem 3: the larger the covering ratio, the shorter the routing time.",
        we_measure=f"from {fmean(series[0].column('route_ms')):.0f} to {fmean(series[-1].column('route_ms')):.0f} ms "
        f"at {_ENTRY_US:g} µs an entry and {_HOP_MS:g} ms a hop, {from_to}",
        judgement=verdicts.falls([one.column("route_ms") for one in series]),
        why="an index finds what matches without looking at each entry, and then little is left to shorten",
    )
    dimensions = tables["dimensions"]
    by_dimension = dimensions.by("dimensions", "ratio")
    yield Claim(
        where="Theorem 4",
        paper_says="Theorem 4: the covering ratio falls with the number of attributes.",
        we_measure=", ".join(
            f"{fmean(ratio):.2f} with {count:g}"
            for count, ratio in zip(dimensions.numbers("dimensions"), by_dimension, strict=True)
        ),
        judgement=verdicts.falls(by_dimension),
        why="attributes that nobody restricts do not count",
    )
    yield _of_algorithm_2(tables["reached"])


def _of_algorithm_2(reached: Table) -> Claim:
    """Whether an event reaches all heads, if the algorithm is taken at its word."""
    whole = sum(one == other for one, other in zip(reached.column("heads"), reached.column("reached"), strict=True))
    share = [one / other for one, other in zip(reached.column("reached"), reached.column("heads"), strict=True)]
    return Claim(
        where="Algorithm 2",
        paper_says="A message from a downstream head is broadcast upstream, any other one downstream; so it reaches "
        "every head that may know a subscriber.",
        we_measure=f"all heads in {whole} of {len(share)} random trees; {verdicts.percent(share)} of them",
        judgement=verdicts.always(whole, len(share)),
        why="heads on the way up ignore the copy that comes down, and with it all that is below them; we read it as: "
        "to all heads beside it but the one that it came from",
    )
