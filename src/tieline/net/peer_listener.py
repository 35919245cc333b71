"""An address where other brokers connect: plain, with TLS, or in the file system."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tieline.conf import urls
from tieline.net.address import bind, bind_path
from tieline.net.dialler import OPTIONS
from tieline.net.listener import NO_DESCRIPTORS, PAUSE_S, ListenError, context_of, highest_descriptor
from tieline.net.tls import Tls

if TYPE_CHECKING:
    from tieline.conf.schema import Listener
    from tieline.core.broker import Broker
    from tieline.core.client import Connection
    from tieline.net.trust import Context
    from tieline.net.turns import Turns

_BACKLOG: Final = 64
#: Connections accepted in one turn.
_ACCEPTS: Final = 8


class Accepting(Protocol):
    """For whom is listened."""

    core: Broker

    @property
    def loop(self) -> Turns: ...

    def accepted(self, sock: socket.socket, address: str, tls: Tls | None, now: float) -> None:
        """Somebody has connected who has not said who it is."""


class PeerListener:
    """A bound address, from which connections of other brokers are accepted."""

    def __init__(self, accepting: Accepting, conf: Listener) -> None:
        self._accepting = accepting
        asked = urls.parse(conf.url)
        self._context = context_of(conf)
        try:
            if asked.is_unix:
                self._sock = bind_path(asked.path, backlog=_BACKLOG)
            else:
                self._sock = bind(asked.host, asked.port, backlog=_BACKLOG, options=OPTIONS)
        except OSError as error:
            raise ListenError(f"cannot listen on {asked}: {error.strerror or error}.") from error
        self.fd = self._sock.fileno()
        self.url = asked if asked.is_unix else replace(asked, port=self._sock.getsockname()[1])
        self._ceiling = highest_descriptor()
        accepting.loop.watch(self)

    def renew(self, conf: Listener, context: Context | None) -> list[tuple[Connection, str]]:
        """Another certificate for new connections; whether a link may stay is asked where all links are known."""
        self._context = context
        return []

    def handle(self, events: int, now: float, is_alone: bool) -> None:
        """Accept a few connections; the others wait in the kernel."""
        for _ in range(_ACCEPTS):
            try:
                sock, address = self._sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in NO_DESCRIPTORS:
                    self._pause(now)
                    return
                continue  # the other end gave up in the meantime
            if sock.fileno() >= self._ceiling:
                sock.close()
                self._pause(now)
                return
            sock.setblocking(False)
            tls = None if self._context is None else Tls(self._context)
            self._accepting.accepted(sock, f"{address[0]}:{address[1]}" if address else str(self.url), tls, now)

    def _pause(self, now: float) -> None:
        """No descriptor is free: stop asking for a while, instead of spinning."""
        self._accepting.core.account.closed["no_descriptors"] += 1
        self._accepting.loop.modify(self, 0)
        self._accepting.core.timers.at(now + PAUSE_S, lambda _: self._accepting.loop.modify(self, 1))

    def close(self) -> None:
        """Accept nobody any more; peers that are connected stay."""
        if self.fd >= 0:
            self._accepting.loop.forget(self)
            self._sock.close()
            self.fd = -1
            if self.url.is_unix:
                with suppress(OSError):
                    Path(self.url.path).unlink()
