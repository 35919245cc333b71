"""Which broker a client should use: proposals that shorten the ways of what it publishes and wants.

Theory of operation
-------------------
Everybody else stays where they are, and plans stay in force.  By distances between brokers it is estimated what a
client would save at each of them; then the candidates are tried, those that promise most first.  A client moves if all
messages, followed as brokers would pass them on, come to less rate times cost on the links, and no more is kept from
getting through than before.  So each proposal is judged with those before it in force.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from tieline.plan.adapt.deviation import shortfall
from tieline.plan.in_force import InForce
from tieline.plan.instance import Instance
from tieline.plan.tables import Part

#: What saves less than this share of all that is carried moves nobody.
LEAST_GAIN = 0.01
#: Candidates that are tried for each client that may move.
_TRIES = 4


class ClientMove(NamedTuple):
    """A client that should use another broker."""

    client: str
    before: str
    after: str
    #: Rate times cost that links carry less, and the rate that gets through beside what did.
    saved: float
    relieved: float


def proposals(  # what runs, and who may do what
    instance: Instance,
    at: Mapping[str, str],
    parts: Mapping[str, Part],
    *,
    movable: Collection[str],
    brokers: Collection[str],
    most: int,
) -> list[ClientMove]:
    """Clients that should move to one of some brokers, in the order in which they should; ``at`` is where all are."""
    where = dict(at)
    standing = InForce(instance, where, parts)
    carried, short = _carried(standing), shortfall(standing)
    least = LEAST_GAIN * carried
    found: list[ClientMove] = []
    tries = 0
    for client, broker in _candidates(instance, where, movable, brokers):
        if len(found) == most or tries == most * _TRIES:
            break
        if any(client == each.client for each in found):
            continue
        tries += 1
        tried = InForce(instance, where | {client: broker}, parts)
        now_carried, now_short = _carried(tried), shortfall(tried)
        is_relief = now_short < short - 1e-6
        if now_short > short + 1e-6 or not (is_relief or carried - now_carried >= max(least, 1e-9)):
            continue
        found.append(ClientMove(client, where[client], broker, carried - now_carried, short - now_short))
        where[client], carried, short = broker, now_carried, now_short
    return found


def _candidates(
    instance: Instance, at: Mapping[str, str], movable: Collection[str], brokers: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Pairs of a client and a broker where it would be nearer to those it has to do with, what saves most first."""
    distances = _distances(instance)
    #: By client and the broker at the other end, the rate between them.
    rates: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for topic in instance.topics:
        source = at.get(topic.source)
        for subscriber in topic.subscribers:
            there = at.get(subscriber)
            if source is not None and there is not None:
                rates[topic.source][there] += topic.rate
                rates[subscriber][source] += topic.rate
    savings = []
    for client in sorted(movable):
        home, ends = at.get(client), rates.get(client)
        if home is None or ends is None:
            continue
        now = sum(rate * distances[home].get(end, math.inf) for end, rate in ends.items())
        for broker in brokers:
            then = sum(rate * distances[broker].get(end, math.inf) for end, rate in ends.items())
            if broker != home and then < now:
                savings.append((then - now, client, broker))
    for _saving, client, broker in sorted(savings):
        yield client, broker


def _carried(ways: InForce) -> float:
    """Rate times cost on all links between brokers."""
    return sum(load * link.cost for link, load in zip(ways.instance.links, ways.loads, strict=True))


def _distances(instance: Instance) -> dict[str, dict[str, float]]:
    brokers = {node.id for node in instance.nodes if node.is_broker}
    costs: dict[str, dict[str, float]] = {broker: {} for broker in brokers}
    for link in instance.links:
        if {link.a, link.b} <= brokers:
            costs[link.a][link.b] = costs[link.b][link.a] = link.cost
    found: dict[str, dict[str, float]] = {}
    for broker in brokers:
        known = found[broker] = {}
        front = [(0.0, broker)]
        while front:
            distance, each = heappop(front)
            if each not in known:
                known[each] = distance
                for other, cost in costs[each].items():
                    heappush(front, (distance + cost, other))
    return found
