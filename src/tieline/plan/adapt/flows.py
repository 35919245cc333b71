"""Flows: the ways of single requests, what of them still stands after a change, and how many have moved."""

from __future__ import annotations

from tieline.plan.arrays import Arrays
from tieline.plan.plan import Plan
from tieline.plan.routes import Hop, Route, Trees, no_trees


def compared(before: Plan, after: Plan) -> dict[str, int]:
    """How many flows moved, were kept and were added between two plans."""
    old, new = _flows(before), _flows(after)
    kept = sum(new.get(key) == way for key, way in old.items())
    return {
        "flows_moved": len(old) - kept,
        "flows_kept": kept,
        "flows_added": sum(key not in old for key in new),
    }


def standing(arrays: Arrays, routes: tuple[Route, ...]) -> Trees:
    """What of old routes still stands in a changed instance: ways whose nodes, links and requests all exist."""
    number = {node.id: place for place, node in enumerate(arrays.instance.nodes)}
    arcs = zip(arrays.tail.tolist(), arrays.head.tolist(), strict=True)
    arc_of = {ends: arc for arc, ends in enumerate(arcs)}
    place = {topic.key: k for k, topic in enumerate(arrays.instance.topics)}
    trees = no_trees(arrays)
    for route in routes:
        topic = place.get((route.topic, route.source))
        if topic is None:
            continue
        usable = arrays.usable(topic)
        for hop in route.links:
            arc = arc_of.get((number.get(hop.tail, -1), number.get(hop.head, -1)))
            if arc is not None and usable[arc]:
                trees.entering[topic][int(arrays.head[arc])] = arc
        fed = {hop.head for hop in route.links if hop.head in hop.subscribers}
        for request in range(arrays.request_start[topic], arrays.request_start[topic + 1]):
            node = int(arrays.request_node[request])
            is_fed = arrays.instance.nodes[node].id in fed
            trees.served[request] = is_fed and _reaches(arrays, trees.entering[topic], topic, node)
    return trees


def _reaches(arrays: Arrays, tree: dict[int, int], topic: int, node: int) -> bool:
    while node in tree:
        node = int(arrays.tail[tree[node]])
    return node == int(arrays.source[topic])


def _flows(plan: Plan) -> dict[tuple[str, str, str], tuple[tuple[str, str], ...]]:
    """The way of every served request, by topic, source and subscriber."""
    flows: dict[tuple[str, str, str], list[Hop]] = {}
    for route in plan.routes:
        for hop in route.links:
            for subscriber in hop.subscribers:
                flows.setdefault((route.topic, route.source, subscriber), []).append(hop)
    return {key: tuple(sorted((hop.tail, hop.head) for hop in hops)) for key, hops in flows.items()}
