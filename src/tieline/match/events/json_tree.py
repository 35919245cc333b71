"""A JSON text, opened only along the paths that somebody asks for.

Each level is decoded into the raw texts of its members, so that what nobody asks about is skipped rather than built,
and something unreadable in one member does not spoil the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

#: A member of a payload that is one value and no object goes by this name.
BARE: Final = "value"

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY: Final = msgspec.json.Decoder(list[msgspec.Raw])
_SCALAR: Final = msgspec.json.Decoder(bool | int | float | str | None)

#: Positions below this one are read without building the rest of their array.
_EARLY: Final = 32
#: Stands for a member that a payload does not have.
ABSENT: Final = msgspec.Raw()
_FIRST: Final = msgspec.json.Decoder(
    msgspec.defstruct(
        "First", [(f"f{number}", msgspec.Raw, ABSENT) for number in range(_EARLY)], array_like=True, frozen=True
    )
)

#: What msgspec raises for a text that is not JSON or too deeply nested.  What is JSON but not what was expected is a
#: ValidationError, which is to be caught before.
UNREADABLE: Final = (ValueError, RecursionError)


class JsonTree:
    """A JSON text whose values are found by path.  Construction raises one of ``UNREADABLE`` if it is none."""

    __slots__ = ("_bare", "_members")

    def __init__(self, text: bytes) -> None:
        self._bare: object = None
        #: None: an array, or one value.
        self._members: dict[str, msgspec.Raw] | None = None
        try:
            self._members = _OBJECT.decode(text)
        except msgspec.ValidationError:
            items = _items(text)
            if items is None:
                self._bare = _scalar(text)
            else:
                self._members = {str(number): item for number, item in enumerate(items)}

    def find(self, path: str) -> object:
        """The scalar at a path of keys and array positions, such as ``cells.0.voltage``."""
        if self._members is None:
            return self._bare if path == BARE else None
        first, *rest = path.split(".")
        member = self._members.get(first)
        return None if member is None else find(member, rest)


def find(raw: msgspec.Raw, steps: Sequence[str]) -> object:
    """The scalar that some steps lead to from a raw text; None if there is none."""
    try:
        for step in steps:
            below = _step(raw, step)
            if below is None:
                return None
            raw = below
        return _scalar(raw)
    except UNREADABLE:
        return None


def bare(text: bytes) -> object:
    """A payload that is one value; None if it is an object or an array.  Raises one of ``UNREADABLE``."""
    return _scalar(text)


def is_position(step: str) -> bool:
    """Whether a step of a path may be a position in an array."""
    return step.isascii() and step.isdigit() and len(step) <= 6


def _step(raw: msgspec.Raw, step: str) -> msgspec.Raw | None:
    try:
        return _OBJECT.decode(raw).get(step)
    except msgspec.ValidationError:
        return _item(raw, int(step)) if is_position(step) else None


def _item(raw: msgspec.Raw, position: int) -> msgspec.Raw | None:
    if position >= _EARLY:
        items = _items(raw)
        return items[position] if items is not None and position < len(items) else None
    try:
        found: msgspec.Raw = msgspec.structs.astuple(_FIRST.decode(raw))[position]
    except msgspec.ValidationError:
        return None
    return None if found is ABSENT else found


def _items(raw: msgspec.Raw | bytes) -> list[msgspec.Raw] | None:
    try:
        return _ARRAY.decode(raw)
    except msgspec.ValidationError:
        return None


def _scalar(raw: msgspec.Raw | bytes) -> object:
    try:
        return _SCALAR.decode(raw)
    except msgspec.ValidationError:  # an object, an array, a number beyond float64
        return None
