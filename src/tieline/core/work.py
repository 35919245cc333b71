"""How much one client may cause before the others get their turn.

Theory of operation
-------------------
Work is counted in units of about a hundred nanoseconds: packets, nodes of a tree visited, receivers, filters, rules,
characters of a condition.  Whoever does something that grows with what clients have sent says so here
(:meth:`Work.did`).  Whoever goes through the packets of one connection, or through the filters of one packet, begins a
share (:meth:`Work.enough`) and stops when it is spent (:meth:`Work.is_spent`); the rest is put off
(:meth:`Work.later`).  What was put off goes on in the order in which it came, as much in one turn as a turn allows, so
that those who sent something small in the meantime wait for one turn and no longer.

A turn has a fixed amount of work for all who are busy in it.  One who is busy alone gets all of it, eight an eighth
each: how long the others wait does not grow with the number of those who cause work.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tieline.core.timers import Action, Timers

#: Units of one turn, for all connections together.
WORK_PER_TURN = 40_000
#: Bytes of filters and properties that take milliseconds to decode: a packet with more of them has a turn of its own.
SLOW_BYTES: Final = 8_192
#: What each of very many still gets, so that parsing goes on at all.
LEAST_SHARE = 2_000


class Work:
    """All work of one broker, ever growing, and what was put off because there was too much of it."""

    __slots__ = ("_is_due", "_limit", "_moment", "_put_off", "_timers", "_until", "busy", "done", "is_going_on")

    def __init__(self, timers: Timers | None = None) -> None:
        self._timers = Timers() if timers is None else timers
        self.done = 0
        #: How many connections the shell has found ready in this turn.
        self.busy = 1
        #: What :attr:`done` may grow to in the share that is being spent.
        self._limit = 0
        #: When something was last due, and what :attr:`done` may grow to by all that is due at that moment.
        self._moment = 0.0
        self._until = 0
        self._put_off: deque[Action] = deque()
        #: The next turn goes on with what was put off.
        self._is_due = False
        #: What was put off is being done.
        self.is_going_on = False

    def did(self, units: int) -> None:
        """Add what was done; whoever goes through packets sees when it is enough."""
        self.done += units

    def enough(self) -> int:
        """Begin a share: what :attr:`done` may grow to before the others have their turn."""
        among = self.busy + len(self._put_off)
        share = WORK_PER_TURN if among <= 1 else max(min(LEAST_SHARE, WORK_PER_TURN), WORK_PER_TURN // among)
        self._limit = self.done + share
        return self._limit

    def is_spent(self) -> bool:
        """Whether the share that was begun last is spent."""
        return self.done > self._limit

    @property
    def is_behind(self) -> bool:
        """Whether something was put off."""
        return bool(self._put_off)

    def due(self, action: Action, now: float) -> None:
        """Do something whose time has come; later, if much was due at the same moment."""
        if now != self._moment:
            self._moment, self._until = now, self.done + WORK_PER_TURN
        if self.done > self._until:
            self.later(action)
        else:
            action(now)

    def later(self, action: Action) -> None:
        """Put something off until the others have had their turn."""
        self._put_off.append(action)
        self._come_back()

    def _come_back(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._timers.soon(self._go_on)

    def _go_on(self, now: float) -> None:
        """Do what was put off, each a share, until a turn's work is done; what is put off again comes last."""
        waiting = self._put_off
        self._is_due = False
        self.is_going_on = True
        enough = self.done + WORK_PER_TURN
        try:
            for _ in range(len(waiting)):
                waiting.popleft()(now)
                if self.done > enough:
                    break
        finally:
            # also after a fault of our own: the others go on
            self.is_going_on = False
            if waiting:
                self._come_back()
