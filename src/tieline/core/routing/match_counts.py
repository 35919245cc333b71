"""How many messages each condition was asked about, and how many it wanted: counted only while somebody looks.

No message pays for being counted otherwise.  While it lasts, a message costs one addition for each table that was asked
and one for each condition it has met, which is a small part of what it costs to give it to those who asked.  The
memory is bounded: beyond the first fifty thousand conditions that want something, messages are counted together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tieline.core.routing.route import ConditionalSubscription
from tieline.match.conditions import ConditionTable

#: Conditions that are counted by themselves.
MOST: Final = 50_000

Table = ConditionTable[ConditionalSubscription]


class Counted(NamedTuple):
    """What was counted in some seconds."""

    seconds: float
    looked: Counter[Table]
    wanted: Counter[ConditionalSubscription]
    #: Messages that were wanted by conditions for which there was no room.
    unnamed: int

    def looked_per_s(self, tables: Iterable[Table]) -> float:
        """How many messages a condition was asked about that is in these tables."""
        return sum(self.looked[table] for table in tables) / self.seconds

    def wanted_per_s(self, conditional: ConditionalSubscription) -> float:
        """How many of them it wanted."""
        return self.wanted[conditional] / self.seconds


class MatchCounts:
    """Counts until somebody takes what was counted, and goes on from nothing."""

    __slots__ = ("_began", "_looked", "_unnamed", "_wanted")

    def __init__(self, now: float) -> None:
        self._begin(now)

    def _begin(self, now: float) -> None:
        self._began = now
        self._looked: Counter[Table] = Counter()
        self._wanted: Counter[ConditionalSubscription] = Counter()
        self._unnamed = 0

    def add(self, tables: Iterable[Table], met: Sequence[Sequence[ConditionalSubscription]]) -> None:
        """Some messages were looked up in these tables; for each of them, whose conditions it has met."""
        for table in tables:
            self._looked[table] += len(met)
        for some in met:
            if some and len(self._wanted) < MOST:
                self._wanted.update(some)
            else:
                self._unnamed += len(some)

    def take(self, now: float) -> Counted:
        """What was counted since this was last called."""
        found = Counted(max(now - self._began, 1e-3), self._looked, self._wanted, self._unnamed)
        self._begin(now)
        return found
