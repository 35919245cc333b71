"""``-F FORMAT``: how ``tieline sub`` prints a message; a format is compiled once into the pieces it is made of."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any  # Any: values of JSON

from paho.mqtt.client import MQTTMessage

Piece = Callable[[MQTTMessage], bytes]

_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "e": "\x1b", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}


def compile_format(text: str) -> Piece:
    """A function that prints a message as the format says; ValueError names what it does not know."""
    pieces: list[Piece] = []
    position = 0
    while position < len(text):
        mark = text[position]
        if mark not in "%@\\":
            end = position + 1
            while end < len(text) and text[end] not in "%@\\":
                end += 1
            pieces.append(_constant(text[position:end]))
            position = end
            continue
        if position + 1 == len(text):
            raise ValueError(f'"{mark}" at the end means nothing')
        pieces.append(_piece(mark, text[position + 1]))
        position += 2
    return lambda message: b"".join(piece(message) for piece in pieces)


def plain(message: MQTTMessage) -> bytes:
    """Only the payload, byte by byte as it came."""
    return bytes(message.payload)


def verbose(message: MQTTMessage) -> bytes:
    """Topic and payload, as -v prints them."""
    return b"%s %s" % (message.topic.encode(), message.payload or b"(null)")


def _piece(mark: str, letter: str) -> Piece:
    if mark == "\\":
        if letter not in _ESCAPES:
            raise ValueError(f"\\{letter} is not known")
        return _constant(_ESCAPES[letter])
    if letter == mark:
        return _constant(mark)
    if mark == "@":
        return lambda _message: datetime.now().astimezone().strftime(f"%{letter}").encode()
    if letter not in _FIELDS:
        raise ValueError(f"%{letter} is not known; known are {' '.join(f'%{each}' for each in _FIELDS)}")
    return _FIELDS[letter]


def _constant(text: str) -> Piece:
    encoded = text.encode()
    return lambda _message: encoded


def _property(name: str) -> Piece:
    def piece(message: MQTTMessage) -> bytes:
        value = getattr(message.properties, name, "") if message.properties is not None else ""
        if isinstance(value, bytes):
            return value
        return " ".join(map(str, value)).encode() if isinstance(value, list) else str(value).encode()

    return piece


def _user_properties(message: MQTTMessage) -> bytes:
    pairs = getattr(message.properties, "UserProperty", []) if message.properties is not None else []
    return " ".join(f"{name}:{value}" for name, value in pairs).encode()


def _as_json(message: MQTTMessage, payload: Any) -> bytes:
    known = message.properties.json() if message.properties is not None else {}
    shown: dict[str, Any] = {
        "tst": datetime.now(UTC).isoformat(),
        "topic": message.topic,
        "qos": message.qos,
        "retain": int(message.retain),
        "payloadlen": len(message.payload),
    }
    if message.qos:
        shown["mid"] = message.mid
    if known:
        shown["properties"] = known
    return json.dumps(shown | {"payload": payload}, ensure_ascii=False).encode()


def _json_text(message: MQTTMessage) -> bytes:
    try:
        payload = message.payload.decode()
    except UnicodeDecodeError:
        payload = base64.b64encode(message.payload).decode()
    return _as_json(message, payload)


def _json_value(message: MQTTMessage) -> bytes:
    try:
        return _as_json(message, json.loads(message.payload))
    except ValueError:
        return _json_text(message)


_FIELDS: dict[str, Piece] = {
    "t": lambda message: message.topic.encode(),
    "p": plain,
    "x": lambda message: message.payload.hex().encode(),
    "X": lambda message: message.payload.hex().upper().encode(),
    "l": lambda message: str(len(message.payload)).encode(),
    "q": lambda message: str(message.qos).encode(),
    "r": lambda message: str(int(message.retain)).encode(),
    "m": lambda message: str(message.mid).encode(),
    "I": lambda _message: datetime.now().astimezone().strftime("%Y-%m-%dT%H:%M:%S%z").encode(),
    "U": lambda _message: f"{time.time():.9f}".encode(),
    "j": _json_text,
    "J": _json_value,
    "A": _property("TopicAlias"),
    "C": _property("ContentType"),
    "D": _property("CorrelationData"),
    "E": _property("MessageExpiryInterval"),
    "F": _property("PayloadFormatIndicator"),
    "R": _property("ResponseTopic"),
    "S": _property("SubscriptionIdentifier"),
    "P": _user_properties,
}
