"""One event loop for clients that act by a timetable: whatever is due is done, then the sockets are served."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from heapq import heappop, heappush
from types import TracebackType
from typing import Self

from tieline.bench.load.ends import Client

#: Does something at a time and says when it wants to be called again, if at all.
Action = Callable[[float], float | None]
clock = time.perf_counter
#: However little happens, it is asked this often whether everything is finished.
_LOOK_UP_S = 0.1


class Stage:
    """Clients and an agenda."""

    def __init__(self) -> None:
        self.poller = select.epoll()
        self._clients: dict[int, tuple[Client, Callable[[], None]]] = {}
        self._agenda: list[tuple[float, int, Action]] = []
        self._serial = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.poller.close()

    def attend(self, client: Client, receive: Callable[[], None]) -> None:
        """Call ``receive`` whenever something has arrived for the client."""
        self._clients[client.fd] = (client, receive)

    def at(self, when: float, action: Action) -> None:
        """Put an action on the agenda."""
        self._serial += 1
        heappush(self._agenda, (when, self._serial, action))

    def run(self, until: float, finished: Callable[[], bool] = lambda: False) -> None:
        """Act until the clock says so, or until everything is finished."""
        agenda = self._agenda
        while (now := clock()) < until and not finished():
            while agenda and agenda[0][0] <= now:
                _, _, action = heappop(agenda)
                again = action(now)
                if again is not None:
                    self.at(again, action)
                now = clock()
            due = min(until, agenda[0][0]) if agenda else until
            for fd, event in self.poller.poll(min(max(0.0, due - now), _LOOK_UP_S)):
                client, receive = self._clients[fd]
                if event & select.EPOLLOUT:
                    client.writable()
                if event & ~select.EPOLLOUT:
                    receive()
