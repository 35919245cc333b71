"""The question every policy answers: which of the waiting flows goes next, and who dies for want of room.

Theory of operation
-------------------
A policy is engaged only while its subscriber is congested; before and after, the queue is first in, first out.
Entries are collected in flows (:mod:`tieline.sched.waiting`).  Flows stand in rankings (:mod:`tieline.sched.waiting`)
by a key that is the whole of most policies, and once more by age.  There is a pair of rankings for each group of flows
that the in-flight window treats alike: by the level at which they are served, QoS 0 apart from QoS 1 and 2.  Whatever
the window stops, the first of the others is thus found without looking past those that are stopped.

A flow moves whenever its head or its level changes, so every place is right at every moment: a pop costs two places
and a victim one, each O(log flows).

When there is no room the victim comes from the lowest level that holds a QoS 0 message and is not spared, by that
class's own rule (:mod:`tieline.sched.victims`).

Prior art: one queue per priority and a bit mask (zenoh), credits per priority (EMQX).  Neither keeps the order of a
flow whose level varies, and the first has no floor.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from enum import IntEnum
from typing import ClassVar, Final, Generic, TypeVar

from tieline.sched.levels import LEVELS, URGENT, Patience, Rules
from tieline.sched.victims import Victims
from tieline.sched.waiting import Flow, Key, Ranking, Waiting

E = TypeVar("E")


class WindowState(IntEnum):
    """What the in-flight window still takes."""

    CLOSED = 0  # no QoS 1 or 2 message
    URGENT_ONLY = 1  # the last places are kept for urgent ones
    OPEN = 2


#: The groups of each level, QoS 0 and (odd) QoS 1 and 2, that may be served, by window.
GROUPS: Final[tuple[tuple[tuple[int, ...], ...], ...]] = (
    ((0,), (2,), (4,), (6,)),
    ((0,), (2,), (4,), (6, 7)),
    ((0, 1), (2, 3), (4, 5), (6, 7)),
)
#: As many messages as there are.
EVERY: Final = sys.maxsize
_ALL: Final = tuple(tuple(group for groups in levels for group in groups) for levels in GROUPS)


class Policy(ABC, Generic[E]):
    """Entries that wait for one subscriber, and the order in which they leave."""

    name: ClassVar[str]
    #: No class waits for ever, whatever the others send.
    has_floor: ClassVar[bool] = False

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self._flows: dict[Hashable, Flow[E]] = {}
        #: Every flow, by group: in the order of the policy, and in that of the arrival of their heads.
        self._by_key: list[Ranking[Flow[E]]] = [Ranking() for _ in range(2 * LEVELS)]
        self._by_age: list[Ranking[Flow[E]]] = [Ranking() for _ in range(2 * LEVELS)]
        self._stamp = 0
        self._victims: Victims[E] = Victims(self.rules)
        #: Of what waits: messages, and per level entries, bytes and messages.
        self._messages = 0
        self._entries = [0] * LEVELS
        self._bytes = [0] * LEVELS
        self._waiting = [0] * LEVELS
        #: Of an entry that holds several messages, how many may be sent of the one that was popped last.
        self.most = EVERY
        #: Messages that found more predecessors than they may take along, and could not lift their flow.
        self.capped = 0

    def __len__(self) -> int:
        return self._messages

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._messages} waiting in {len(self._flows)} flows>"

    # -- what a policy defines

    @abstractmethod
    def key(self, flow: Flow[E]) -> Key:
        """Where a flow stands among those of its group; the arrival of its head, at the end, makes it unique."""

    @abstractmethod
    def _choose(self, now: float, window: WindowState) -> Flow[E] | None:
        """The flow whose head goes next; it does go."""

    def _unsent(self, waiting: Waiting[E]) -> None:
        """What is left of the entry that was chosen last is put back; a policy that keeps accounts corrects them."""

    def share(self, level: int) -> float:
        """Part of the link that a level gets whatever waits above it; 0 where the policy promises none."""
        return 0.0

    def spares(self, level: int) -> bool:
        """Whether the level gives up nothing as long as a higher one that is not urgent can."""
        return False

    # -- what a queue calls

    def push(self, waiting: Waiting[E], now: float) -> None:
        """Take an entry over."""
        flow = self._flows.get(waiting.flow)
        if flow is None:
            self._open(waiting)
        else:
            self._victims.mark(flow.entries[-1], is_superseded=True)
            level = flow.level
            flow.append(waiting)
            if flow.level != level:
                self._unplace(flow)
                self._place(flow)
            elif waiting.level > level:
                self.capped += 1
        self._came(waiting, is_superseded=False)

    def heed(self, patience: Patience) -> None:
        """The subscriber has asked for something else for its low classes."""
        self.rules = replace(self.rules, patience=patience)

    def pop(self, now: float, window: WindowState = WindowState.OPEN) -> Waiting[E] | None:
        """The entry that goes next; None when nothing may go.

        At most :attr:`most` of its messages go now; the rest is put back.
        """
        flow = self._choose(now, window)
        if flow is None:
            return None
        waiting = flow.head
        self._take(flow, waiting)
        return waiting

    def put_back(self, waiting: Waiting[E]) -> None:
        """Return what the last pop gave, or the rest of it, to the front of its flow: not all of it could be sent."""
        flow = self._flows.get(waiting.flow)
        if flow is None:
            self._open(waiting)
        else:
            self._unplace(flow)
            flow.put_back(waiting)
            self._place(flow)
        self._came(waiting, is_superseded=flow is not None)
        self._unsent(waiting)

    def evict(self) -> Waiting[E] | None:
        """Drop one QoS 0 entry of the lowest level that has one and is not spared; None when there is none.

        Nothing urgent is dropped as long as anything else can be.
        """
        victim: Waiting[E] | None = None
        for level in range(LEVELS):
            candidate = self._victims.first(level)
            if candidate is None:
                continue
            if level < URGENT and not self.spares(level):
                victim = candidate
                break
            if victim is None:
                victim = candidate
        if victim is not None:
            self._take(self._flows[victim.flow], victim)
        return victim

    def evict_assured(self) -> Waiting[E] | None:
        """Drop the oldest QoS 1 or 2 entry of the lowest level that has one: only where an operator lets those go."""
        for level in range(LEVELS):
            flow = first(self._by_age, (2 * level + 1,))
            if flow is not None:
                victim = flow.head
                self._take(flow, victim)
                return victim
        return None

    def keep(self, waiting: Waiting[E]) -> None:
        """Return what is left of a victim to its place in its flow: not all of it had to go."""
        flow = self._flows.get(waiting.flow)
        if flow is None:
            self._open(waiting)
            self._came(waiting, is_superseded=False)
            return
        self._unplace(flow)
        flow.restore(waiting)
        self._place(flow)
        is_last = flow.entries[-1] is waiting
        if is_last:
            self._victims.mark(flow.entries[-2], is_superseded=True)
        self._came(waiting, is_superseded=not is_last)

    def waits(self, level: int) -> bool:
        """Whether an entry of this level waits."""
        return self._entries[level] > 0

    def count(self, level: int) -> int:
        """How many messages of this level wait."""
        return self._waiting[level]

    def has_flow(self, key: Hashable) -> bool:
        """Whether an entry of this flow waits."""
        return key in self._flows

    def entries_of(self, key: Hashable) -> Iterator[Waiting[E]]:
        """What waits of a flow, in its order."""
        flow = self._flows.get(key)
        return iter(() if flow is None else flow.entries)

    def oldest(self, level: int) -> Waiting[E] | None:
        """The longest waiting entry of the flows that are served at this level, for measuring how long it waits."""
        flow = first(self._by_age, GROUPS[WindowState.OPEN][level])
        return None if flow is None else flow.head

    # -- keeping flows, places and counts in step

    def _open(self, waiting: Waiting[E]) -> None:
        flow = self._flows[waiting.flow] = Flow(waiting.flow, waiting, self.rules.inheritance + 1)
        self._place(flow)

    def _place(self, flow: Flow[E]) -> None:
        self._stamp += 1
        flow.stamp = self._stamp
        head = flow.head
        flow.group = group = 2 * flow.level + head.is_assured
        self._by_key[group].place(flow, self.key(flow))
        self._by_age[group].place(flow, (head.order,))

    def _unplace(self, flow: Flow[E]) -> None:
        flow.stamp = 0
        self._by_key[flow.group].void()
        self._by_age[flow.group].void()

    def _came(self, waiting: Waiting[E], *, is_superseded: bool) -> None:
        self._messages += waiting.messages
        self._waiting[waiting.level] += waiting.messages
        self._entries[waiting.level] += 1
        self._bytes[waiting.level] += waiting.size
        if not waiting.is_assured:
            waiting.is_superseded = is_superseded
            self._victims.add(waiting)

    def _take(self, flow: Flow[E], waiting: Waiting[E]) -> None:
        """An entry leaves its flow, and the flow goes where it then belongs."""
        self._messages -= waiting.messages
        self._waiting[waiting.level] -= waiting.messages
        self._entries[waiting.level] -= 1
        self._bytes[waiting.level] -= waiting.size
        if not waiting.is_assured:
            self._victims.remove(waiting)
        was_head, was_last, level = flow.head is waiting, flow.entries[-1] is waiting, flow.level
        flow.remove(waiting)
        if not flow.entries:
            self._unplace(flow)
            del self._flows[flow.key]
            return
        if was_head or flow.level != level:
            self._unplace(flow)
            self._place(flow)
        if was_last:
            self._victims.mark(flow.entries[-1], is_superseded=False)


class Ranked(Policy[E]):
    """A policy that is one key: the flow with the smallest goes first."""

    def _choose(self, now: float, window: WindowState) -> Flow[E] | None:
        return first(self._by_key, _ALL[window])


def first(rankings: list[Ranking[Flow[E]]], groups: Iterable[int]) -> Flow[E] | None:
    """The flow with the smallest key in some groups."""
    best: tuple[Key, int, Flow[E]] | None = None
    for group in groups:
        ranking = rankings[group]
        if ranking.valid:
            top = ranking.top()
            if top is not None and (best is None or top[0] < best[0]):
                best = top
    return None if best is None else best[2]
