"""Small instances at random, and their optimum by trying everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise, product

import numpy as np

from tieline.instance_document import Role
from tieline.plan.flaws import checked
from tieline.plan.instance import UNLIMITED, Instance, Link, Node, Topic, request_price
from tieline.plan.plan import Plan


def small(seed: int, *, limits: bool = False, most_requests: int = 4, sparse: bool = False) -> Instance:
    """An instance of a few nodes; some have pendant trees, chains, free links, brokers that publish or subscribe."""
    rng = np.random.default_rng(seed)
    brokers = int(rng.integers(2, 6 if sparse else 5))
    names = [f"b{number}" for number in range(brokers)]
    roles: dict[str, set[Role]] = {name: {"broker"} for name in names}
    clients = [f"c{number}" for number in range(int(rng.integers(2, 5)))]
    roles.update({name: set() for name in clients})
    pairs: set[tuple[str, str]] = set()
    for number in range(1, brokers):
        pairs.add((names[int(rng.integers(number))], names[number]))
    for one in range(brokers):
        for other in range(one + 1, brokers):
            if rng.random() < (0.2 if sparse else 0.5):
                pairs.add((names[one], names[other]))
    for client in clients:
        for broker in rng.permutation(names)[: int(rng.integers(1, 3))]:
            pairs.add((str(broker), client))
    if rng.random() < 0.2:
        pairs.add((clients[0], clients[1]))
    everybody = names + clients
    topics = []
    left = most_requests
    for number in range(int(rng.integers(1, 4))):
        source = str(rng.choice(clients if rng.random() < 0.8 else everybody))
        others = [name for name in (clients if rng.random() < 0.8 else everybody) if name != source]
        count = min(left, len(others), int(rng.integers(1, 4)))
        chosen = tuple(str(name) for name in rng.permutation(others)[:count])
        left -= count
        roles[source].add("publisher")
        for name in chosen:
            roles[name].add("subscriber")
        topics.append(
            Topic(
                id=f"t{number}",
                source=source,
                rate=float(rng.integers(1, 4)),
                subscribers=chosen,
                level=int(rng.integers(0, 4)) if rng.random() < 0.3 else 0,
                max_latency=float(rng.integers(2, 8)) if limits and rng.random() < 0.5 else None,
            )
        )
    for name in clients:
        roles[name] = roles[name] or {"subscriber"}
    instance = Instance(
        name=f"small-{seed}",
        nodes=tuple(
            Node(
                id=name,
                roles=tuple(sorted(roles[name])),
                max_connections=int(rng.integers(1, 4)) if limits and name in names and rng.random() < 0.5 else None,
            )
            for name in everybody
        ),
        links=tuple(
            Link(
                a=a,
                b=b,
                capacity=UNLIMITED if rng.random() < 0.1 else float(rng.integers(0, 7)),
                cost=float(rng.integers(0 if rng.random() < 0.2 else 1, 6)),
                latency=float(rng.integers(1, 4)),
            )
            for a, b in sorted(pairs)
        ),
        topics=tuple(topics),
        unmet_cost=float(rng.integers(3, 40)) if rng.random() < 0.4 else None,
        n_max=int(rng.integers(1, 3)) if limits and rng.random() < 0.5 else None,
    )
    return checked(instance)


def optimum(instance: Instance) -> float:
    """The least objective of all plans, found by trying every way of every request."""
    nodes = {node.id: node for node in instance.nodes}
    links = {frozenset((link.a, link.b)): link for link in instance.links}
    per_topic = [list(topic_trees(instance, topic)) for topic in instance.topics]
    best = np.inf
    for choice in product(*per_topic):
        value = sum(part[0] for part in choice)
        if value >= best:
            continue
        load: dict[frozenset[str], float] = {}
        users: dict[frozenset[str], list[Topic]] = {}
        for topic, (_, hops) in zip(instance.topics, choice, strict=True):
            for tail, head in hops:
                pair = frozenset((tail, head))
                load[pair] = load.get(pair, 0.0) + topic.rate
                users.setdefault(pair, []).append(topic)
        if any(load[pair] + _worst_rise(instance, users[pair]) > links[pair].capacity + 1e-9 for pair in load):
            continue
        degree: dict[str, int] = {}
        for pair in load:
            for node in pair:
                degree[node] = degree.get(node, 0) + 1
        limit = {name: node.max_connections for name, node in nodes.items()}
        if any(limit[node] is not None and degree[node] > (limit[node] or 0) for node in degree):
            continue
        best = value
    return float(best)


def _worst_rise(instance: Instance, users: list[Topic]) -> float:
    """What the topics of a link may add, by every choice of those that rise."""
    rises = [topic.rate_max - topic.rate for topic in users if topic.rate_max is not None]
    most = len(rises) if instance.deviations is None else min(instance.deviations, len(rises))
    return max((sum(chosen) for chosen in combinations(rises, most)), default=0.0)


def topic_trees(instance: Instance, topic: Topic) -> Iterator[tuple[float, frozenset[tuple[str, str]]]]:
    """The objective and hops of every tree that serves some of a topic's subscribers."""
    nodes = {node.id: node for node in instance.nodes}
    links = {frozenset((link.a, link.b)): link for link in instance.links}
    near: dict[str, list[str]] = {node: [] for node in nodes}
    for link in instance.links:
        near[link.a].append(link.b)
        near[link.b].append(link.a)
    price = request_price(instance, topic)
    ways = [[None, *_ways(topic, who, nodes, near)] for who in topic.subscribers]
    seen: dict[frozenset[tuple[str, str]], float] = {}
    for choice in product(*ways):
        hops = {hop for way in choice if way is not None for hop in way}
        if len({head for _, head in hops}) < len(hops):
            continue
        value = 0.0
        in_time = True
        for way in choice:
            if way is None:
                value += price
                continue
            value += sum(links[frozenset(hop)].cost for hop in way)
            delay = sum(links[frozenset(hop)].latency for hop in way)
            in_time = in_time and (topic.max_latency is None or delay <= topic.max_latency)
        fanout: dict[str, int] = {}
        for tail, _ in hops:
            fanout[tail] = fanout.get(tail, 0) + 1
        if instance.n_max is not None and any(
            count > instance.n_max and nodes[tail].is_broker for tail, count in fanout.items()
        ):
            continue
        key = frozenset(hops)
        if in_time and value < seen.get(key, np.inf):
            seen[key] = value
    for key, value in seen.items():
        yield value, key


