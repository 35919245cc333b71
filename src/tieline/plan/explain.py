"""Why a request is unmet: the smallest set of full links that lies between its source and its subscriber.

Theory of operation
-------------------
A link is open to a topic that already uses it, or for which it has room; otherwise it is full.  Cut the network
between source and subscriber with as few full links and no open one: by the theorem of Ford and Fulkerson there are
as many of them as ways that meet in no full link.  No plan serves the request unless one of these links gets room.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tieline.plan.arrays import TOLERANCE, Arrays, Flags
from tieline.plan.arrays import arrays as as_arrays
from tieline.plan.flaws import Flawed
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan
from tieline.plan.routes import Trees, load, trees

#: served: it is not unmet.  unreachable: no way at any capacity.  saturated: full links cut it off.  open: there is a
#: way with room.
Reason = Literal["served", "unreachable", "saturated", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CutLink:
    """A full link between source and subscriber."""

    a: str
    b: str
    capacity: float
    load: float
    #: The topics that fill it.
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a request is as it is."""

    reason: Reason
    links: tuple[CutLink, ...]
    sentence: str


def explain(instance: Instance, plan: Plan, *, topic: str, subscriber: str, source: str | None = None) -> Explanation:
    """Why a plan leaves a request unmet; the plan must be proven."""
    arrays = as_arrays(instance)
    number, request = _request(arrays, topic, subscriber, source)
    planned = trees(arrays, plan.routes)
    who = f'"{subscriber}" and topic "{topic}"'
    if planned.served[request]:
        hops = len(planned.path(arrays, request))
        return Explanation(reason="served", links=(), sentence=f"The request of {who} is served, over {hops} links.")
    used = load(arrays, planned)
    usable = _usable(arrays, number)
    is_open = _open(arrays, planned, number)
    cut = _smallest_cut(arrays, usable, is_open, int(arrays.source[number]), int(arrays.request_node[request]))
    if cut is None:
        return Explanation(
            reason="open",
            links=(),
            sentence=f"There is a way with room between {who}: serving it costs more than leaving it unmet, or a limit "
            "on connections, duplications or latency forbids it, or the search was ended too early.",
        )
    if not cut:
        return Explanation(
            reason="unreachable",
            links=(),
            sentence=f"No way over brokers leads from the source to {who}, whatever the capacities.",
        )
    links = tuple(_cut_link(arrays, planned, link, float(used[link])) for link in cut)
    names = ", ".join(f"{link.a} - {link.b} ({link.load:g} of {link.capacity:g})" for link in links)
    rate = float(arrays.rate[number])
    count = "one full link" if len(links) == 1 else f"{len(links)} full links"
    sentence = f"Between {who} lie {count} without room for its rate of {rate:g}: {names}."
    return Explanation(reason="saturated", links=links, sentence=sentence)


def _request(arrays: Arrays, topic: str, subscriber: str, source: str | None) -> tuple[int, int]:
    """The numbers of a topic and of one of its requests."""
    known = [
        number
        for number, each in enumerate(arrays.instance.topics)
        if each.id == topic and source in (None, each.source)
    ]
    if not known:
        raise Flawed(f'there is no topic "{topic}"' + (f' of "{source}"' if source else ""))
    wanting = [number for number in known if subscriber in arrays.instance.topics[number].subscribers]
    if not wanting:
        raise Flawed(f'topic "{topic}" has no subscriber "{subscriber}"')
    if len(wanting) > 1:
        sources = ", ".join(arrays.instance.topics[number].source for number in wanting)
        raise Flawed(f'"{subscriber}" wants topic "{topic}" of several sources ({sources}): name one')
    number = wanting[0]
    place = arrays.instance.topics[number].subscribers.index(subscriber)
    return number, int(arrays.request_start[number]) + place


def _usable(arrays: Arrays, topic: int) -> Flags:
    """Arcs that the topic might use if capacity did not matter."""
    takes = arrays.is_broker.copy()
    takes[arrays.subscribers(topic)] = True
    takes[arrays.source[topic]] = False
    emits = arrays.is_broker.copy()
    emits[arrays.source[topic]] = True
    return emits[arrays.tail] & takes[arrays.head]


def _open(arrays: Arrays, planned: Trees, topic: int) -> Flags:
    """Arcs that the topic uses or has room on."""
    room = arrays.capacity * (1 + TOLERANCE) - load(arrays, planned)
    is_open = np.repeat(room >= arrays.rate[topic], 2)
    is_open[list(planned.entering[topic].values())] = True
    return is_open


def _smallest_cut(arrays: Arrays, usable: Flags, is_open: Flags, source: int, target: int) -> list[int] | None:
    """The fewest full links that separate two nodes: none if nothing joins them, None if open links do."""
    flow: dict[int, int] = {}
    while True:
        arrival = _reach(arrays, usable, is_open, flow, source, target)
        if target not in arrival:
            break
        steps = []
        node = target
        while node != source:
            steps.append(arrival[node])
            node = _before(arrays, *arrival[node])
        if all(is_open[arc] and not is_back for arc, is_back in steps):
            return None
        for arc, is_back in steps:
            flow[arc] = flow.get(arc, 0) + (-1 if is_back else 1)
    crossing = {
        arc >> 1
        for arc in np.flatnonzero(usable).tolist()
        if int(arrays.tail[arc]) in arrival and int(arrays.head[arc]) not in arrival
    }
    return sorted(crossing)


def _reach(
    arrays: Arrays, usable: Flags, is_open: Flags, flow: dict[int, int], source: int, target: int
) -> dict[int, tuple[int, bool]]:
    """How each node is reached along arcs with capacity left: an arc, and whether it is passed backwards."""
    arrival: dict[int, tuple[int, bool]] = {source: (-1, False)}
    queue = deque([source])
    while queue and target not in arrival:
        node = queue.popleft()
        for arc in arrays.out_arc[arrays.out_start[node] : arrays.out_start[node + 1]].tolist():
            there = int(arrays.head[arc])
            if usable[arc] and there not in arrival and (is_open[arc] or not flow.get(arc)):
                arrival[there] = (arc, False)
                queue.append(there)
        for arc in arrays.in_arc[arrays.in_start[node] : arrays.in_start[node + 1]].tolist():
            there = int(arrays.tail[arc])
            if flow.get(arc, 0) > 0 and there not in arrival:
                arrival[there] = (arc, True)
                queue.append(there)
    return arrival


def _before(arrays: Arrays, arc: int, is_back: bool) -> int:
    return int(arrays.head[arc] if is_back else arrays.tail[arc])


def _cut_link(arrays: Arrays, planned: Trees, link: int, used: float) -> CutLink:
    named = arrays.instance.links[link]
    topics = tuple(
        topic.id
        for topic, tree in zip(arrays.instance.topics, planned.entering, strict=True)
        if any(tree.get(int(arrays.head[arc])) == arc for arc in (2 * link, 2 * link + 1))
    )
    return CutLink(a=named.a, b=named.b, capacity=named.capacity, load=used, topics=topics)
