"""Why a record cannot be a row of its event type, as a sentence; and what it says, if it can."""

from __future__ import annotations

from typing import Final

import msgspec

from tieline.conf.schema import Attribute, AttributeKind
from tieline.match.events import EventType, Reading, Value
from tieline.match.events.kinds import EXACT, NUMERIC

_UNREADABLE: Final = {
    "json": "the payload is not JSON",
    "sparkplug": "the payload is not Sparkplug B",
    "cbor": "the payload is not CBOR, or too large for it",
    "number": "the payload is not a number",
}
_CALLED: Final[dict[AttributeKind, str]] = {
    "number": "a number",
    "integer": "an integer",
    "category": "a text",
    "boolean": "true or false",
    "timestamp": "a time",
}
#: Seconds since 1970 of the first and the last moment that a date has: the years 1 to 9999.
EARLIEST: Final = -62_135_596_800.0
LATEST: Final = 253_402_300_799.0
#: Of a value, enough to know it again.
_SHOWN: Final = 40


class Bad(Exception):
    """A record is none of its event type; the message is the reason."""


def examined(
    event_type: EventType, written_as: str, payload: bytes, properties: bytes, topic: str, *, is_readable: bool
) -> list[Value | None]:
    """The values of a record that lacks some attribute, user properties included; raises :class:`Bad`.

    An attribute may be missing, and is null then.  Something else in its place is an error.
    """
    reading = event_type.read(payload, properties, topic)
    if reading is None:
        raise Bad(unreadable(written_as, payload))
    values = [reading.get(attribute.name) for attribute in event_type.attributes]
    if not is_readable and all(value is None for value in values):
        # some user property is there, but none that says anything about the event
        raise Bad(unreadable(written_as, payload))
    for attribute, value in zip(event_type.attributes, values, strict=True):
        if value is None:
            _refuse_other_kind(attribute, _raw(reading, attribute, payload if written_as == "json" else None))
    return values


def unreadable(written_as: str, payload: bytes) -> str:
    """Why a payload could not be read at all."""
    return _UNREADABLE[written_as] if payload else "the payload is empty"


def outside(name: str) -> str:
    """Why a time is none that tables can hold."""
    return f"attribute {name} is no time between the years 1 and 9999; is it in milliseconds?"


def _refuse_other_kind(attribute: Attribute, raw: object) -> None:
    if raw is None:
        return
    if attribute.kind in NUMERIC and isinstance(raw, int) and not isinstance(raw, bool) and abs(raw) > EXACT:
        raise Bad(f"attribute {attribute.name} is an integer beyond 2^53, which a number cannot hold exactly")
    raise Bad(f"attribute {attribute.name} is not {_CALLED[attribute.kind]}: {_shown(raw)}")


def _raw(reading: Reading, attribute: Attribute, json: bytes | None) -> object:
    """What is in an attribute's place.  JSON is opened as a whole, because objects and arrays count here too."""
    found = reading.raw(attribute.name, attribute.place)
    if found is not None or json is None:
        return found
    try:
        tree = msgspec.json.decode(json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    for step in attribute.place.split("."):
        if isinstance(tree, dict):
            tree = tree.get(step)
        elif isinstance(tree, list) and step.isdecimal() and int(step) < len(tree):
            tree = tree[int(step)]
        else:
            return None
    return tree


def _shown(raw: object) -> str:
    text = raw if isinstance(raw, str) else msgspec.json.encode(raw, enc_hook=str).decode(errors="replace")
    text = "".join(char if char.isprintable() else "�" for char in text)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
