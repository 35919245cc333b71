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

    from tieline.conf.schema import Listener
    from tieline.conf.urls import ListenerUrl
    from tieline.core.client import Connection
    from tieline.net.trust import Context, Trust
    from tieline.net.turns import Turns


class Entrance:
    """Takes sockets in as connections of one broker, as long as they fit the limits, and puts the right layers on."""

    def __init__(self, loop: Turns, conf: Listener, url: ListenerUrl, context: Context | None) -> None:
        """The ``context`` is None where there is no TLS, or somebody else has taken it off."""
        self._loop = loop
        self._conf = conf
        self._url = url
        self._context = context
        self._name = str(url)
        #: The number of open connections that came in here.
        self._open = 0
        #: Of those, the ones with TLS on a listener that wants certificates.
        self._certified: dict[Connection, Tls] = {}
        loop.broker.allowances.listeners[self._name] = conf

    def renew(self, conf: Listener, context: Context | None) -> list[tuple[Connection, str]]:
        """Other terms from now on; which connections may not stay by them, and why.

        New connections are shown another certificate.  Those that are open keep theirs, if what they have shown is
        still good, and still says who somebody is.
        """
        takes_from_elsewhere = conf.user_from != self._conf.user_from
        self._conf = conf
        self._context = context
        self._loop.broker.allowances.listeners[self._name] = conf
        trust = None if context is None else context.trust
        if trust is None and not takes_from_elsewhere:
            return []
        found: list[tuple[Connection, str]] = []
        for conn in self._loop.broker.connections:
            if conn.listener == self._name and not conn.closing:
                why = "this listener finds out in another way who somebody is" if takes_from_elsewhere else ""
                if trust is not None and not why:
                    why = self._distrust(conn, trust)
                if why:
                    found.append((conn, why))
        return found

    def _distrust(self, conn: Connection, trust: Trust) -> str:
        tls = self._certified.get(conn)
        if tls is None:
            return "this listener asks for a certificate"
        return "" if tls.is_believed(trust) else "what vouched for the certificate is not trusted any more"

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
        if self._context is not None and self._context.trust is not None and tls is not None:
            self._certified[conn] = tls
        link = SocketLink(self._loop, sock, conn, self._layers(tls), partial(self._closed, conn))
        conn.link = link
        self._open += 1
        self._loop.watch(link)
        if begun:
            link.begin(begun, now)
        return True

    def _closed(self, conn: Connection) -> None:
        self._open -= 1
        self._certified.pop(conn, None)

    def _layers(self, tls: Tls | None) -> Layer | None:
        if not self._url.is_websocket:
            return tls
        # the websockets library is only loaded by brokers that use it
        from tieline.net.ws import WebSocket

        most = self._loop.broker.settings.limits.packet_bytes
        websocket = WebSocket(most, self._conf.origins, is_local=self._url.is_loopback())
        return websocket if tls is None else Stack(tls, websocket)
