"""Who hears whom, and the ways with the fewest hops: found by the compiled search, for all protocols alike."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from tieline.compiling import compiled
from tieline.sim.sensors.air import Air, Rules
from tieline.sim.sensors.batteries import throw
from tieline.sim.sensors.world import Floats, Ints


def neighbours(positions: Floats, reach: float) -> tuple[Ints, Ints]:
    """For each sensor where its list begins, and the lists of those in reach, one after the other."""
    pairs = cKDTree(positions).query_pairs(reach, output_type="ndarray")
    both = np.concatenate((pairs, pairs[:, ::-1]))
    order = np.lexsort((both[:, 1], both[:, 0]))
    start = np.zeros(len(positions) + 1, np.int32)
    np.cumsum(np.bincount(both[:, 0], minlength=len(positions)), out=start[1:])
    return start, both[order, 1].astype(np.int32)


@compiled
def find_ways(air: Air, destination: int, row: int) -> None:
    """The next hop of every living sensor towards one of them; of several as near, one at random."""
    next_hop = air.next_hop[row]
    hops = air.hops[row]
    next_hop[:] = -1
    hops[:] = -1
    if not air.alive[destination]:
        return
    line = air.scratch
    line[0] = destination
    hops[destination] = 0
    first, behind = 0, 1
    while first < behind:
        node = line[first]
        first += 1
        if hops[node] > 0:
            next_hop[node] = _nearer(air, node, hops)
        for place in range(air.neighbour_start[node], air.neighbour_start[node + 1]):
            other = air.neighbour[place]
            if hops[other] < 0 and air.alive[other]:
                hops[other] = hops[node] + 1
                line[behind] = other
                behind += 1


@compiled
def _nearer(air: Air, node: int, hops: Ints) -> int:
    """A neighbour that is one hop nearer."""
    chosen = -1
    found = 0
    for place in range(air.neighbour_start[node], air.neighbour_start[node + 1]):
        other = air.neighbour[place]
        if hops[other] == hops[node] - 1 and air.alive[other]:
            found += 1
            if throw(air.dice) * found < 1.0:
                chosen = other
    return chosen


@compiled
def find_all_ways(air: Air, rules: Rules) -> None:
    """All ways anew, as batteries and positions are now."""
    for destination in range(rules.sensors):
        if air.row[destination] >= 0:
            find_ways(air, destination, air.row[destination])