def _ways(
    topic: Topic, target: str, nodes: dict[str, Node], near: dict[str, list[str]]
) -> Iterator[tuple[tuple[str, str], ...]]:
    """Every loop-free way from a topic's source to a subscriber, over brokers only."""
    stack: list[tuple[str, ...]] = [(source,) for source in (topic.source, *topic.more_sources)]
    while stack:
        way = stack.pop()
        for other in near[way[-1]]:
            if other in way or other == topic.source or other in topic.more_sources:
                continue
            if other == target:
                longer = (*way, other)
                yield tuple(pairwise(longer))
            if nodes[other].is_broker:
                stack.append((*way, other))


def islands(seed: int, *, count: int = 3, room: int = 6) -> Instance:
    """Rings of brokers joined at single brokers or by bridges, with a tail of brokers and clients on each."""
    rng = np.random.default_rng([seed, 77])
    pairs: list[tuple[str, str]] = []
    brokers: list[str] = []
    clients: list[str] = []
    for island in range(count):
        ring = [f"b{island}{number}" for number in range(int(rng.integers(3, 5)))]
        if island:
            door = brokers[int(rng.integers(len(brokers)))]
            if rng.random() < 0.5:
                ring[0] = door
            else:
                pairs.append((door, ring[0]))
        pairs += [*pairwise(ring), (ring[-1], ring[0])]
        tail = f"b{island}t"
        pairs.append((ring[1], tail))
        brokers += [name for name in (*ring, tail) if name not in brokers]
        for number in range(2):
            clients.append(f"c{island}{number}")
            pairs.append((str(rng.choice([*ring, tail])), clients[-1]))
    chosen = [tuple(str(name) for name in rng.permutation(clients)[:3]) for _ in range(2)]
    return checked(
        Instance(
            name=f"islands-{seed}",
            nodes=(
                *(Node(id=name, roles=("broker",)) for name in brokers),
                *(Node(id=name, roles=("publisher", "subscriber")) for name in clients),
            ),
            links=tuple(
                Link(a=a, b=b, capacity=float(rng.integers(2, room + 1)), cost=float(rng.integers(1, 6)))
                for a, b in pairs
            ),
            topics=tuple(
                Topic(id=f"t{number}", source=names[0], rate=float(rng.integers(1, 4)), subscribers=names[1:])
                for number, names in enumerate(chosen)
            ),
            unmet_cost=None if rng.random() < 0.6 else float(rng.integers(5, 500)),
        )
    )


def share_of_optima(planned: Callable[[Instance], Plan], seeds: range, *, limits: bool) -> float:
    """The share of optimal plans for small instances; none may be better, and no bound may exceed the optimum."""
    equal = 0
    for seed in seeds:
        instance = small(seed, limits=limits, most_requests=5)
        plan, best = planned(instance), optimum(instance)
        assert plan.objective >= best - 1e-9, seed
        assert plan.bound <= best + 1e-6 * max(1.0, best), seed
        equal += plan.objective <= best + 1e-6 * max(1.0, best)
    return equal / len(seeds)
