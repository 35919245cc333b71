"""Other protocols spoken to the MQTT port: answered with a sentence, not a reset."""

from __future__ import annotations

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


def is_undecided(data: bytes) -> bool:
    """Whether the first bytes are too few to tell a foreign protocol from nonsense."""
    return any(len(data) < len(start) and start.startswith(data) for start in (*_HTTP, _TLS))


def sentence(data: bytes) -> bytes:
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


def describe(data: bytes) -> str:
    """What was spoken, for the log."""
    return "TLS on a plain MQTT port" if data.startswith(_TLS) else "HTTP or WebSocket on a plain MQTT port"
