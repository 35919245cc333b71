"""How many requests are answered in a second: those that come faster wait for their turn.

Both threads of the process share an interpreter, so whatever is answered here is time that the broker does not have.

Whoever hangs up while waiting loses its place in the line.  So there are never more in it than there are connections,
which are bounded: with places that outlive who took them, somebody who asks and hangs up, again and again, would be
served long after leaving, and everybody else after that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import MutableMapping
from time import monotonic
from typing import Any, Final  # Any: a scope of ASGI holds whatever servers and applications put there

#: Where a request that waits has its place, for whoever sees that its connection is over.
_PLACE: Final = "tieline.place"

Scope = MutableMapping[str, Any]


class Pace:
    """So many turns a second, and so many at once after a pause."""

    def __init__(self, per_s: float, *, burst: float) -> None:
        self._step_s = 1 / per_s
        self._slack_s = burst / per_s
        #: When the next turn would be if nobody had paused.
        self._next = 0.0
        #: Those that wait; each hears whether it is its turn.
        self._line: deque[asyncio.Future[bool]] = deque()
        self._is_called = False

    def __len__(self) -> int:
        """How many requests wait for their turn."""
        return len(self._line)

    async def turn(self, scope: Scope) -> bool:
        """Wait until it is the turn of a request; False if nobody waits for its answer any more."""
        if not self._line and self._take(monotonic()):
            return True
        loop = asyncio.get_running_loop()
        place: asyncio.Future[bool] = loop.create_future()
        scope[_PLACE] = place
        self._line.append(place)
        self._call_later()
        is_its_turn = await place
        if not is_its_turn:
            self._line.remove(place)
        return is_its_turn

    def _take(self, now: float) -> bool:
        """Take the next turn, if it is now."""
        begins = max(now - self._slack_s, self._next) + self._step_s
        if begins > now:
            return False
        self._next = begins
        return True

    def _call_later(self) -> None:
        if self._line and not self._is_called:
            self._is_called = True
            wait_s = max(0.0, self._next + self._step_s - monotonic())
            asyncio.get_running_loop().call_later(wait_s, self._call)

    def _call(self) -> None:
        """Whoever is first has its turn."""
        self._is_called = False
        first = next((place for place in self._line if not place.done()), None)
        if first is not None and self._take(monotonic()):
            self._line.remove(first)
            first.set_result(True)
        self._call_later()


def hang_up(scope: Scope | None) -> None:
    """The connection of a request is over: if it waits for its turn, it does so no longer."""
    place: asyncio.Future[bool] | None = None if scope is None else scope.get(_PLACE)
    if place is not None and not place.done():
        place.set_result(False)
