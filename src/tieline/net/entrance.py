"""Where accepted connections come in under the terms of one address, whoever has accepted them.

A listener accepts its own; the HTTP server hands over those that turn out to be MQTT over WebSocket.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tieline.conf.quantities import bound
from tieline.core.account import Event
from tieline.net.layer import Layer, Stack
from tieline.net.link import SocketLink
from tieline.net.tls import Tls

if TYPE_CHECKING:
    import socket
    import ssl

    from tieline.conf.schema import Listener
    from tieline.conf.urls import ListenerUrl
    from tieline.net.turns import Turns


class Entrance:
    """Takes sockets in as connections of one broker, as long as they fit the limits, and puts the right layers on."""

    def __init__(self, loop: Turns, conf: Listener, url: ListenerUrl, context: ssl.SSLContext | None) -> None:
        """The ``context`` is None where there is no TLS, or somebody else has taken it off."""
        self._loop = loop
        self._conf = conf
        self._url = url
        self._context = context
        self._name = str(url)
        #: The number of open connections that came in here.
        self._open = 0
        loop.broker.allowances.listeners[self._name] = conf

    def renew(self, conf: Listener, context: ssl.SSLContext | None) -> None:
        """Other terms from now on, and another certificate for new connections; those that are open keep theirs."""
        self._conf = conf
        self._context = context
        self._loop.broker.allowances.listeners[self._name] = conf

    def take_in(self, sock: socket.SocketType, peer: str, now: float, begun: bytes = b"") -> bool:
        """Make a connection of a socket, of which ``begun`` has been read already; False if there is no room for it."""
        broker = self._loop.broker
        most = bound(broker.settings.limits.connections)
        if self._open >= min(bound(self._conf.connections), most) or len(broker.connections) >= most:
            broker.account.closed["too_many_connections"] += 1
            name = "too_many_connections"
            broker.account.tell(Event("refused", "", peer, name, is_trouble=True, why=name))
            sock.close()
            return False
        sock.setblocking(False)
        conn = broker.open(
            now,
            listener=self._name,
            peer=peer,
            max_level=self._conf.max_level,
            node_level=self._conf.node_level,
            has_header=self._url.has_header,
        )
        tls = Tls(self._context) if self._context is not None else None
        source = self._conf.user_from
        if tls is not None and source is not None:
            conn.identify = partial(tls.user, source)
        link = SocketLink(self._loop, sock, conn, self._layers(tls), self._closed)
        conn.link = link
        self._open += 1
        self._loop.watch(link)
        if begun:
            link.begin(begun, now)
        return True

    def _closed(self) -> None:
        self._open -= 1

    def _layers(self, tls: Tls | None) -> Layer | None:
        if not self._url.is_websocket:
            return tls
        # the websockets library is only loaded by brokers that use it
        from tieline.net.ws import WebSocket

        most = self._loop.broker.settings.limits.packet_bytes
        websocket = WebSocket(most, self._conf.origins, is_local=self._url.is_loopback())
        return websocket if tls is None else Stack(tls, websocket)
