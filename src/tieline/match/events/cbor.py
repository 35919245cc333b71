"""Payloads in CBOR (RFC 8949), read by cbor2 with everything switched off that could run away.

Tags are not interpreted: a date (tags 0 and 1) is the text or number inside, which the kind of the attribute explains,
and any other tagged item is no value.  Depth and size are bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final  # Any: a tag decoder of cbor2 takes and gives whatever was sent

from tieline.conf.schema import Attribute
from tieline.extras import needs
from tieline.match.events.json_tree import BARE, is_position
from tieline.match.events.kinds import Value
from tieline.match.events.reading import Decoded, declared

_DEPTH: Final = 32
#: An item of one byte becomes an object of some sixty, so this is a few milliseconds and a few megabytes.
_LARGEST: Final = 65_536
#: Keys that are no texts can be chosen so that a dictionary becomes slow.  Devices that save bytes with integer keys
#: send little, and so little that even a hostile choice costs next to nothing.
_LARGEST_WITH_OTHER_KEYS: Final = 4_096

#: The tags to which cbor2 gives a meaning of its own.
_TAGS: Final = (2, 3, 4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43000)


class CborPayload:
    """Reads CBOR; see :class:`tieline.match.events.reading.Codec`."""

    def __init__(self, attributes: Sequence[Attribute]) -> None:
        self._attributes = tuple(attributes)
        with needs("payloads"):
            import cbor2
        self._loads = cbor2.loads
        self._problems = (cbor2.CBORError, ValueError, TypeError, OverflowError, RecursionError, MemoryError)
        self._tags: dict[int, Any] = dict.fromkeys(_TAGS, _no_value) | {0: _inside, 1: _inside}

    def read(self, payload: bytes, topic: str) -> Decoded | None:
        if len(payload) > _LARGEST:
            return None
        try:
            data = self._load(payload, only_texts=True)
        except self._problems:
            if len(payload) > _LARGEST_WITH_OTHER_KEYS:
                return None
            try:
                data = self._load(payload, only_texts=False)
            except self._problems:
                return None

        def find(path: str) -> object:
            return _at(data, path)

        return Decoded(declared(self._attributes, find), find)

    def rows(self, payloads: Sequence[bytes], topic: str) -> list[list[Value] | None]:
        found = [self.read(payload, topic) for payload in payloads]
        return [None if each is None else each.values for each in found]

    def _load(self, payload: bytes, *, only_texts: bool) -> object:
        return self._loads(
            payload,
            tag_hook=_no_value,
            semantic_decoders=self._tags,
            max_depth=_DEPTH,
            strict_hashable_types=only_texts,
        )


def _at(data: object, path: str) -> object:
    """The item at a path of keys and array positions; a key of digits may be an integer."""
    if not isinstance(data, dict | list):
        return data if path == BARE else None
    for step in path.split("."):
        if isinstance(data, dict):
            inner = data.get(step)
            data = data.get(int(step)) if inner is None and is_position(step.removeprefix("-")) else inner
        elif isinstance(data, list) and is_position(step) and int(step) < len(data):
            data = data[int(step)]
        else:
            return None
    return data


def _no_value(tagged: object, _immutable: bool) -> None:
    """Read a tagged item as nothing, since its tag gives it another meaning than its content has."""


def _inside(content: object, _immutable: bool) -> object:
    return content
