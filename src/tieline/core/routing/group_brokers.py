"""A group that has members at other brokers too: which broker is to give a message to one of them.

Only the broker that accepted a message picks a broker, and names the group to it; that one picks a member among its own
clients.  Of those who can have the message now, each gets its share: by turns of stride scheduling, in which whoever
was picked waits for as long as the others need to catch up with its weight.  All members here are one candidate, whose
turns among themselves are the group's own affair.

Whoever was not asked for a while, because a condition or a right kept it out, has saved up nothing: it begins where the
others are.
"""

from __future__ import annotations

from collections.abc import Iterable

from tieline.core.message import Item
from tieline.core.receiver import Grant, Receiver


class GroupBrokers:
    """The other brokers that have members of one group, and how its messages are spread."""

    __slots__ = ("_clock", "_due", "grants", "is_balanced", "weights")

    def __init__(self) -> None:
        #: The brokers with members that take every message.
        self.grants: dict[Receiver, Grant] = {}
        #: By broker, how many members it has, with conditions or without.
        self.weights: dict[Receiver, int] = {}
        #: Members here are not preferred: each member of all brokers gets about as many messages as any other.
        self.is_balanced = False
        #: When each candidate may have the next message, in turns; members here are None.
        self._due: dict[Receiver | None, float] = {}
        self._clock = 0.0

    def __len__(self) -> int:
        """How many members there are at other brokers."""
        return sum(self.weights.values())

    def weigh(self, broker: Receiver, members: int) -> None:
        """A broker has so many members from now on."""
        if members:
            self.weights[broker] = members
        else:
            self.weights.pop(broker, None)
            self._due.pop(broker, None)

    def next(self, candidates: Iterable[Receiver], here: int = 0) -> Receiver | None:
        """Whose turn it is; None stands for the members here, of whom ``here`` take part, and for nobody."""
        best: Receiver | None = None
        start, is_found = 0.0, here > 0
        if is_found:
            start = self._start(None)
        for broker in candidates:
            due = self._start(broker)
            if not is_found or due < start:
                best, start, is_found = broker, due, True
        return best

    def note(self, chosen: Receiver | None, here: int = 0) -> None:
        """Somebody was chosen, or the members here, of whom so many took part."""
        weight = here if chosen is None else self.weights.get(chosen, 1)
        self._clock = self._start(chosen)
        self._due[chosen] = self._clock + 1 / max(1, weight)

    def _start(self, candidate: Receiver | None) -> float:
        due = self._due.get(candidate)
        return self._clock if due is None or due < self._clock else due


def fitting(grants: dict[Receiver, Grant], item: Item) -> tuple[list[Receiver], list[Receiver]]:
    """The brokers in reach that can be given a message, and those out of reach that it may wait for."""
    near: list[Receiver] = []
    away: list[Receiver] = []
    for broker in grants:
        if broker.has_room(item):
            if broker.is_present:
                near.append(broker)
            elif item.qos:
                away.append(broker)
    return near, away


def overfull(grants: dict[Receiver, Grant], item: Item) -> list[Receiver]:
    """The brokers that could have a message if less were owed to them."""
    return [broker for broker in grants if broker.lacks_room(item)]
