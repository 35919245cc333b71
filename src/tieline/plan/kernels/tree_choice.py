"""The best choice of one tree per topic, out of trees that are at hand.

Theory of operation
-------------------
A plan is a tree per topic.  Once many trees are at hand, planning is choosing: one for each topic, so that no link
carries more than it can.  No way has to be searched for that, and a move takes microseconds.

A move gives a topic another tree.  Topics that stand in its way lose theirs, and so may some that stand in the way of
what these would like.  All of them choose again together: the cheapest choice that fits, by branch and bound.  It is
accepted as in simulated annealing.

Which tree a topic is given is drawn by what trees cost with the worth of the capacity that they take: half of the trees
of the best plans that we know are the first or second of their topics in that order, nine of ten among the first ten;
in the order of bare costs, among the first forty.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Flags, Floats, Ints
from tieline.plan.kernels.chance import Seed, below, uniform

#: At most so many topics choose together, and at most so many trees are tried for them.
_GROUP: Final = 10
_TRIED: Final = 1_000
#: How often a topic is asked who stands in its way before the group is as large as it may be.
_ASKED: Final = 6
#: How much trees that come early in the order of likelihood are preferred: a power of a random number.
_SKEW: Final = 3.0
#: Moves after which room is added up anew, before differences of rounding grow.
_PERIOD: Final = 256


class Candidates(NamedTuple):
    """Trees to choose from; nothing in it changes."""

    #: Trees of topic k, the cheapest first: ``first[k]`` up to ``first[k + 1]``.
    first: Ints
    #: Per tree: what its links and the requests that it leaves unmet cost.
    cost: Floats
    #: Trees of topic k, the likeliest first: ``likely[first[k]:first[k + 1]]``.
    likely: Ints
    #: Links of tree t: ``link[link_first[t]:link_first[t + 1]]``.
    link_first: Ints
    link: Ints
    #: Per tree and link.
    uses: Flags
    #: Per topic, and per link.
    rate: Floats
    capacity: Floats


class Placement(NamedTuple):
    """Where trees are put down and taken up."""

    #: Per link: capacity that is left.
    room: Floats
    #: Topics that choose together; per topic, whether it is one of them.
    group: Ints
    is_in: Flags
    #: Per place in the group: the cheapest tree that may fit, the one to try next, the one that is put down, and
    #: that of the best choice.
    cheapest: Ints
    next: Ints
    down: Ints
    answer: Ints
    #: Per place in the group: what it and those behind it cost at least.
    least: Floats


def empty_placement(candidates: Candidates) -> Placement:
    """The placement in which no tree is put down yet."""
    topics = len(candidates.rate)
    return Placement(
        room=candidates.capacity.copy(),
        group=np.empty(topics, np.int64),
        is_in=np.zeros(topics, np.bool_),
        cheapest=np.empty(topics, np.int64),
        next=np.empty(topics, np.int64),
        down=np.empty(topics, np.int64),
        answer=np.empty(topics, np.int64),
        least=np.zeros(topics + 1),
    )


@compiled
def choose_trees(  # numba passes arrays, not objects
    candidates: Candidates,
    placement: Placement,
    chosen: Ints,
    best: Ints,
    seed: Seed,
    moves: int,
    hot: float,
    cool: float,
) -> float:
    """Move from the choice that stands, which fits, while the temperature falls; the cost of the best choice.

    ``chosen`` is the choice at the end, ``best`` the best one.
    """
    topics = len(chosen)
    cost = 0.0
    for topic in range(topics):
        cost += candidates.cost[chosen[topic]]
    least = cost
    best[:] = chosen
    for move in range(moves):
        if move % _PERIOD == 0:
            placement.room[:] = candidates.capacity
            for topic in range(topics):
                _put(candidates, placement, topic, chosen[topic], 1.0)
        heat = hot * (cool / hot) ** (move / moves)
        cost += _move(candidates, placement, chosen, seed, heat)
        if cost < least - 1e-9 * max(1.0, abs(least)):
            least = cost
            best[:] = chosen
    return least


@compiled
def _move(candidates: Candidates, placement: Placement, chosen: Ints, seed: Seed, heat: float) -> float:
    """Give a topic another tree and let whoever is in the way choose again; by how much the plan is dearer."""
    topic = below(seed, len(chosen))
    old = chosen[topic]
    tree = _draw(candidates, topic, seed)
    if tree == old:
        return 0.0
    size = 2 + below(seed, min(_GROUP, len(chosen)) - 1) if len(chosen) > 1 else 1
    _put(candidates, placement, topic, old, -1.0)
    placement.is_in[:] = False
    placement.is_in[topic] = True
    placement.group[0] = topic
    count = _clear(candidates, placement, chosen, topic, tree, 1, size, seed)
    if _fits(candidates, placement, topic, tree):
        for _ in range(_ASKED):
            if count > 1 and count < size:
                other = placement.group[1 + below(seed, count - 1)]
                count = _clear(candidates, placement, chosen, other, _draw(candidates, other, seed), count, size, seed)
        before = 0.0
        for place in range(count):
            before += candidates.cost[chosen[placement.group[place]]]
        most = before - heat * math.log(1.0 - uniform(seed))
        _put(candidates, placement, topic, tree, 1.0)
        after = candidates.cost[tree] + _choose(candidates, placement, count, most - candidates.cost[tree])
        if after < np.inf:
            chosen[topic] = tree
            for place in range(1, count):
                chosen[placement.group[place]] = placement.answer[place]
                _put(candidates, placement, placement.group[place], placement.answer[place], 1.0)
            return float(after - before)
        _put(candidates, placement, topic, tree, -1.0)
    for place in range(count):
        _put(candidates, placement, placement.group[place], chosen[placement.group[place]], 1.0)
    return 0.0


@compiled
def _draw(candidates: Candidates, topic: int, seed: Seed) -> int:
    """A tree of a topic; likely ones come more often."""
    trees = candidates.first[topic + 1] - candidates.first[topic]
    return int(candidates.likely[candidates.first[topic] + int(trees * uniform(seed) ** _SKEW)])


@compiled
def _clear(  # numba passes arrays, not objects
    candidates: Candidates, placement: Placement, chosen: Ints, topic: int, tree: int, count: int, size: int, seed: Seed
) -> int:
    """Let topics on full links of a tree join the group, which has ``count`` members and may have ``size``."""
    topics = len(chosen)
    for place in range(candidates.link_first[tree], candidates.link_first[tree + 1]):
        link = candidates.link[place]
        if placement.room[link] >= candidates.rate[topic]:
            continue
        offset = below(seed, topics)
        for step in range(topics):
            if count == size:
                return count
            other = (step + offset) % topics
            if not placement.is_in[other] and candidates.uses[chosen[other], link]:
                placement.is_in[other] = True
                placement.group[count] = other
                count += 1
                _put(candidates, placement, other, chosen[other], -1.0)
    return count


@compiled
def _choose(candidates: Candidates, placement: Placement, count: int, most: float) -> float:
    """The cheapest trees that fit for the group but its first member, as ``answer``; infinite beyond ``most``."""
    # whoever is hardest to place goes first
    for place in range(2, count):
        mover = placement.group[place]
        hole = place
        while hole > 1 and candidates.rate[placement.group[hole - 1]] < candidates.rate[mover]:
            placement.group[hole] = placement.group[hole - 1]
            hole -= 1
        placement.group[hole] = mover
    placement.least[count] = 0.0
    for place in range(count - 1, 0, -1):
        topic = placement.group[place]
        tree = candidates.first[topic]
        # what finds no room now will find none later
        while tree < candidates.first[topic + 1] and not _fits(candidates, placement, topic, tree):
            tree += 1
        if tree == candidates.first[topic + 1]:
            return np.inf
        placement.cheapest[place] = tree
        placement.least[place] = placement.least[place + 1] + candidates.cost[tree]
        if placement.least[place] > most:
            return np.inf
    if count == 1:
        return 0.0 if most >= 0.0 else np.inf
    found = np.inf
    cost = 0.0
    tried = 0
    place = 1
    placement.next[1] = placement.cheapest[1]
    while place > 0:
        topic = placement.group[place]
        tree = placement.next[place]
        is_over = tree == candidates.first[topic + 1] or tried == _TRIED
        if is_over or cost + candidates.cost[tree] + placement.least[place + 1] > most:
            # trees are sorted by cost: neither this one nor a later one will do
            place -= 1
            if place > 0:
                _put(candidates, placement, placement.group[place], placement.down[place], -1.0)
                cost -= candidates.cost[placement.down[place]]
            continue
        placement.next[place] += 1
        tried += 1
        if not _fits(candidates, placement, topic, tree):
            continue
        placement.down[place] = tree
        if place < count - 1:
            _put(candidates, placement, topic, tree, 1.0)
            cost += candidates.cost[tree]
            place += 1
            placement.next[place] = placement.cheapest[place]
        else:
            found = cost + candidates.cost[tree]
            most = found - 1e-9 * max(1.0, abs(found))
            placement.answer[1:count] = placement.down[1:count]
    return found


@compiled
def _put(candidates: Candidates, placement: Placement, topic: int, tree: int, sign: float) -> None:
    """Put a topic's tree down, or take it up with a sign of -1."""
    for place in range(candidates.link_first[tree], candidates.link_first[tree + 1]):
        placement.room[candidates.link[place]] -= sign * candidates.rate[topic]


@compiled
def _fits(candidates: Candidates, placement: Placement, topic: int, tree: int) -> bool:
    """Whether a topic's tree finds room."""
    for place in range(candidates.link_first[tree], candidates.link_first[tree + 1]):
        if placement.room[candidates.link[place]] < candidates.rate[topic]:
            return False
    return True
