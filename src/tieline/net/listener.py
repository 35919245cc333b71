"""Listening sockets: accept what fits the limits, put the right layers on it."""

from __future__ import annotations

import errno
import os
import resource
import socket
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tieline.conf import urls
from tieline.conf.schema import bound
from tieline.core.account import Event
from tieline.net.address import bind, server_context
from tieline.net.layer import Layer, Stack
from tieline.net.link import SocketLink
from tieline.net.tls import Tls

if TYPE_CHECKING:
    import ssl

    from tieline.conf.schema import Listener
    from tieline.net.loop import Loop

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
        self._conf = conf
        self._asked = urls.parse(conf.url)
        self._context = context_of(conf)
        self._sock = _bind(self._asked)
        self._family = int(self._sock.family)
        self.fd = self._sock.fileno()
        port: int = self._sock.getsockname()[1]
        self.url = replace(self._asked, port=port)
        self._name = str(self.url)
        #: Descriptors from this number on are not for clients.
        self._ceiling = highest_descriptor()
        #: The number of open connections that came through this listener.
        self._open = 0
        loop.broker.allowances.listeners[self._name] = conf
        loop.watch(self)

    def renew(self, conf: Listener, context: ssl.SSLContext | None) -> None:
        """Other terms from now on, and another certificate for new connections; those that are open keep theirs."""
        self._conf = conf
        self._context = context
        self._loop.broker.allowances.listeners[self._name] = conf

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
            self._accept(sock, f"{host}:{address[1]}", now)

    def _pause(self, error: OSError, now: float) -> None:
        """No descriptor is free: stop asking for a while, instead of spinning."""
        broker = self._loop.broker
        broker.account.closed["no_descriptors"] += 1
        said = f"no_descriptors: {error}"
        broker.account.tell(Event("refused", "", str(self.url), said, is_trouble=True, why="no_descriptors"))
        self._loop.modify(self, 0)
        broker.timers.at(now + PAUSE_S, lambda _: self._loop.modify(self, 1))

    def _accept(self, sock: socket.SocketType, peer: str, now: float) -> None:
        broker = self._loop.broker
        most = bound(broker.settings.limits.connections)
        if self._open >= min(bound(self._conf.connections), most) or len(broker.connections) >= most:
            broker.account.closed["too_many_connections"] += 1
            name = "too_many_connections"
            broker.account.tell(Event("refused", "", peer, name, is_trouble=True, why=name))
            sock.close()
            return
        sock.setblocking(False)
        conn = broker.open(
            now,
            listener=self._name,
            peer=peer,
            max_level=self._conf.max_level,
            node_level=self._conf.node_level,
            has_header=self.url.has_header,
        )
        tls = Tls(self._context) if self._context is not None else None
        source = self._conf.user_from
        if tls is not None and source is not None:
            conn.identify = partial(tls.user, source)
        link = SocketLink(self._loop, sock, conn, self._layers(tls), self._closed)
        conn.link = link
        self._open += 1
        self._loop.watch(link)

    def _closed(self) -> None:
        self._open -= 1

    def _layers(self, tls: Tls | None) -> Layer | None:
        if not self._asked.is_websocket:
            return tls
        # the websockets library is only loaded by brokers that use it
        from tieline.net.ws import WebSocket

        most = self._loop.broker.settings.limits.packet_bytes
        websocket = WebSocket(most, self._conf.origins, is_local=self.url.is_loopback())
        return websocket if tls is None else Stack(tls, websocket)

    def close(self) -> None:
        """Stop accepting; established connections go on."""
        if self.fd >= 0:
            self._loop.forget(self)
            self._sock.close()
            self.fd = -1


def context_of(conf: Listener) -> ssl.SSLContext | None:
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
