"""A WebSocket client under full control: every frame is sent as the test says, every frame received is shown."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Self

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from tests.kits.dial import open_socket
from tieline.wire.frames import Framer

if TYPE_CHECKING:
    import ssl
    from types import TracebackType

    from tieline.wire.packets import Packet

_CHUNK = 65_536
_LARGEST = 268_435_460


class WebSocketDial:
    """One WebSocket connection; ``protocol`` sends frames, ``flush`` puts them on the wire."""

    def __init__(
        self,
        url: str,
        *,
        path: str = "/mqtt",
        offers: tuple[str, ...] = ("mqtt",),
        version: int = 5,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.sock: socket.socket = open_socket(url, context=context)
        self.protocol = ClientProtocol(
            parse_uri(url.replace("[::1]", "localhost") + path),
            subprotocols=[Subprotocol(name) for name in offers] or None,
            max_size=None,
        )
        self._framer = Framer(_LARGEST, version)
        self._events: list[Frame | Response] = []
        self._packets: list[Packet] = []
        self.protocol.send_request(self.protocol.connect())
        self.flush()
        answer = self.event()
        assert isinstance(answer, Response)
        #: The answer to the handshake; 101 when the connection is open.
        self.response = answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sock.close()

    def flush(self) -> None:
        """Put on the wire what the protocol wants to send."""
        for data in self.protocol.data_to_send():
            if data:
                self.sock.sendall(data)

    def send(self, *payloads: bytes) -> None:
        """A binary frame for each."""
        for payload in payloads:
            self.protocol.send_binary(payload)
        self.flush()

    def event(self) -> Frame | Response | None:
        """The next frame, or the answer to the handshake; None at the end of the stream."""
        while not self._events:
            data = self.sock.recv(_CHUNK)
            if not data:
                self.protocol.receive_eof()
            else:
                self.protocol.receive_data(data)
            for event in self.protocol.events_received():
                assert isinstance(event, Frame | Response)
                self._events.append(event)
            if not data and not self._events:
                return None
        return self._events.pop(0)

    def packet(self) -> Packet | None:
        """The next MQTT packet, which must come in binary frames; None at the end, whether announced or not."""
        while not self._packets:
            frame = self.event()
            if frame is None:
                return None
            assert isinstance(frame, Frame)
            if frame.opcode is Opcode.CLOSE:
                return None
            assert frame.opcode in {Opcode.BINARY, Opcode.CONT}, f"not a binary frame: {frame}"
            self._packets += self._framer.feed(bytes(frame.data))
        return self._packets.pop(0)
