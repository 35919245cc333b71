"""Planning without a centre: brokers that know their own links and what their neighbours tell them, in virtual time.

Messages between brokers take their time, may be lost and sent again, and are counted.  Every link delivers in order, as
a connection does.  A lost message is sent again after a while, so that loss costs time and messages but never changes
what is said.  All chance comes from one seed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping

import numpy as np

from tieline.overlay.agreeing.planning_node import PlanningNode, Sent
from tieline.overlay.agreeing.protocol import Agreement, Message, Port, TopicFacts, size
from tieline.plan.arrays import Arrays
from tieline.plan.certify import certified, shortest_paths_bound
from tieline.plan.greedy import repaired
from tieline.plan.plan import Plan
from tieline.plan.routes import Trees, no_trees
from tieline.plan.run import Run, Stop

#: Virtual seconds between two wakings of a node, before chance.
_PERIOD = 4.0
#: Virtual seconds after which a lost message is sent again.
_AGAIN = 5.0
#: Events between two questions whether to stop.
_ASK = 256
#: Virtual seconds in which links are soft, in which they are hard, and of silence after which all is said.
_SOFT = 600.0
_HARD = 600.0
_QUIET = 40.0


class Exchange:
    """Brokers and the messages under way."""

    def __init__(self, brokers: Mapping[int, PlanningNode], *, seed: int, loss: float = 0.0) -> None:
        if not 0.0 <= loss < 1.0:
            raise ValueError(f"loss is {loss}; it must be at least 0 and below 1")
        self.brokers = brokers
        self.loss = loss
        self.now = 0.0
        self.messages = 0
        self.bytes = 0
        self.lost = 0
        self._random = random.Random(seed)  # noqa: S311 - a simulation, which must be repeatable
        #: (time, number, receiver, sender, message); without a message the receiver wakes.
        self._agenda: list[tuple[float, int, int, int, Message | None]] = []
        self._number = 0
        self._under_way = 0
        #: When the last message of a direction arrives: later ones come later.
        self._last: dict[tuple[int, int], float] = {}
        for node in brokers:
            self._schedule(_PERIOD * self._random.random(), node, node, None)

    def run(self, until: float, *, quiet_for: float, stop: Stop | None = None) -> bool:
        """Let time pass until nothing has been said for a while, or it is late; False if ``stop`` ended it before."""
        last_said = 0.0
        events = 0
        while self._agenda and self.now < until:
            events += 1
            if stop is not None and events % _ASK == 0 and stop():
                return False
            self.now, _, receiver, sender, message = heapq.heappop(self._agenda)
            broker = self.brokers[receiver]
            if message is None:
                self._send(receiver, broker.wake(self.now))
                self._schedule(self.now + _PERIOD * (0.5 + self._random.random()), receiver, receiver, None)
            else:
                self._under_way -= 1
                last_said = self.now
                self._send(receiver, broker.receive(sender, message, self.now))
            if self.now - last_said > quiet_for and not self._under_way and not self._has_plans():
                break
        return True

    def _has_plans(self) -> bool:
        """Whether some node waits for a moment to try again: the simulation ends when none does."""
        return any(
            not request.is_served and request.at < float("inf")
            for broker in self.brokers.values()
            for request in broker.requests.values()
        )

    def _send(self, sender: int, sent: list[Sent]) -> None:
        for receiver, message in sent:
            if receiver == sender:
                self._send(sender, self.brokers[sender].receive(sender, message, self.now))
                continue
            length = size(message)
            arrival = self.now + 0.5 + self._random.random()
            self.messages += 1
            self.bytes += length
            while self._random.random() < self.loss:
                self.lost += 1
                self.messages += 1
                self.bytes += length
                arrival += _AGAIN
            arrival = max(arrival, self._last.get((sender, receiver), 0.0))
            self._last[sender, receiver] = arrival
            self._under_way += 1
            self._schedule(arrival, receiver, sender, message)

    def _schedule(self, at: float, receiver: int, sender: int, message: Message | None) -> None:
        self._number += 1
        heapq.heappush(self._agenda, (at, self._number, receiver, sender, message))


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
