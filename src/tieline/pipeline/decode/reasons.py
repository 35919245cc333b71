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
#: Stands for what is not there, where null may be.
_ABSENT: Final = object()


class Bad(Exception):
    """A record is none of its event type; the message is the reason."""


def examined(
    event_type: EventType, written_as: str, payload: bytes, properties: bytes, topic: str, *, is_readable: bool
) -> list[Value | None]:
    """The values of a record that lacks some attribute, user properties included; raises :class:`Bad`.

    An attribute may be missing, and is null then.  Something else in its place is an error, and so is JSON that has
    none of them: a row of nulls would say that something was measured.
    """
    reading = event_type.read(payload, properties, topic)
    if reading is None:
        raise Bad(unreadable(written_as, payload))
    values = [reading.get(attribute.name) for attribute in event_type.attributes]
    if not is_readable and all(value is None for value in values):
        # some user property is there, but none that says anything about the event
        raise Bad(unreadable(written_as, payload))
    tree = _tree(payload) if written_as == "json" and is_readable else _ABSENT
    for attribute, value in zip(event_type.attributes, values, strict=True):
        if value is None:
            _refuse_other_kind(attribute, _raw(reading, attribute, tree))
    if tree is not _ABSENT and all(value is None for value in values):
        places = [attribute.place for attribute in event_type.attributes]
        if all(_at(tree, place) is _ABSENT for place in places):
            raise Bad(f"the payload has none of the attributes: {_shown(', '.join(places))}")
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


def _raw(reading: Reading, attribute: Attribute, tree: object) -> object:
    """What is in an attribute's place.  JSON is opened as a whole, because objects and arrays count here too."""
    found = reading.raw(attribute.name, attribute.place)
    if found is None and tree is not _ABSENT:
        found = _at(tree, attribute.place)
    return None if found is _ABSENT else found


def _tree(payload: bytes) -> object:
    """JSON as a whole; absent where only parts of it can be read.  Numbers that are too large raise :class:`Bad`."""
    try:
        return msgspec.json.decode(payload)
    except (UnicodeDecodeError, RecursionError):
        return _ABSENT
    except msgspec.DecodeError as problem:
        if "out of range" in str(problem):
            raise Bad("the payload has a number that is too large for any number here") from None
        return _ABSENT


def _at(tree: object, place: str) -> object:
    """What is in a place of JSON, which may be null; absent if the place is not there."""
    for step in place.split("."):
        if isinstance(tree, dict) and step in tree:
            tree = tree[step]
        elif isinstance(tree, list) and step.isdecimal() and int(step) < len(tree):
            tree = tree[int(step)]
        else:
            return _ABSENT
    return tree


def _shown(raw: object) -> str:
    text = raw if isinstance(raw, str) else msgspec.json.encode(raw, enc_hook=str).decode(errors="replace")
    text = "".join(char if char.isprintable() else "�" for char in text)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
