"""A distributed planning from the first offer to the proven plan."""

from __future__ import annotations

import random

import numpy as np

from tieline.overlay.agreeing.planning_node import PlanningNode
from tieline.overlay.agreeing.protocol import Agreement, Port, TopicFacts
from tieline.plan.arrays import Arrays
from tieline.plan.certify import certified, shortest_paths_bound
from tieline.plan.distributed.exchange import Exchange
from tieline.plan.greedy import repaired
from tieline.plan.plan import Plan
from tieline.plan.routes import Trees, no_trees
from tieline.plan.run import Run

#: Virtual seconds in which links are soft, in which they are hard, and of silence after which all is said.
_SOFT = 600.0
_HARD = 600.0
_QUIET = 40.0


def distributed(arrays: Arrays, run: Run, *, loss: float = 0.0, bound: float | None = None) -> Plan:
    """What brokers agree on among themselves; ``bound`` is what is known of the optimum, by default shortest paths.

    The only thing that looks at all brokers at once is this function, when they have finished.  If its run must end
    before, they may have promised more than links carry; then what fits of it is the plan, which
    is no longer only theirs.
    """
    exchange = Exchange(_brokers(arrays, run.seed), seed=run.seed + 1, loss=loss)
    has_finished = exchange.run(_SOFT + _HARD, quiet_for=_QUIET, stop=lambda: run.must_end)
    agreed = _agreed(arrays, exchange)
    plan = certified(
        arrays,
        agreed if has_finished else repaired(arrays, agreed, np.zeros(arrays.links)),
        method="distributed",
        bound=shortest_paths_bound(arrays) if bound is None else bound,
        seconds=run.elapsed,
        is_interrupted=not has_finished,
        notes={
            "messages": exchange.messages,
            "bytes": exchange.bytes,
            "lost": exchange.lost,
            "virtual_seconds": exchange.now,
        },
    )
    return run.told(plan)


def _brokers(arrays: Arrays, seed: int) -> dict[int, PlanningNode]:
    """Every node with what it may know: its own links, what it publishes, what it wants."""
    scale = float(arrays.cost.mean() / max(1e-9, float(arrays.rate.mean()))) if arrays.links and arrays.topics else 1.0
    agreement = Agreement(scale=scale, hard_after=_SOFT, n_max=arrays.instance.n_max)
    ports: list[dict[int, Port]] = [{} for _ in range(arrays.nodes)]
    for link in range(arrays.links):
        a, b = int(arrays.tail[2 * link]), int(arrays.head[2 * link])
        # a client leaves the link to its broker
        owner = a if arrays.is_broker[a] else b
        for one, other in ((a, b), (b, a)):
            ports[one][other] = Port(
                cost=float(arrays.cost[link]),
                capacity=float(arrays.capacity[link]),
                latency=float(arrays.latency[link]),
                is_owner=one == owner,
            )
    publishes: list[dict[int, TopicFacts]] = [{} for _ in range(arrays.nodes)]
    for topic in range(arrays.topics):
        latest = float(arrays.max_latency[topic])
        publishes[arrays.source[topic]][topic] = TopicFacts(
            float(arrays.rate[topic]), float(arrays.weight[topic]), latest if np.isfinite(latest) else None
        )
    wants: list[set[int]] = [set() for _ in range(arrays.nodes)]
    for topic, node in zip(arrays.request_topic.tolist(), arrays.request_node.tolist(), strict=True):
        wants[node].add(topic)
    chances = random.Random(seed)  # noqa: S311 - a simulation, which must be repeatable
    return {
        node: PlanningNode(
            node,
            ports[node],
            is_broker=bool(arrays.is_broker[node]),
            publishes=publishes[node],
            wants=wants[node],
            max_connections=None if arrays.max_connections[node] < 0 else int(arrays.max_connections[node]),
            agreement=agreement,
            chance=random.Random(chances.getrandbits(64)).random,  # noqa: S311 - as above
        )
        for node in range(arrays.nodes)
    }


def _agreed(arrays: Arrays, exchange: Exchange) -> Trees:
    """The trees that the nodes hold together: a request counts if its subscriber says that it is served.

    While messages are under way, what one node says and what another holds may differ: a way that does not lead to its
    source counts for nothing.
    """
    trees = no_trees(arrays)
    arc_of = {
        (int(tail), int(head)): arc for arc, (tail, head) in enumerate(zip(arrays.tail, arrays.head, strict=True))
    }
    for node, broker in exchange.brokers.items():
        for topic, relay in broker.relays.items():
            if relay.parent is not None:
                trees.entering[topic][node] = arc_of[relay.parent, node]
    for request, (topic, node) in enumerate(
        zip(arrays.request_topic.tolist(), arrays.request_node.tolist(), strict=True)
    ):
        is_served = exchange.brokers[node].requests[topic].is_served
        trees.served[request] = is_served and _leads_home(arrays, trees.entering[topic], topic, node)
    return trees.pruned(arrays)


def _leads_home(arrays: Arrays, tree: dict[int, int], topic: int, node: int) -> bool:
    seen = set()
    while node in tree and node not in seen:
        seen.add(node)
        node = int(arrays.tail[tree[node]])
    return node == int(arrays.source[topic])
