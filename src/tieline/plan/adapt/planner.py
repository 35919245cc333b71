"""A planner that stands by: it keeps what it knows of a network, so that a failure costs milliseconds.

Theory of operation
-------------------
Most of the time of re-planning goes into reading: arrays from the instance, cheapest ways through the empty network, a
state from the plan.  A planner has all that.  When links or brokers fail or capacities change, the numbers of nodes,
links and requests stay as they were; a failed link has no capacity.  The cheapest ways stay valid as guides, since
failures only make ways dearer.  Routes are written anew for the topics that were touched.  Any other change is read
from scratch.  Every plan is proven against the instance as it is now.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tieline.plan.adapt.repair import Repair, ready, snapshot
from tieline.plan.adapt.replan import Replanned, compared, standing
from tieline.plan.arrays import TOLERANCE, Flags, Floats
from tieline.plan.arrays import arrays as as_arrays
from tieline.plan.certify import certified_routes
from tieline.plan.flaws import checked
from tieline.plan.instance import Instance, Node, unmet_price
from tieline.plan.kernels.network import net
from tieline.plan.kernels.repair import close_link, load_on
from tieline.plan.kernels.state import state_of, trees_of
from tieline.plan.kernels.ways import scratch
from tieline.plan.plan import Plan
from tieline.plan.routes import Route, route
from tieline.plan.run import Run


class Planner:
    """A network, the plan that stands in it, and all that is known about both."""

    def __init__(self, instance: Instance, plan: Plan, *, seed: int = 0, prices: Floats | None = None) -> None:
        ready()
        self.seed = seed
        self._prices = prices
        #: The network as it is, and its plan.
        self.instance = instance
        self.plan = plan
        self._read(instance, plan)

    def replan(self, instance: Instance, *, seconds: float | None = None) -> Replanned:
        """The plan after a change, which then stands; ``seconds`` bounds the attempts to make room."""
        run = Run(seconds=seconds, seed=self.seed)
        before = self.plan
        capacity = self._capacity_in(instance)
        old = None
        if capacity is None:
            self._read(checked(instance), before)
        else:
            old = snapshot(self._state)
            self._apply(instance, capacity)
        repair = Repair(self._arrays, self._net, self._scratch, self._state, run, old=old)
        repair.mend(before.objective - before.cost if old is None else repair.unmet_price(old), self._prices)
        touched = np.ones(self._arrays.topics, np.bool_) if old is None else repair.touched()
        self._write(touched)
        elapsed = run.elapsed
        self.instance = instance
        self.plan = certified_routes(
            instance,
            tuple(self._routes),
            method="replan",
            bound=repair.bound(),
            seconds=elapsed,
            notes={"previous": before.method, "topics_touched": int(touched.sum())},
        )
        if old is None:
            return Replanned(plan=self.plan, seconds=elapsed, **compared(before, self.plan))
        moved, kept, added = repair.moved()
        return Replanned(plan=self.plan, flows_moved=moved, flows_kept=kept, flows_added=added, seconds=elapsed)

    def _read(self, instance: Instance, plan: Plan) -> None:
        """Learn a network and what of a plan stands in it."""
        self._arrays = as_arrays(instance)
        self._net = net(self._arrays)
        self._scratch = scratch(self._arrays)
        self._state = state_of(self._arrays, self._net, standing(self._arrays, plan.routes))
        self._link_at = {frozenset((link.a, link.b)): at for at, link in enumerate(instance.links)}
        self._node_at = {node.id: at for at, node in enumerate(instance.nodes)}
        self._routes = [Route(topic=topic.id, source=topic.source) for topic in instance.topics]
        self._write(np.ones(self._arrays.topics, np.bool_))

    def _write(self, topics: Flags) -> None:
        """Write down the routes of some topics."""
        trees = trees_of(self._arrays, self._state, topics)
        for topic in np.flatnonzero(topics).tolist():
            self._routes[topic] = route(self._arrays, trees, topic)

    def _capacity_in(self, instance: Instance) -> Floats | None:
        """The capacities of the known links in an instance that differs in nothing else; None for any other."""
        known = self._arrays.instance
        if (instance.unmet_cost, instance.n_max) != (known.unmet_cost, known.n_max):
            return None
        # where a topic takes no capacity, a link without capacity is not closed to it
        if instance.topics != known.topics or (self._arrays.rate <= 0).any():
            return None
        if instance.nodes != known.nodes and not all(self._knows(node) for node in instance.nodes):
            return None
        capacity = np.zeros(self._arrays.links)
        seen = set()
        for link in instance.links:
            at = self._link_at.get(frozenset((link.a, link.b)))
            if at is None or (link.cost, link.latency) != (known.links[at].cost, known.links[at].latency):
                return None
            capacity[at] = link.capacity
            seen.add(at)
        # what is no network is read from scratch, and refused there
        return capacity if len(seen) == len(instance.links) and bool((capacity >= 0).all()) else None

    def _knows(self, node: Node) -> bool:
        at = self._node_at.get(node.id)
        return at is not None and self._arrays.instance.nodes[at] == node

    def _apply(self, instance: Instance, capacity: Floats) -> None:
        """Let links have these capacities: who used a link that has none any more is unmet."""
        changed = np.flatnonzero(capacity != self._arrays.capacity)
        price = unmet_price(instance)
        prices = price * self._arrays.weight if instance.unmet_cost is None else self._arrays.price
        self._arrays = replace(self._arrays, capacity=capacity, price=prices)
        self._net = self._net._replace(capacity=capacity * (1 + TOLERANCE), price=prices)
        for link in changed.tolist():
            if capacity[link] == 0:
                close_link(self._net, self._state, link)
            self._state.room[link] = self._net.capacity[link] - load_on(self._net, self._state, link)
