"""Listening sockets: as many connections as one turn allows are accepted, while there are descriptors for them."""

from __future__ import annotations

import errno
import os
import resource
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from tieline.conf import urls
from tieline.core.account import Event
from tieline.net.address import bind, server_context
from tieline.net.entrance import Entrance

if TYPE_CHECKING:
    from tieline.conf.schema import Listener
    from tieline.core.client import Connection
    from tieline.net.loop import Loop
    from tieline.net.trust import Context

#: Connections accepted in one turn before the established ones get theirs.
ACCEPTS_PER_TURN = 64
BACKLOG = 1_024
#: What accepted sockets begin with: it need not be set for each connection.
_OPTIONS = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1))
#: What clients leave for the pages, the management socket, and the files that a reload reads.
RESERVED_DESCRIPTORS = 160
#: How long to wait when the process has no descriptors left.
PAUSE_S = 0.5
NO_DESCRIPTORS = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class ListenError(Exception):
    """An address cannot be listened on; the text is a whole sentence."""


class ListeningSocket:
    """A bound address, from which connections that fit the limits are accepted."""

    def __init__(self, loop: Loop, conf: Listener) -> None:
        self._loop = loop
        asked = urls.parse(conf.url)
        context = context_of(conf)
        self._sock = _bind(asked)
        self._family = int(self._sock.family)
        self.fd = self._sock.fileno()
        port: int = self._sock.getsockname()[1]
        self.url = replace(asked, port=port)
        self._entrance = Entrance(loop, conf, self.url, context)
        #: Descriptors from this number on are not for clients.
        self._ceiling = highest_descriptor()
        loop.watch(self)

    def renew(self, conf: Listener, context: Context | None) -> list[tuple[Connection, str]]:
        """Other terms from now on; which connections may not stay by them, and why."""
        return self._entrance.renew(conf, context)

    def handle(self, events: int, now: float, is_alone: bool) -> None:
        """Accept as many connections as one turn allows; the others wait in the kernel."""
        for _ in range(ACCEPTS_PER_TURN):
            try:
                # accept() calls this, and then looks up names for the family and the type of every socket
                fd, address = self._sock._accept()  # type: ignore[attr-defined]  # noqa: SLF001
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in NO_DESCRIPTORS:
                    self._pause(error, now)
                    return
                continue  # the peer gave up in the meantime
            if fd >= self._ceiling:
                # the system gives the lowest number that is free
                os.close(fd)
                self._pause(OSError(errno.EMFILE, "the last descriptors are not for clients"), now)
                return
            host = f"[{address[0]}]" if ":" in address[0] else address[0]
            sock = socket.SocketType(self._family, socket.SOCK_STREAM, 0, fd)
            self._entrance.take_in(sock, f"{host}:{address[1]}", now)

    def _pause(self, error: OSError, now: float) -> None:
        """No descriptor is free: stop asking for a while, instead of spinning."""
        broker = self._loop.broker
        broker.account.closed["no_descriptors"] += 1
        said = f"no_descriptors: {error}"
        broker.account.tell(Event("refused", "", str(self.url), said, is_trouble=True, why="no_descriptors"))
        self._loop.modify(self, 0)
        broker.timers.at(now + PAUSE_S, lambda _: self._loop.modify(self, 1))

    def close(self) -> None:
        """Stop accepting; established connections go on."""
        if self.fd >= 0:
            self._loop.forget(self)
            self._sock.close()
            self.fd = -1


def context_of(conf: Listener) -> Context | None:
    """What TLS needs to know on a listener; None where there is no TLS."""
    if not urls.parse(conf.url).is_tls:
        return None
    try:
        return server_context(conf)
    except (OSError, ValueError) as error:
        raise ListenError(f"{conf.url}: the certificate or key cannot be used: {error}") from error


def highest_descriptor() -> int:
    """Descriptors from this number on are not for those who connect."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most - min(RESERVED_DESCRIPTORS, most // 4)


def _bind(url: urls.ListenerUrl) -> socket.socket:
    try:
        return bind(url.host, url.port, backlog=BACKLOG, options=_OPTIONS)
    except OSError as error:
        hint = " Is another broker running?" if error.errno == errno.EADDRINUSE else ""
        raise ListenError(f"cannot listen on {url}: {error.strerror or error}.{hint}") from error
