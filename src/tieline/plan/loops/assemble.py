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
from tieline.plan.loops.chance import Seed, below, uniform

#: At most so many topics choose together, and at most so many trees are tried for them.
_GROUP: Final = 10
_TRIED: Final = 1_000
#: How often a topic is asked who stands in its way before the group is as large as it may be.
_ASKED: Final = 6
#: How much trees that come early in the order of likelihood are preferred: a power of a random number.
_SKEW: Final = 3.0
#: Moves after which room is added up anew, before differences of rounding grow.
_PERIOD: Final = 256


class Stock(NamedTuple):
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


class Board(NamedTuple):
    """Where trees are put down and taken up."""

    #: Per link: capacity that is left.
    room: Floats
    #: Topics that choose together; per topic, whether it is one of them.
    group: Ints
    is_in: Flags
    #: Per place in the group: the cheapest tree that may fit, the one to try next, the one that lies on the board, and
    #: that of the best choice.
    cheapest: Ints
    next: Ints
    down: Ints
    answer: Ints
    #: Per place in the group: what it and those behind it cost at least.
    least: Floats


def board(stock: Stock) -> Board:
    """An empty board."""
    topics = len(stock.rate)
    return Board(
        room=stock.capacity.copy(),
        group=np.empty(topics, np.int64),
        is_in=np.zeros(topics, np.bool_),
        cheapest=np.empty(topics, np.int64),
        next=np.empty(topics, np.int64),
        down=np.empty(topics, np.int64),
        answer=np.empty(topics, np.int64),
        least=np.zeros(topics + 1),
    )


@compiled
def assemble(
    stock: Stock, board: Board, chosen: Ints, best: Ints, seed: Seed, moves: int, hot: float, cool: float
) -> float:
    """Move from the choice that stands, which fits, while the temperature falls; the cost of the best choice.

    ``chosen`` is the choice at the end, ``best`` the best one.
    """
    topics = len(chosen)
    cost = 0.0
    for topic in range(topics):
        cost += stock.cost[chosen[topic]]
    least = cost
    best[:] = chosen
    for move in range(moves):
        if move % _PERIOD == 0:
            board.room[:] = stock.capacity
            for topic in range(topics):
                _put(stock, board, topic, chosen[topic], 1.0)
        heat = hot * (cool / hot) ** (move / moves)
        cost += _move(stock, board, chosen, seed, heat)
        if cost < least - 1e-9 * max(1.0, abs(least)):
            least = cost
            best[:] = chosen
    return least


@compiled
def _move(stock: Stock, board: Board, chosen: Ints, seed: Seed, heat: float) -> float:
    """Give a topic another tree and let whoever is in the way choose again; by how much the plan is dearer."""
    topic = below(seed, len(chosen))
    old = chosen[topic]
    tree = _draw(stock, topic, seed)
    if tree == old:
        return 0.0
    size = 2 + below(seed, min(_GROUP, len(chosen)) - 1) if len(chosen) > 1 else 1
    _put(stock, board, topic, old, -1.0)
    board.is_in[:] = False
    board.is_in[topic] = True
    board.group[0] = topic
    count = _clear(stock, board, chosen, topic, tree, 1, size, seed)
    if _fits(stock, board, topic, tree):
        for _ in range(_ASKED):
            if count > 1 and count < size:
                other = board.group[1 + below(seed, count - 1)]
                count = _clear(stock, board, chosen, other, _draw(stock, other, seed), count, size, seed)
        before = 0.0
        for place in range(count):
            before += stock.cost[chosen[board.group[place]]]
        most = before - heat * math.log(1.0 - uniform(seed))
        _put(stock, board, topic, tree, 1.0)
        after = stock.cost[tree] + _choose(stock, board, count, most - stock.cost[tree])
        if after < np.inf:
            chosen[topic] = tree
            for place in range(1, count):
                chosen[board.group[place]] = board.answer[place]
                _put(stock, board, board.group[place], board.answer[place], 1.0)
            return float(after - before)
        _put(stock, board, topic, tree, -1.0)
    for place in range(count):
        _put(stock, board, board.group[place], chosen[board.group[place]], 1.0)
    return 0.0


