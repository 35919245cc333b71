"""The first packet of a connection: CONNECT, or another protocol, which is answered with a sentence and not a reset."""

from __future__ import annotations

from tieline.core.account import Account
from tieline.core.client import Connection
from tieline.core.inbound.connect import Connecting
from tieline.core.inbound.connections import Connections
from tieline.core.inbound.holds import Holds
from tieline.core.work import SLOW_BYTES, Work
from tieline.wire.decode import decode
from tieline.wire.errors import ProtocolError, Violation
from tieline.wire.fields import decode_varint
from tieline.wire.frames import level_of, measure
from tieline.wire.packets import Connect
from tieline.wire.reason import Reason

_CONNECT = 0x10
#: In a CONNECT behind its fixed header: where its flags are and where its properties begin.
_FLAGS, _BEFORE_PROPERTIES = 7, 10
_HAS_WILL = 0x04
_HTTP = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
_TLS = b"\x16\x03"
#: A fatal "protocol version" alert, so that a TLS client stops with a reason of its own.
_TLS_ALERT = b"\x15\x03\x01\x00\x02\x02\x46"

_HTTP_TEXT = (
    b"This port speaks MQTT over plain TCP, not HTTP or WebSocket.\n"
    b"Connect with an MQTT client, or use a ws:// listener for MQTT over WebSocket.\n"
)
_TLS_TEXT = (
    b"This port speaks MQTT over plain TCP, not TLS.\nConnect without TLS, or use a tls:// listener of this broker.\n"
)


class FirstPacket:
    """Handles what comes before anything else."""

    __slots__ = ("_account", "_connecting", "_connections", "_holds", "_work")

    def __init__(
        self, connecting: Connecting, connections: Connections, holds: Holds, work: Work, account: Account
    ) -> None:
        self._connecting = connecting
        self._connections = connections
        self._holds = holds
        self._work = work
        self._account = account

    def take(self, conn: Connection, data: bytes, now: float) -> int:
        """Handle the first packet; where the next one begins, 0 while it is not complete.  Raises Again if it waits."""
        if data[0] != _CONNECT:
            return self._refuse_foreign(conn, data, now)
        limit = conn.allowance.packet_bytes
        found = measure(data, 0, limit, 0)
        if found is None:
            return 0
        start, end = found
        if conn.has_header and peek_version(data, start, min(end, len(data))):
            # a stock client, which sends no more than its CONNECT: refused in the words it knows, without the byte
            conn.version = peek_version(data, start, end)
            conn.has_header = False
            text = "this listener expects the priority byte after the remaining length of every packet"
            self._connections.refuse(conn, Reason.UNSUPPORTED_PROTOCOL_VERSION, text, now)
            return 0
        if end + conn.has_header > len(data):
            return 0
        slow = _property_bytes(data, start + conn.has_header, end + conn.has_header)
        if slow > SLOW_BYTES and not self._work.is_going_on:
            # to decode it takes milliseconds: one in a turn, not one of each connection
            self._holds.postpone(conn)
            return 0
        self._work.did(slow)
        if conn.has_header:
            conn.level = level_of(data[start])
            start, end = start + 1, end + 1
        conn.version = peek_version(data, start, end)
        measure(data, 0, limit, conn.version)  # now that it is known, by the version's own rule
        packet = decode(_CONNECT, data[start:end], 0)
        assert isinstance(packet, Connect)
        self._account.packets_in += 1
        self._connecting.on_connect(conn, packet, now)
        conn.verdicts.clear()
        return end

    def _refuse_foreign(self, conn: Connection, data: bytes, now: float) -> int:
        sentence = foreign_sentence(data)
        if not sentence:
            # [MQTT-3.1.0-1] the first packet is CONNECT
            raise Violation("the first packet of a connection is not CONNECT", "MQTT-3.1.0-1")
        conn.say(sentence)
        self._connections.shut(conn, "foreign_protocol", now, text=describe_foreign(data))
        return 0


def peek_version(data: bytes, start: int, end: int) -> int:
    """The protocol level of a CONNECT, readable even when the rest of it is not; 0 when there is none."""
    if data[start : start + 6] == b"\x00\x04MQTT" and start + 6 < end:
        return data[start + 6]
    return 0


def _property_bytes(data: bytes, start: int, end: int) -> int:
    """How many bytes of a CONNECT are properties, of the client and of its will, which are read one by one."""
    if peek_version(data, start, end) != 5 or start + _BEFORE_PROPERTIES > end:
        return 0
    try:
        size, pos = decode_varint(data, start + _BEFORE_PROPERTIES, end)
        pos += size
        if data[start + _FLAGS] & _HAS_WILL and pos + 2 <= end:
            size += decode_varint(data, pos + 2 + (data[pos] << 8 | data[pos + 1]), end)[0]
    except ProtocolError:
        return 0  # it is refused when it is decoded
    return size


def is_undecided(data: bytes) -> bool:
    """Whether the first bytes are too few to tell a foreign protocol from nonsense."""
    return data[0] != _CONNECT and any(len(data) < len(start) and start.startswith(data) for start in (*_HTTP, _TLS))


def foreign_sentence(data: bytes) -> bytes:
    """The answer to the first bytes of a foreign protocol; empty when they are not recognised."""
    if data.startswith(_HTTP):
        length = str(len(_HTTP_TEXT)).encode()
        return (
            b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
            b"Content-Length: " + length + b"\r\n\r\n" + _HTTP_TEXT
        )
    if data.startswith(_TLS):
        return _TLS_ALERT + _TLS_TEXT
    return b""


def describe_foreign(data: bytes) -> str:
    """What was spoken, for the log."""
    return "TLS on a plain MQTT port" if data.startswith(_TLS) else "HTTP or WebSocket on a plain MQTT port"
