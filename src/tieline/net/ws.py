"""MQTT over WebSocket, on the sans-I/O half of the websockets library."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from websockets.exceptions import NegotiationError
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from tieline.net.layer import LayerError

#: Frames above this are refused; a frame may carry several packets, or part of one.
_MARGIN = 65_536

# the library's own log would repeat, per connection, what our counters and log lines name
_SILENT = logging.getLogger("tieline.websocket")
_SILENT.disabled = True


def _choose(_protocol: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """[MQTT-6.0.0-3], [MQTT-6.0.0-4]: the sub-protocol is "mqtt", and the server says so."""
    for name in offered:
        if name == "mqtt":
            return name
    raise NegotiationError('this is MQTT over WebSocket: ask for the sub-protocol "mqtt"')


class WebSocket:
    """The server's side of one WebSocket connection."""

    __slots__ = ("_protocol", "is_over", "is_ready")

    def __init__(self, max_packet: int) -> None:
        self._protocol = ServerProtocol(select_subprotocol=_choose, max_size=max_packet + _MARGIN, logger=_SILENT)
        self.is_ready = False
        self.is_over = False

    def received(self, data: bytes) -> bytes:
        """The payload of all binary frames in the data."""
        if not self.is_ready:
            data = self._shake_hands(data)
            if not data:
                return b""
        protocol = self._protocol
        protocol.receive_data(data)
        payload: list[bytes] = []
        for event in protocol.events_received():
            assert isinstance(event, Frame)
            if event.opcode is Opcode.TEXT:
                # [MQTT-6.0.0-1]
                protocol.fail(CloseCode.UNSUPPORTED_DATA, "MQTT travels in binary frames")
                text = "a text frame; MQTT travels in binary frames [MQTT-6.0.0-1]"
                raise LayerError("ws_text_frame", text, b"".join(payload))
            if event.opcode in {Opcode.BINARY, Opcode.CONT}:
                payload.append(bytes(event.data))
        if protocol.parser_exc is not None:
            raise LayerError("ws_error", str(protocol.parser_exc), b"".join(payload))
        if protocol.state is not State.OPEN:
            self.is_over = True
        return payload[0] if len(payload) == 1 else b"".join(payload)

    def _shake_hands(self, data: bytes) -> bytes:
        """Feed the handshake; what follows it.

        The library would parse frames behind the request before the request is answered, so it gets single lines.
        """
        if data[:1] == b"\x10":
            raise LayerError("ws_handshake_failed", "plain MQTT on a WebSocket port")
        protocol = self._protocol
        while data and not self.is_ready:
            end = data.find(b"\n") + 1 or len(data)
            protocol.receive_data(data[:end])
            data = data[end:]
            for event in protocol.events_received():
                if isinstance(event, Request):
                    self._greet(event)
            if protocol.handshake_exc is not None:
                raise LayerError("ws_handshake_failed", str(protocol.handshake_exc))
        return data

    def _greet(self, request: Request) -> None:
        response = self._protocol.accept(request)
        if response.status_code != 101:
            if response.body is not None:
                response.headers["Cache-Control"] = "no-store"
            self._protocol.send_response(response)
            reason = self._protocol.handshake_exc
            raise LayerError("ws_handshake_failed", str(reason) if reason else f"HTTP {response.status_code}")
        self._protocol.send_response(response)
        self.is_ready = True

    def wrap(self, data: bytes) -> bytes:
        """Put bytes into one binary frame; nothing before the handshake is complete."""
        if self._protocol.state is not State.OPEN:
            return b""
        self._protocol.send_binary(data)
        return self.pending()

    def pending(self) -> bytes:
        """The handshake's answer, pongs and close frames."""
        return b"".join(self._protocol.data_to_send())

    @property
    def has_pending(self) -> bool:
        """The library does not say without giving it away."""
        return True

    def farewell(self) -> bytes:
        """A close frame, unless one was sent."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
        return self.pending()