@compiled
def _draw(stock: Stock, topic: int, seed: Seed) -> int:
    """A tree of a topic; likely ones come more often."""
    trees = stock.first[topic + 1] - stock.first[topic]
    return int(stock.likely[stock.first[topic] + int(trees * uniform(seed) ** _SKEW)])


@compiled
def _clear(stock: Stock, board: Board, chosen: Ints, topic: int, tree: int, count: int, size: int, seed: Seed) -> int:
    """Let topics on full links of a tree join the group, which has ``count`` members and may have ``size``."""
    topics = len(chosen)
    for place in range(stock.link_first[tree], stock.link_first[tree + 1]):
        link = stock.link[place]
        if board.room[link] >= stock.rate[topic]:
            continue
        offset = below(seed, topics)
        for step in range(topics):
            if count == size:
                return count
            other = (step + offset) % topics
            if not board.is_in[other] and stock.uses[chosen[other], link]:
                board.is_in[other] = True
                board.group[count] = other
                count += 1
                _put(stock, board, other, chosen[other], -1.0)
    return count


@compiled
def _choose(stock: Stock, board: Board, count: int, most: float) -> float:
    """The cheapest trees that fit for the group but its first member, as ``answer``; infinite beyond ``most``."""
    # whoever is hardest to place goes first
    for place in range(2, count):
        mover = board.group[place]
        hole = place
        while hole > 1 and stock.rate[board.group[hole - 1]] < stock.rate[mover]:
            board.group[hole] = board.group[hole - 1]
            hole -= 1
        board.group[hole] = mover
    board.least[count] = 0.0
    for place in range(count - 1, 0, -1):
        topic = board.group[place]
        tree = stock.first[topic]
        # what finds no room now will find none later
        while tree < stock.first[topic + 1] and not _fits(stock, board, topic, tree):
            tree += 1
        if tree == stock.first[topic + 1]:
            return np.inf
        board.cheapest[place] = tree
        board.least[place] = board.least[place + 1] + stock.cost[tree]
        if board.least[place] > most:
            return np.inf
    if count == 1:
        return 0.0 if most >= 0.0 else np.inf
    found = np.inf
    cost = 0.0
    tried = 0
    place = 1
    board.next[1] = board.cheapest[1]
    while place > 0:
        topic = board.group[place]
        tree = board.next[place]
        is_over = tree == stock.first[topic + 1] or tried == _TRIED
        if is_over or cost + stock.cost[tree] + board.least[place + 1] > most:
            # trees are sorted by cost: neither this one nor a later one will do
            place -= 1
            if place > 0:
                _put(stock, board, board.group[place], board.down[place], -1.0)
                cost -= stock.cost[board.down[place]]
            continue
        board.next[place] += 1
        tried += 1
        if not _fits(stock, board, topic, tree):
            continue
        board.down[place] = tree
        if place < count - 1:
            _put(stock, board, topic, tree, 1.0)
            cost += stock.cost[tree]
            place += 1
            board.next[place] = board.cheapest[place]
        else:
            found = cost + stock.cost[tree]
            most = found - 1e-9 * max(1.0, abs(found))
            board.answer[1:count] = board.down[1:count]
    return found


@compiled
def _put(stock: Stock, board: Board, topic: int, tree: int, sign: float) -> None:
    """Put a topic's tree on the board, or take it up with a sign of -1."""
    for place in range(stock.link_first[tree], stock.link_first[tree + 1]):
        board.room[stock.link[place]] -= sign * stock.rate[topic]


@compiled
def _fits(stock: Stock, board: Board, topic: int, tree: int) -> bool:
    """Whether a topic's tree finds room."""
    for place in range(stock.link_first[tree], stock.link_first[tree + 1]):
        if board.room[stock.link[place]] < stock.rate[topic]:
            return False
    return True
