"""What is due when: one heap of deadlines for the whole broker, and what is to be done as soon as possible.

A cancelled timer keeps its place in the heap but lets go of what it would have called, so that a closed connection is
freed at once; when most of the heap is dead it is rebuilt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush

Action = Callable[[float], None]


class Timer:
    """One deadline, and what to do then; kept by whoever may want to cancel it."""

    __slots__ = ("action", "order", "when")

    def __init__(self, when: float, order: int, action: Action) -> None:
        self.when = when
        self.order = order
        #: None once the timer has fired or was cancelled.
        self.action: Action | None = action

    def __lt__(self, other: Timer) -> bool:
        return (self.when, self.order) < (other.when, other.order)

    def __repr__(self) -> str:
        return f"<Timer at {self.when:.3f}{'' if self.action else ' (done)'}>"


class Timers:
    """All deadlines; equal ones fire in the order in which they were set."""

    __slots__ = ("_dead", "_heap", "_order", "_soon", "is_changed")

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        #: What is done in the next turn, in this order.
        self._soon: deque[Action] = deque()
        self._order = 0
        #: The number of cancelled timers still in the heap.
        self._dead = 0
        #: A timer was set since the owner last looked and cleared this.
        self.is_changed = False

    def __len__(self) -> int:
        return len(self._heap) - self._dead + len(self._soon)

    def soon(self, action: Action) -> None:
        """Call ``action(now)`` in the next turn: not from inside whatever calls this."""
        self._soon.append(action)
        self.is_changed = True

    def at(self, when: float, action: Action) -> Timer:
        """Call ``action(now)`` once the time has come."""
        self._order += 1
        timer = Timer(when, self._order, action)
        heappush(self._heap, timer)
        self.is_changed = True
        return timer

    def cancel(self, timer: Timer | None) -> None:
        """Forget a timer; one that is done or None is fine."""
        if timer is None or timer.action is None:
            return
        timer.action = None
        self._dead += 1
        if self._dead > 1024 and self._dead * 2 > len(self._heap):
            self._heap = [timer for timer in self._heap if timer.action is not None]
            heapify(self._heap)
            self._dead = 0

    def next(self) -> float | None:
        """When the earliest timer is due; 0, which is always over, while something is to be done soon."""
        if self._soon:
            return 0.0
        return self._next_deadline()

    def _next_deadline(self) -> float | None:
        heap = self._heap
        while heap and heap[0].action is None:
            heappop(heap)
            self._dead -= 1
        return heap[0].when if heap else None

    def fire(self, now: float) -> None:
        """Call everything that is due; what an action sets for now or earlier waits for the next call."""
        newest = self._order
        for _ in range(len(self._soon)):
            self._soon.popleft()(now)
        later: list[Timer] = []
        try:
            while (when := self._next_deadline()) is not None and when <= now:
                timer = heappop(self._heap)
                if timer.order > newest:
                    later.append(timer)
                    continue
                action, timer.action = timer.action, None
                if action is not None:
                    action(now)
        finally:
            for timer in later:
                heappush(self._heap, timer)
