"""What is to be drawn of an instance or a plan, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tieline.plan.arrays import Floats, Ints
from tieline.plan.draw.places import places
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan
from tieline.plan.proof import examine
from tieline.plan.routes import Route


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Scene:
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


def scene(instance: Instance, plan: Plan | None, topic: tuple[str, str] | None) -> Scene:
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
    return Scene(
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
