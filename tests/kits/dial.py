"""A real socket to a live broker: packets or bytes out; packets, bytes or the end of the stream in.

Every read has a deadline, so a broker that does not answer fails the test instead of stopping it.
"""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tests.kits.patience import PATIENCE_S
from tieline.conf.urls import parse
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import Connack, Connect, Packet, Suback, Subscribe, Subscription
from tieline.wire.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

P = TypeVar("P", bound=Packet)

_CHUNK = 65_536
_LARGEST = 268_435_460


def addresses(ready: str) -> list[str]:
    """Where a broker listens, from the line that says that it is ready; the page behind them is none of them."""
    return ready.partition(" ready: ")[2].partition(" page: ")[0].split()


def open_socket(url: str, *, context: ssl.SSLContext | None = None) -> socket.socket:
    """A connected socket, with TLS on it if a context is given; the scheme of the address does not matter."""
    address = parse(url)
    sock = socket.create_connection((address.host, address.port), PATIENCE_S)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(sock, server_hostname=address.host) if context is not None else sock
    except BaseException:
        sock.close()
        raise


def read_to_end(sock: socket.socket) -> bytes:
    """Everything up to an orderly end; a reset raises ConnectionResetError."""
    data = b""
    while chunk := sock.recv(_CHUNK):
        data += chunk
    return data


def hang_up(sock: socket.socket) -> None:
    """End with a reset, as a machine does that lost its memory of the connection."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    sock.close()


class Dial:
    """One raw MQTT connection."""

    def __init__(self, url: str, *, version: int = 5, context: ssl.SSLContext | None = None) -> None:
        self.sock = open_socket(url, context=context)
        self.version = version
        self._framer = Framer(_LARGEST, version)
        self._inbox: list[Packet] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close without a word."""
        self.sock.close()

    def send(self, *packets: Packet | bytes) -> None:
        """Packets, or bytes as they are, in one go."""
        self.sock.sendall(b"".join(one if isinstance(one, bytes) else encode(one, self.version) for one in packets))

    def receive(self) -> Packet | None:
        """The next packet; None at the end of the stream."""
        while not self._inbox:
            data = self.sock.recv(_CHUNK)
            if not data:
                return None
            self._inbox += self._framer.feed(data)
        return self._inbox.pop(0)

    def expect(self, kind: type[P], /, **fields: object) -> P:
        """The next packet; it has this type and these fields."""
        packet = self.receive()
        assert isinstance(packet, kind), f"expected {kind.__name__}, received {packet}"
        for name, wanted in fields.items():
            found = getattr(packet, name)
            assert found == wanted, f"{name}: expected {wanted!r}, received {found!r}"
        return packet

    def expect_end(self) -> None:
        """The broker has closed, in order and without another packet."""
        packet = self.receive()
        assert packet is None, f"expected the end, received {packet}"

    def connect(self, client_id: str = "", **fields: Any) -> Connack:
        """Send CONNECT and return the answer; ``fields`` are those of the packet."""
        fields = {"clean_start": True, "keep_alive": 0} | fields
        self.send(Connect(version=self.version, client_id=client_id, **fields))
        return self.expect(Connack)

    def subscribe(self, filter_: str, qos: int = 0) -> Suback:
        """Subscribe and return the answer, which must come before any message."""
        self.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter=filter_, qos=qos),)))
        return self.expect(Suback)

    def rest(self) -> Iterator[Packet]:
        """Every packet up to the end of the stream."""
        while (packet := self.receive()) is not None:
            yield packet


def dial(
    url: str, client_id: str = "", *, version: int = 5, context: ssl.SSLContext | None = None, **fields: Any
) -> Dial:
    """A client that has been let in; close it, or use it in a ``with``."""
    client = Dial(url, version=version, context=context)
    try:
        connack = client.connect(client_id, **fields)
        assert connack.reason is Reason.SUCCESS, f"not let in: {connack}"
    except BaseException:
        client.close()
        raise
    return client
