"""MQTT over WebSocket, on the sans-I/O half of the websockets library."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from urllib.parse import urlsplit

from websockets.exceptions import NegotiationError
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from tieline.conf.urls import is_loopback
from tieline.net.layer import LayerError

#: Frames that are looked at in one go, and what one counts towards the work of a turn: the library takes its time.
FRAMES = 40
WORK_PER_FRAME = 250
#: Frames above this are refused; a frame may carry several packets, or part of one.
_MARGIN = 65_536
#: The bytes before the payload of a pong.
_HEAD = 2

# the library's own log would repeat, per connection, what our counters and log lines name
_SILENT = logging.getLogger("tieline.websocket")
_SILENT.disabled = True


def _choose(_protocol: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """[MQTT-6.0.0-3], [MQTT-6.0.0-4]: the sub-protocol is "mqtt", and the server says so."""
    for name in offered:
        if name == "mqtt":
            return name
    raise NegotiationError('this is MQTT over WebSocket: ask for the sub-protocol "mqtt"')


def _may_connect(request: Request, origins: tuple[str, ...], *, is_local: bool) -> bool:
    """Whether the page for which a browser connects is one of ours; programs that are no browsers name none.

    A browser connects for any page, wherever that comes from.  On a listener of this machine alone, the same name is
    not enough: a page can have a name that leads here (DNS rebinding).
    """
    named = request.headers.get_all("Origin")
    if not named or "*" in origins:
        return True
    if len(named) == 1 and named[0].strip().lower() in origins:
        return True
    hosts = request.headers.get_all("Host")
    if len(named) != 1 or len(hosts) != 1:
        return False
    try:
        page, here = urlsplit(named[0].strip()).hostname, urlsplit(f"//{hosts[0].strip()}").hostname
        return page is not None and page == here and (not is_local or is_loopback(page))
    except ValueError:
        return False


class WebSocket:
    """The server's side of one WebSocket connection."""

    __slots__ = (
        "_fed",
        "_inside",
        "_is_local",
        "_origins",
        "_protocol",
        "_rest",
        "_work",
        "is_over",
        "is_ready",
        "waiting",
    )

    #: A handshake is a few lines.
    is_costly = False

    def __init__(self, max_packet: int, origins: tuple[str, ...] = (), *, is_local: bool = False) -> None:
        """``origins`` are the pages, besides those of the same host, whose browsers may connect.

        ``is_local`` says that only programs of this machine reach the listener.
        """
        self._origins = origins
        self._is_local = is_local
        self._protocol = ServerProtocol(select_subprotocol=_choose, max_size=max_packet + _MARGIN, logger=_SILENT)
        self.is_ready = False
        self.is_over = False
        #: What arrived and was not looked at yet; the library has so many bytes of it: a head that is not complete.
        self._rest = b""
        self._fed = 0
        #: How many bytes of the frame that was begun have not arrived.
        self._inside = 0
        #: Bytes of answers to pings that were not taken yet.
        self.waiting = 0
        self._work = 0

    @property
    def has_more(self) -> bool:
        """Whole frames were left for later."""
        return not self.is_over and self._inside < len(self._rest) and frame_bytes(self._rest, self._inside) is not None

    def take_work(self) -> int:
        """Frames, and lines of the handshake."""
        work, self._work = self._work, 0
        return work

    def received(self, data: bytes) -> bytes:
        """The payload of the binary frames in the data; of the first so many if it is full of them."""
        if not self.is_ready:
            data = self._shake_hands(data)
            if not data:
                return b""
        self._rest += data
        data = self._cut()
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
            elif event.opcode is Opcode.PING:
                self.waiting += _HEAD + len(event.data)
        if protocol.parser_exc is not None:
            raise LayerError("ws_error", str(protocol.parser_exc), b"".join(payload))
        if protocol.state is not State.OPEN:
            self.is_over = True
        return payload[0] if len(payload) == 1 else b"".join(payload)

    def _cut(self) -> bytes:
        """Take from what has arrived as many frames as are looked at in one go, and what there is of the last one."""
        rest, fed = self._rest, self._fed
        end, frames = self._inside, 0
        is_cut_off = False
        while end < len(rest) and frames < FRAMES and not is_cut_off:
            length = frame_bytes(rest, end)
            if length is None:
                is_cut_off = True
            else:
                end += length
                frames += 1
        self._work += (frames + 1) * WORK_PER_FRAME
        self._inside = max(0, end - len(rest))
        self._rest = rest[end:]
        # the library finds what is wrong with a head before all of it is there
        self._fed = len(self._rest) if is_cut_off else 0
        return rest[fed:] if is_cut_off else rest[fed:end]

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
            self._work += WORK_PER_FRAME
            data = data[end:]
            for event in protocol.events_received():
                if isinstance(event, Request):
                    self._greet(event)
            if protocol.handshake_exc is not None:
                raise LayerError("ws_handshake_failed", str(protocol.handshake_exc))
        return data

    def _greet(self, request: Request) -> None:
        response = self._protocol.accept(request)
        if response.status_code == 101 and not _may_connect(request, self._origins, is_local=self._is_local):
            response = self._protocol.reject(403, "pages of other sites may not connect here\n")
            self._protocol.handshake_exc = NegotiationError("a page of another site: see origins of the listener")
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
        self.waiting = 0
        return b"".join(self._protocol.data_to_send())

    @property
    def has_pending(self) -> bool:
        """The library does not say without giving it away."""
        return True

    @property
    def held(self) -> int:
        """The beginning of a frame, or of the handshake."""
        return len(self._protocol.reader.buffer)

    def farewell(self) -> bytes:
        """A close frame, unless one was sent."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
        return self.pending()


def frame_bytes(data: bytes, at: int) -> int | None:
    """How long the frame is that a client begins at this place; None while too little of it is there to know."""
    if len(data) < at + 2:
        return None
    length = data[at + 1] & 0x7F
    # one without a mask is an error, which the library finds in its first two bytes
    head = 6 if data[at + 1] & 0x80 else 2
    if length < 126:
        return head + length
    more = 2 if length == 126 else 8
    if len(data) < at + 2 + more:
        return None
    return head + more + int.from_bytes(data[at + 2 : at + 2 + more], "big")
