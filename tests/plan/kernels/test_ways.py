from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.plan.worlds import small
from tieline.compiling import PLAIN
from tieline.plan.arrays import TOLERANCE, Arrays, arrays
from tieline.plan.generate.testset import paper
from tieline.plan.kernels.heap import pop, push
from tieline.plan.kernels.network import Net, net
from tieline.plan.kernels.state import State, empty_state, leave, set_worth, state_of, trees_of, way_cost
from tieline.plan.kernels.ways import Scratch, find, join, scratch
from tieline.plan.routes import load, value


def grown(numbers: Arrays, seed: int) -> tuple[Net, State, Scratch]:
    """A state in which requests have come and gone at random."""
    network, table = net(numbers), scratch(numbers)
    state = empty_state(numbers, network)
    rng = np.random.default_rng(seed)
    free = np.zeros(numbers.links)
    set_worth(state, network, np.where(np.isfinite(numbers.capacity), rng.random(numbers.links), 0.0))
    for request in rng.integers(0, numbers.requests, 60).tolist():
        if state.served[request]:
            leave(network, state, request)
            continue
        _, _, length = find(network, state, table, request, free, np.inf, -1)
        if length >= 0:
            join(network, state, table, request, length)
    return network, state, table


@pytest.mark.parametrize("seed", range(20))
def test_the_state_is_that_of_its_trees(seed: int) -> None:
    """Room, users, connections, counts and rent are what the trees imply, however they came about."""
    numbers = arrays(small(seed, limits=seed % 2 == 1, most_requests=6))
    network, state, _ = grown(numbers, seed)
    trees = trees_of(numbers, state)
    again = state_of(numbers, network, trees)
    assert (again.entering == state.entering).all()
    assert (again.through == state.through).all()
    assert (again.users == state.users).all()
    assert (again.connections == state.connections).all()
    used = load(numbers, trees)
    limited = np.isfinite(numbers.capacity)
    assert np.allclose(network.capacity[limited] - state.room[limited], used[limited])
    assert (used <= numbers.capacity * (1 + TOLERANCE)).all()
    assert state.rent[0] == pytest.approx(float(state.worth[limited] @ used[limited]))


@pytest.mark.parametrize("seed", range(20))
def test_a_found_way_is_the_cheapest_by_bellman_and_ford(seed: int) -> None:
    """The guide does not mislead: the weight of the way is the least over all free arcs, from any node of the tree."""
    numbers = arrays(small(seed, most_requests=6))
    network, state, table = grown(numbers, seed + 1)
    rng = np.random.default_rng(seed)
    price = rng.random(numbers.links) * rng.integers(0, 3)
    for request in np.flatnonzero(~state.served).tolist():
        topic = int(numbers.request_topic[request])
        target = int(numbers.request_node[request])
        distance = np.full(numbers.nodes, np.inf)
        distance[numbers.source[topic]] = 0.0
        in_tree = np.flatnonzero(state.entering[:, topic] >= 0)
        for _ in range(numbers.nodes):
            for node in in_tree:
                arc = state.entering[node, topic]
                distance[node] = distance[numbers.tail[arc]] + numbers.cost[arc >> 1]
        fixed = distance < np.inf
        for _ in range(numbers.nodes):
            for arc in np.flatnonzero(numbers.usable(topic)):
                head, tail, link = numbers.head[arc], numbers.tail[arc], arc >> 1
                relays = numbers.is_broker[head] or head == target
                if not fixed[head] and relays and state.room[link] >= numbers.rate[topic]:
                    reached = distance[tail] + numbers.cost[link] + numbers.rate[topic] * price[link]
                    distance[head] = min(distance[head], reached)
        weight, _, length = find(network, state, table, request, price, np.inf, -1)
        assert (length >= 0) == bool(np.isfinite(distance[target]))
        assert weight == pytest.approx(distance[target])


def test_the_cost_of_ways_is_the_cost_of_the_plan() -> None:
    numbers = arrays(paper("res5", tightness=1.0))
    network, state, _ = grown(numbers, 1)
    total = sum(way_cost(network, state, int(request)) for request in np.flatnonzero(state.served))
    assert total == pytest.approx(value(numbers, trees_of(numbers, state))[0])


def test_the_heap_sorts() -> None:
    rng = np.random.default_rng(0)
    keys, items = np.empty(200), np.empty(200, np.int64)
    values = rng.integers(0, 50, 200).astype(np.float64)
    size = 0
    for item, key in enumerate(values):
        size = push(keys, items, size, float(key), item)
    popped = []
    while size:
        popped.append(pop(keys, items, size))
        size -= 1
    assert sorted(popped) == list(range(200))
    assert [values[item] for item in popped] == sorted(values)


def test_plain_python_finds_the_same_plan() -> None:
    """What numba compiles and what Python runs are one program: the same seed gives the same plan."""
    script = (
        "from tests.plan.worlds import small\n"
        "from tieline.plan.arrays import arrays\n"
        "from tieline.plan.run import Run\n"
        "from tieline.plan.search.neighbourhood import search\n"
        "for seed in range(6):\n"
        "    numbers = arrays(small(seed, limits=seed % 2 == 1, most_requests=6))\n"
        "    found = search(numbers, Run(iterations=40))\n"
        "    print(found.trees.entering, found.trees.served.tolist(), round(found.bound, 6))\n"
    )
    results = []
    for plain in ("", "1"):
        environment = {**os.environ, PLAIN: plain}
        run = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True, timeout=300
        )
        results.append(run.stdout)
    assert results[0] == results[1]
    assert results[0].count("\n") == 6
