"""One address of another broker, dialled whenever there is no connection to it: for ever, and never in anybody's way.

Names are looked up in a thread of their own, since a resolver may take half a minute.  Between two attempts there is a
while, twice as long each time up to five seconds, and a quarter more or less, so that brokers that were cut off
together do not come back together.
"""

from __future__ import annotations

import errno
import os
import secrets
import socket
import threading
from collections import deque
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, Protocol  # Any: an address of a socket, of whatever family

from tieline.conf import urls

if TYPE_CHECKING:
    from tieline.conf.overlay import Peer
    from tieline.core.timers import Action, Timer, Timers

#: How long to wait before an address is dialled again, the first time and at most.
FIRST_S, LAST_S = 0.2, 5.0
#: What a socket to another broker begins with.
OPTIONS: Final = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1))
_UNDER_WAY: Final = frozenset({0, errno.EINPROGRESS, errno.EAGAIN})
#: A family, and an address of it.
_Place = tuple[int, Any]


class Dialling(Protocol):
    """For whom is dialled."""

    @property
    def timers(self) -> Timers: ...

    def is_up(self, name: str) -> bool:
        """Whether a broker is connected, whoever has dialled."""

    def begin(self, sock: socket.socket, dialler: Dialler, now: float) -> None:
        """A socket is being connected."""

    def deliver(self, action: Action) -> None:
        """Have something done in the broker's next turn; for other threads."""

    def tell(self, kind: str, name: str, address: str, text: str, *, is_trouble: bool = False) -> None:
        """Add to the broker's story."""


class Dialler:
    """One address that is dialled whenever there is no connection to it."""

    def __init__(self, dialling: Dialling, conf: Peer) -> None:
        assert conf.url is not None
        self._dialling = dialling
        self.conf = conf
        self.url = urls.parse(conf.url)
        #: Who is expected there, or was there last.
        self.peer = conf.name or ""
        #: Why there is no connection; empty while there is one, or before anything was tried.
        self.trouble = ""
        #: Whether something has come of the first attempt.
        self.is_tried = False
        self._wait_s = FIRST_S
        self._timer: Timer | None = None
        self._is_over = False
        #: Where a name may lead that have not been tried since it was looked up.
        self._places: deque[_Place] = deque()

    def __repr__(self) -> str:
        return f"<Dialler {self.url}>"

    def dial(self, now: float) -> None:
        """Try to connect, unless the broker that was there last is connected in another way."""
        self._timer = None
        if self._is_over:
            return
        if self.peer and self._dialling.is_up(self.peer):
            self.is_tried = True
            self._later(now)
        elif self._places:
            self._connect(now)
        elif (place := _place_of(self.url)) is not None:
            self._places.append(place)
            self._connect(now)
        else:
            threading.Thread(target=self._look_up, name="tieline-names", daemon=True).start()

    def _look_up(self) -> None:
        """In a thread: the addresses of a name."""
        places: list[_Place] = []
        trouble = ""
        try:
            found = socket.getaddrinfo(self.url.host, self.url.port, type=socket.SOCK_STREAM)
            places = [(family, place) for family, _kind, _protocol, _name, place in found]
        except (OSError, UnicodeError) as error:
            trouble = f"{self.url.host} cannot be looked up: {getattr(error, 'strerror', None) or error}"
        with suppress(RuntimeError):  # the broker has ended meanwhile
            self._dialling.deliver(partial(self._looked_up, places, trouble))

    def _looked_up(self, places: list[_Place], trouble: str, now: float) -> None:
        if self._is_over:
            return
        self._places.extend(places)
        if places:
            self._connect(now)
        else:
            self.failed(trouble or f"{self.url.host} has no address", now)

    def _connect(self, now: float) -> None:
        family, place = self._places.popleft()
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            self.failed(f"it cannot be reached: {error.strerror or error}", now)
            return
        sock.setblocking(False)
        if family != socket.AF_UNIX:
            for option in OPTIONS:
                sock.setsockopt(*option)
        problem = sock.connect_ex(place)
        if problem not in _UNDER_WAY:
            sock.close()
            self.failed(f"it cannot be reached: {os.strerror(problem)}", now)
            return
        self._dialling.begin(sock, self, now)

    def failed(self, why: str, now: float) -> None:
        """There is no connection, or no longer: it is said once for each reason."""
        self.is_tried = True
        if why and why != self.trouble:
            self.trouble = why
            self._dialling.tell("peer_away", self.peer, str(self.url), why, is_trouble=True)
        self._later(now)

    def succeeded(self, peer: str) -> None:
        """A broker is there."""
        self.peer, self.trouble, self.is_tried = peer, "", True
        self._wait_s = FIRST_S
        self._places.clear()

    def stop(self) -> None:
        """Dial no more, and let go of what was being dialled."""
        self._is_over = True
        if self._timer is not None:
            self._dialling.timers.cancel(self._timer)
            self._timer = None

    def _later(self, now: float) -> None:
        if self._is_over or self._timer is not None:
            return
        wait_s, self._wait_s = self._wait_s, min(LAST_S, 2 * self._wait_s)
        wait_s *= 0.75 + secrets.randbelow(1000) / 2000
        self._timer = self._dialling.timers.at(now + wait_s, self.dial)


def _place_of(url: urls.ListenerUrl) -> _Place | None:
    """Where an address is that need not be looked up; None for a name."""
    if url.is_unix:
        return socket.AF_UNIX, url.path
    try:
        address = ip_address(url.host)
    except ValueError:
        return None
    return (socket.AF_INET if address.version == 4 else socket.AF_INET6), (url.host, url.port)
