"""Payloads in JSON: fast where they are as declared, tolerant where they are not.

The common payload has every attribute with the type that was declared, and one msgspec decoder reads it.  When it does
not (a null, a text for a number, a number beyond float64), it is read once more, attribute by attribute, so that only
the wrong ones are missing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tieline.conf.schema import Attribute
from tieline.match.events.codec import Decoded, declared, nothing
from tieline.match.events.json_layout import Layout, members
from tieline.match.events.json_tree import BARE, UNREADABLE, JsonTree, bare
from tieline.match.events.kinds import Value


class JsonPayload:
    """Reads JSON; see :class:`tieline.match.events.codec.Codec`.

    ``most`` bounds the payloads that are searched for attributes which were not declared.
    """

    def __init__(self, attributes: Sequence[Attribute], most: int) -> None:
        self._attributes = tuple(attributes)
        self._most = most
        self._layout = Layout(attributes)
        self._members = members(attributes)

    def read(self, payload: bytes, topic: str) -> Decoded | None:
        if not self._attributes:
            return self._untyped(payload)
        values = self.rows((payload,), topic)[0]
        return None if values is None else Decoded(values, _Searched(payload, self._most).find)

    def rows(self, payloads: Sequence[bytes], topic: str) -> list[list[Value] | None]:
        decode, fields = self._layout.decode, self._layout.fields
        rows: list[list[Value] | None] = []
        add = rows.append
        finish = self._layout.finish
        for payload in payloads:
            try:
                row = list(fields(decode(payload)))
            except msgspec.ValidationError:
                add(self._tolerant(payload))
                continue
            except UNREADABLE:
                add(None)
                continue
            if finish:
                for position, value_of in finish:
                    row[position] = value_of(row[position])
            add(row)
        return rows

    def _tolerant(self, payload: bytes) -> list[Value] | None:
        try:
            find = self._members(payload)
        except msgspec.ValidationError:
            return self._not_an_object(payload)
        except UNREADABLE:
            return None
        return declared(self._attributes, find)

    def _not_an_object(self, payload: bytes) -> list[Value] | None:
        try:
            value = bare(payload)
            if value is not None:
                return declared(self._attributes, {BARE: value}.get)
            # an array is opened as a whole, and therefore only up to a size
            return declared(self._attributes, JsonTree(payload).find if len(payload) <= self._most else nothing)
        except UNREADABLE:
            return None

    def _untyped(self, payload: bytes) -> Decoded | None:
        if len(payload) > self._most:
            return None
        try:
            return Decoded([], JsonTree(payload).find)
        except UNREADABLE:
            return None


class _Searched:
    """A payload that is opened when somebody asks for an attribute which was not declared."""

    __slots__ = ("_payload", "_tree")

    def __init__(self, payload: bytes, most: int) -> None:
        self._payload = payload if len(payload) <= most else b""
        self._tree: JsonTree | None = None

    def find(self, place: str) -> object:
        if self._tree is None:
            try:
                self._tree = JsonTree(self._payload)
            except UNREADABLE:
                # what the declared attributes did not touch may still be broken
                self._payload = b"{}"
                self._tree = JsonTree(self._payload)
        return self._tree.find(place)
