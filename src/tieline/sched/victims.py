"""Who dies for want of room: the QoS 0 entries of each level, in the order in which its rule gives them up.

``oldest`` gives up what waits longest, ``newest`` what came last.  ``coalesce`` gives up the oldest entry that a newer
one of its flow makes superfluous, and only when there is none the oldest of all: of a topic that reports a state, the
last word is what a slow subscriber wants.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from tieline.sched.levels import LEVELS, Rules
from tieline.sched.waiting import Key, Ranking, Waiting

E = TypeVar("E")


class Victims(Generic[E]):
    """The entries that may be dropped."""

    def __init__(self, rules: Rules) -> None:
        self._rules = [traffic.full for traffic in rules.classes]
        self._rankings: list[Ranking[Waiting[E]]] = [Ranking() for _ in range(LEVELS)]
        self._stamp = 0

    def add(self, waiting: Waiting[E]) -> None:
        """A QoS 0 entry has come."""
        self._stamp += 1
        waiting.stamp = self._stamp
        self._rankings[waiting.level].place(waiting, self._key(waiting))

    def remove(self, waiting: Waiting[E]) -> None:
        """An entry that was added has left, for whatever reason."""
        waiting.stamp = 0
        self._rankings[waiting.level].void()

    def mark(self, waiting: Waiting[E], *, is_superseded: bool) -> None:
        """A newer entry of its flow waits behind this one, or does so no longer."""
        if waiting.is_assured or self._rules[waiting.level] != "coalesce" or waiting.is_superseded == is_superseded:
            return
        self.remove(waiting)
        waiting.is_superseded = is_superseded
        self.add(waiting)

    def first(self, level: int) -> Waiting[E] | None:
        """The entry that this level gives up first."""
        place = self._rankings[level].top()
        return None if place is None else place[2]

    def _key(self, waiting: Waiting[E]) -> Key:
        rule = self._rules[waiting.level]
        if rule == "newest":
            return (-waiting.order,)
        if rule == "coalesce":
            return (not waiting.is_superseded, waiting.order)
        return (waiting.order,)
