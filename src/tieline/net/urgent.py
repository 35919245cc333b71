"""Urgent connections: looked at after every chunk of anybody else.

One pass over fifty saturated publishers at 64 kB each is forty milliseconds of work.  Connections that are urgent
(their node level is 3, or an urgent message came from them not long ago) therefore stand in a set of their own, and
while there are any, every other connection is read in small pieces, after each of which that set is looked at.  The
work between two looks is bounded: parsing and queueing one piece, and the writes that follow from it.
"""

from __future__ import annotations

import select

from tieline.net.link import SocketLink
from tieline.net.turns import Turns, Watched
from tieline.sched.levels import URGENT

#: Bytes read from one connection in one go, without and with urgent connections about.
BUDGET = 262_144
SMALL_BUDGET = 16_384
#: How long a connection counts as urgent after an urgent message.
PERIOD_S = 1.0
#: Urgent connections handled in one look.
EVENTS_PER_LOOK = 64


class Urgent:
    """The set of urgent connections; itself one descriptor in the loop's set, so that it wakes the loop."""

    def __init__(self, loop: Turns) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self.fd = self._epoll.fileno()
        self.links: dict[int, SocketLink] = {}
        self._is_watched = False
        #: A timer will look for those that are not urgent any more.
        self._is_reviewed = False

    def handle(self, events: int, now: float, is_alone: bool) -> None:
        """Some of them are ready."""
        self.look(now)

    def look(self, now: float) -> None:
        """Handle those that are ready, and write what they caused."""
        ready = self._epoll.poll(0, EVENTS_PER_LOOK)
        if not ready:
            return
        for fd, events in ready:
            link = self.links.get(fd)
            if link is not None:
                self._loop.serve(link, events, now, False)
        self._loop.flush(now)

    def consider(self, watched: Watched, now: float) -> None:
        """Let a connection in that has become urgent, and out again when it no longer is."""
        if not isinstance(watched, SocketLink) or watched.fd < 0:
            return
        link, conn = watched, watched.conn
        is_urgent = conn.level == URGENT or now - conn.urgent_at < PERIOD_S
        if is_urgent == link.is_urgent:
            return
        link.is_urgent = is_urgent
        if is_urgent:
            self._loop.move(link.fd, link.events, self._epoll, is_back=False)
            self.links[link.fd] = link
            if not self._is_watched:
                self._is_watched = True
                self._loop.watch(self)
            if not self._is_reviewed:
                self._is_reviewed = True
                self._loop.broker.timers.at(now + PERIOD_S, self._review)
        else:
            self._loop.move(link.fd, link.events, self._epoll, is_back=True)
            del self.links[link.fd]
        self._settle()

    def _review(self, now: float) -> None:
        """Those that have been silent for a while are not urgent any more."""
        for link in list(self.links.values()):
            self.consider(link, now)
        self._is_reviewed = bool(self.links)
        if self.links:
            self._loop.broker.timers.at(now + PERIOD_S, self._review)

    def remove(self, fd: int) -> None:
        """A link is closed."""
        del self.links[fd]
        self._epoll.unregister(fd)
        self._settle()

    def modify(self, fd: int, events: int) -> None:
        """As the loop's own."""
        self._epoll.modify(fd, events)

    def close(self) -> None:
        self._epoll.close()

    def _settle(self) -> None:
        if not self.links and self._is_watched:
            self._is_watched = False
            self._loop.forget(self)
        self._loop.read_budget = SMALL_BUDGET if self.links else BUDGET
