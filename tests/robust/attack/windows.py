"""Every ten seconds of a run are judged, wherever they begin: what honest clients waited, also between attacks.

Theory of operation
-------------------
A round belongs to the time for which it was planned.  Rounds come back in another order than they were planned in, so
they wait here until everything planned before them has come back; then a window slides over them, round by round.  A
window ends with each round, holds those of the ten seconds before it, and is whole once the run is that old.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from tests.robust.attack.honest import Rounds

#: How long a window is, and what an honest client may wait in each, in seconds.
WINDOW_S: Final = 10.0
P99_S: Final = 0.050
WORST_S: Final = 0.250


@dataclass(slots=True)
class Breach:
    """One stretch of the run in which a limit was broken."""

    #: ``p99`` or ``worst``.
    limit: str
    #: When the first and the last round were planned that waited too long.
    begin: float
    end: float
    #: The largest figure in that stretch, in seconds.
    found_s: float

    def line(self, start: float, phases: str) -> str:
        """For people: how far into the run, and which attacks there were."""
        bound = P99_S if self.limit == "p99" else WORST_S
        when = f"{self.begin - start:.1f} s" if self.end - self.begin < 1 else f"{self.begin - start:.1f} s and later"
        return f"{self.limit} {self.found_s * 1e3:.0f} ms is above {bound * 1e3:.0f} ms at {when}: {phases}"


class Windows:
    """Slides over all rounds of a run."""

    def __init__(self) -> None:
        #: Rounds that have come back and may have to wait for earlier ones.
        self._early: list[tuple[float, float]] = []
        #: The rounds of the window, by the time for which they were planned; and what they took, in order of size.
        self._window: deque[tuple[float, float]] = deque()
        self._sorted: list[float] = []
        self._first: float | None = None
        #: How many windows were judged.
        self.judged = 0
        #: The slowest hundredth and the slowest round of all windows.
        self.p99_s = 0.0
        self.worst_s = 0.0
        #: The slowest hundredth of the windows since the last :meth:`take_p99`; None if none was whole.
        self._recent: float | None = None
        self.breaches: list[Breach] = []

    def add(self, rounds: Rounds) -> None:
        """Judge what can be judged with these."""
        for each in rounds.times:
            heappush(self._early, each)
        while self._early and self._early[0][0] < rounds.settled:
            self._slide(*heappop(self._early))

    def finish(self) -> None:
        """Nothing comes any more: what is left is judged as it is."""
        while self._early:
            self._slide(*heappop(self._early))

    def take_p99(self) -> float | None:
        """The slowest hundredth of the worst whole window since the last call."""
        recent, self._recent = self._recent, None
        return recent

    def _slide(self, planned: float, took: float) -> None:
        if self._first is None:
            self._first = planned
        self._window.append((planned, took))
        insort(self._sorted, took)
        while self._window[0][0] <= planned - WINDOW_S:
            del self._sorted[bisect_left(self._sorted, self._window.popleft()[1])]
        self.worst_s = max(self.worst_s, took)
        if took > WORST_S:
            self._note("worst", planned, planned, took)
        if planned - self._first < WINDOW_S * 0.99:
            return
        self.judged += 1
        p99_s = quantile(self._sorted, 0.99)
        self.p99_s = max(self.p99_s, p99_s)
        self._recent = p99_s if self._recent is None else max(self._recent, p99_s)
        if p99_s > P99_S:
            begin = next(each for each, slow in self._window if slow > P99_S)
            end = next(each for each, slow in reversed(self._window) if slow > P99_S)
            self._note("p99", begin, end, p99_s)

    def _note(self, limit: str, begin: float, end: float, found_s: float) -> None:
        """A limit is broken: still, if what broke it before is less than a second away."""
        last = next((each for each in reversed(self.breaches) if each.limit == limit), None)
        if last is None or begin > last.end + 1:
            self.breaches.append(Breach(limit, begin, end, found_s))
        else:
            last.end = max(last.end, end)
            last.found_s = max(last.found_s, found_s)


def quantile(ordered: list[float], part: float) -> float:
    """That of numbers in order; 0 if there are none."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0
