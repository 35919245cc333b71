"""WebSocket frames that carry nothing."""

from __future__ import annotations

import socket
from typing import Final

from tests.kits.websocket import WebSocketDial
from tests.robust.attack.bout import Bout
from tests.robust.attack.hostile import pour
from tests.robust.attack.site import Doors

#: A binary frame without a payload, and a ping with one of 125 bytes, as clients send them: masked, with zeros.
EMPTY: Final = b"\x82\x80\x00\x00\x00\x00"
PING: Final = b"\x89\xfd\x00\x00\x00\x00" + b"x" * 125


def _visitor(url: str) -> socket.socket:
    return WebSocketDial(url).sock


def empty_frames(doors: Doors, connections: int, bout: Bout) -> None:
    """Frames without a payload, before any CONNECT."""
    pour(lambda _: _visitor(doors.ws), connections, EMPTY * 10_000, bout)


def unread_pongs(doors: Doors, connections: int, bout: Bout) -> None:
    """Pings, from a client that reads none of the pongs."""
    pour(lambda _: _visitor(doors.ws), connections, PING * 500, bout, reads=False)


def tiny_fragments(doors: Doors, connections: int, bout: Bout) -> None:
    """One message in fragments without a payload, which never ends."""
    first, more = b"\x02\x80\x00\x00\x00\x00", b"\x00\x80\x00\x00\x00\x00"
    pour(lambda _: _visitor(doors.ws), connections, first + more * 100_000, bout)
