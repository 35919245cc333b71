"""Whether a network that runs has left its plan: what it carries and which links it has, beside what was planned.

Theory of operation
-------------------
Whoever watches remembers what the plan was made for: the load and the capacity of each link between brokers.  Every
look follows the traffic that was measured through the tables in force, and compares.  A plan is left when a link is
gone, new or another one; when a link would carry more than it can, or by a margin more or less than planned, since its
pace follows the plan; and when flows travel that the plan does not know.  Each of these is one sentence, because an
operator wants to know why traffic moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import pairwise

import msgspec

from tieline.plan.in_force import InForce, TopicToBroker
from tieline.plan.instance import Instance

#: Capacities that differ by less than this share are the same: brokers measure them, or say them in bits.
_SAME_CAPACITY = 0.01
#: More than this share of a capacity is too much; sums of measured rates are never exact.
_FULL = 1e-6

#: The two brokers of a link, in the order of their names.
Ends = tuple[str, str]


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan was made for: by link between brokers, what it was to carry and what it can."""

    loads: Mapping[Ends, float]
    capacities: Mapping[Ends, float]
    #: What it left to the shortest way, knowingly.
    left: AbstractSet[TopicToBroker] = frozenset()


def ends_of(a: str, b: str) -> Ends:
    """A link, whichever way it is written."""
    return (a, b) if a <= b else (b, a)


def expected(now: InForce, *, knows_left: bool = True) -> Expected:
    """What is there now, to compare with later; ``knows_left`` if what no plan leads is left to the shortest way."""
    left = frozenset(now.uncovered) if knows_left else frozenset[TopicToBroker]()
    return Expected(loads=loads(now), capacities=capacities(now.instance), left=left)


def loads(now: InForce) -> dict[Ends, float]:
    """What is put on each link between brokers."""
    return {
        ends_of(link.a, link.b): load
        for link, load in zip(now.instance.links, now.loads, strict=True)
        if _is_inner(now.instance, link.a, link.b)
    }


def capacities(instance: Instance) -> dict[Ends, float]:
    """What each link between brokers can carry."""
    return {ends_of(link.a, link.b): link.capacity for link in instance.links if _is_inner(instance, link.a, link.b)}


def shortfall(now: InForce) -> float:
    """What would not get through, all flows between brokers together: a full link lets the same share of each pass."""
    links = zip(now.instance.links, now.loads, strict=True)
    passing = {
        ends_of(link.a, link.b): link.capacity / load for link, load in links if load > link.capacity * (1 + _FULL)
    }
    rates = {topic.key: topic.rate for topic in now.instance.topics}
    return sum(
        rates[flow.topic, flow.source] * (1 - min(passing.get(ends_of(*hop), 1.0) for hop in pairwise(way)))
        for flow, way in now.ways.items()
        if len(way) > 1
    )


def departures(plan: Expected | None, now: InForce, *, margin: float) -> list[str]:
    """Why the plan is no longer what it was made for, as sentences without a full stop; none if it is.

    ``margin`` is the share of a link's capacity by which its load may differ.  Without a plan only what is wrong with
    the ways as they are is said.
    """
    found = [] if plan is None else [*_links(plan, capacities(now.instance))]
    found += _full(now)
    if plan is not None:
        found += _other_loads(plan, now, margin)
        unknown = now.uncovered - plan.left
        if unknown:
            flow, count = min(unknown), len(unknown)
            others = f" and {count - 1:,} more" if count > 1 else ""
            found.append(f"the plan does not lead {flow.topic} of {flow.source} to {flow.broker}{others}")
    return found


def _is_inner(instance: Instance, a: str, b: str) -> bool:
    roles = {node.id: node.is_broker for node in instance.nodes}
    return roles[a] and roles[b]


def _links(plan: Expected, now: Mapping[Ends, float]) -> Iterator[str]:
    for ends in sorted(plan.capacities.keys() | now.keys()):
        name = " - ".join(ends)
        if ends not in now:
            yield f"link {name} is gone"
        elif ends not in plan.capacities:
            yield f"link {name} is new"
        else:
            before, after = plan.capacities[ends], now[ends]
            if before != after and not math.isclose(before, after, rel_tol=_SAME_CAPACITY):
                yield f"link {name} can carry {_rate(after)}, and could {_rate(before)}"


def _full(now: InForce) -> Iterator[str]:
    for link, load in zip(now.instance.links, now.loads, strict=True):
        if load > link.capacity * (1 + _FULL):
            yield f"link {link.a} - {link.b} would carry {_rate(load)} of {_rate(link.capacity)}"


def _other_loads(plan: Expected, now: InForce, margin: float) -> Iterator[str]:
    rooms = capacities(now.instance)
    for ends, load in sorted(loads(now).items()):
        room, before = rooms[ends], plan.loads.get(ends, 0.0)
        if math.isfinite(room) and abs(load - before) > margin * room and load <= room * (1 + _FULL):
            yield f"link {' - '.join(ends)} carries {_rate(load)}, and was planned for {_rate(before)}"


def _rate(value: float) -> str:
    return "whatever comes" if math.isinf(value) else f"{value:,.0f}"
