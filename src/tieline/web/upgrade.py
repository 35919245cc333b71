"""Connections to the HTTP server that turn out to be MQTT over WebSocket: they are handed over to the broker.

Theory of operation
-------------------
The page speaks MQTT at the address from which it was loaded, so nothing has to be allowed that is not its own origin.
A request to ``/mqtt`` that asks for a WebSocket is not answered here.  Without TLS the broker gets the socket itself
and what was read of it: from then on the connection is one like any other of its own loop, bounded by the same limits
and paced by the same scheduler.  With TLS only this thread can read the socket; the broker gets one end of a pair of
sockets, and bytes are carried between the other end and the client, never more of them at once than a few kilobytes.

Who may connect is decided by the broker: the origin by :mod:`tieline.net.ws`, the login as for every client.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

MQTT_PATH: Final = b"/mqtt"
#: Connections that this thread carries, because they are encrypted.
MOST_CARRIED: Final = 64
#: Bytes that may wait on the way between a client and the broker, in each direction and each of two buffers.
_HIGH_WATER: Final = 16_384

#: Called with a socket, who is at its other end, and what was read of it.
TakeIn = Callable[[socket.socket, str, bytes], None]


class Upgrades:
    """Gives the broker what turned out to be MQTT: the socket itself, or one end of a pair if it is encrypted."""

    def __init__(self, take_in: TakeIn) -> None:
        self._take_in = take_in
        self._carried = 0

    def wants(self, target: bytes) -> bool:
        """Whether a request for this address may become MQTT."""
        return target.partition(b"?")[0] == MQTT_PATH

    def hand_over(self, transport: asyncio.Transport, peer: str, begun: bytes) -> bool:
        """Give a connection to the broker; False if there is no room for it."""
        if transport.get_extra_info("sslcontext") is None:
            sock: socket.socket = transport.get_extra_info("socket").dup()
            # the transport closes its own descriptor, and says nothing to the other end
            transport.abort()
            self._take_in(sock, peer, begun)
            return True
        if self._carried >= MOST_CARRIED:
            return False
        ours, theirs = socket.socketpair()
        self._carried += 1
        carrier = _Carrier(transport, self._over)
        transport.set_protocol(carrier)
        transport.pause_reading()
        asyncio.get_running_loop().create_task(carrier.begin(ours))
        self._take_in(theirs, peer, begun)
        return True

    def _over(self) -> None:
        self._carried -= 1


class _End(asyncio.Protocol):
    """One end of a connection that is carried: what it reads goes to the other one, no faster than that takes it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _End | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=_HIGH_WATER)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            with suppress(RuntimeError):  # it may be closing
                self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        other, self.other = self.other, None
        if other is not None and other.transport is not None:
            other.transport.close()


class _Carrier(_End):
    """The end at the client, which is read once the end at the broker is there."""

    def __init__(self, transport: asyncio.Transport, over: Callable[[], None]) -> None:
        super().__init__()
        self._over = over
        self._is_over = False
        self.connection_made(transport)

    async def begin(self, ours: socket.socket) -> None:
        """Carry between the client and this socket."""
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _HIGH_WATER)
        end = _End()
        end.other, self.other = self, end
        await asyncio.get_running_loop().create_connection(lambda: end, sock=ours)
        assert self.transport is not None
        if self._is_over:
            self.other = None
            assert end.transport is not None
            end.transport.close()
        else:
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._over()
        super().connection_lost(exc)
