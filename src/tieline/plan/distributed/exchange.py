"""The network between brokers: messages take their time, may be lost and sent again, and are counted.

Every link delivers in order, as a connection does.  A lost message is sent again after a while, so that loss costs
time and messages but never changes what is said.  All chance comes from one seed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping

from tieline.overlay.agreeing.planning_node import PlanningNode, Sent
from tieline.overlay.agreeing.protocol import Message, size
from tieline.plan.run import Stop

#: Virtual seconds between two wakings of a node, before chance.
_PERIOD = 4.0
#: Virtual seconds after which a lost message is sent again.
_AGAIN = 5.0
#: Events between two questions whether to stop.
_ASK = 256


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
