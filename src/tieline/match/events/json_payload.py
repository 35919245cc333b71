"""Payloads in JSON: fast where they are as declared, tolerant where they are not.

The common payload has every attribute with the type that was declared, and one msgspec decoder reads it.  When it does
not (a null, a text for a number, a number beyond float64), it is read once more, attribute by attribute, so that only
the wrong ones are missing.

Theory of operation
-------------------
msgspec reads the declared attributes into structs that are generated from their paths.  The paths form a tree.  Inner
nodes become structs, leaves become fields of the exact type, and one attribute getter fetches all leaves at once, so a
payload is read without a line of Python per attribute.  A node that a struct cannot express (an array position, a path
that ends inside another one, two attributes at one place) becomes a field of raw text, in which its attributes are
looked up afterwards.

Bounds on the float fields keep out integers that float64 cannot hold: msgspec would read ``9007199254740993`` as a
float that is another number.  Payloads with numbers that large are validation errors, and read again with more care.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any, Final  # Any: the structs are made at run time

import msgspec

from tieline.conf.schema import Attribute, AttributeKind
from tieline.match.box import MISSING
from tieline.match.events import json_tree
from tieline.match.events.json_tree import ABSENT, BARE, UNREADABLE, JsonTree, bare
from tieline.match.events.kinds import EXACT, OF_KIND, Value
from tieline.match.events.reading import Decoded, declared, nothing

_Number = Annotated[float, msgspec.Meta(gt=-EXACT, lt=EXACT)]
_Integer = Annotated[float, msgspec.Meta(gt=-EXACT, lt=EXACT, multiple_of=1)]
_Instant = Annotated[datetime, msgspec.Meta(tz=True)]

_FIELD: Final[dict[AttributeKind, Any]] = {
    "number": _Number,
    "integer": _Integer,
    "category": str,
    "boolean": bool,
    "timestamp": _Number | _Instant,
}


@dataclass(slots=True)
class _Node:
    """One level of the paths."""

    children: dict[str, _Node] = field(default_factory=dict)
    #: Which attributes end here.
    ends: list[int] = field(default_factory=list)

    @property
    def is_raw(self) -> bool:
        """Whether no struct and no field can stand for it."""
        return len(self.ends) > 1 or bool(self.ends and self.children) or any(map(json_tree.is_position, self.children))


class Layout:
    """How the attributes of one event type are read."""

    __slots__ = ("decode", "fields", "finish")

    def __init__(self, attributes: Sequence[Attribute]) -> None:
        root = _Node()
        for position, attribute in enumerate(attributes):
            node = root
            for step in attribute.place.split("."):
                node = node.children.setdefault(step, _Node())
            node.ends.append(position)
        #: Where the value of each attribute is in the struct.
        getters = [""] * len(attributes)
        #: What is still to be done with a value after it was fetched, by position.
        self.finish: list[tuple[int, Callable[[Any], Value]]] = []
        struct = self._struct(root, attributes, getters, "")
        self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(struct).decode
        #: All values of a struct, MISSING where the payload had none.
        self.fields: Callable[[Any], Sequence[Any]] = _getter(getters)
        self.finish.sort(key=lambda each: each[0])

    def _struct(
        self, node: _Node, attributes: Sequence[Attribute], getters: list[str], prefix: str
    ) -> type[msgspec.Struct]:
        fields: list[tuple[str, Any, Any]] = []
        names: dict[str, str] = {}
        for number, (step, child) in enumerate(node.children.items()):
            # keys may be anything, names of fields may not
            name = f"f{number}"
            names[name] = step
            place = prefix + name
            if child.is_raw:
                fields.append((name, msgspec.Raw, ABSENT))
                for position, steps in _ends(child, ()):
                    getters[position] = place
                    self.finish.append((position, _finder(steps, attributes[position].kind)))
            elif child.ends:
                (position,) = child.ends
                kind = attributes[position].kind
                fields.append((name, _FIELD[kind], MISSING))
                getters[position] = place
                if kind == "timestamp":
                    self.finish.append((position, OF_KIND[kind]))
            else:
                inner = self._struct(child, attributes, getters, f"{place}.")
                fields.append((name, inner, inner()))
        return msgspec.defstruct("Level", fields, rename=names, frozen=True, gc=False)


def members(attributes: Sequence[Attribute]) -> Callable[[bytes], Callable[[str], object]]:
    """A second reading, of one attribute at a time: the top level as raw texts, in which paths are looked up."""
    first = list(dict.fromkeys(attribute.place.partition(".")[0] for attribute in attributes))
    fields: list[tuple[str, Any, Any]] = [(f"f{number}", msgspec.Raw, ABSENT) for number in range(len(first))]
    renamed = {f"f{number}": step for number, step in enumerate(first)}
    decode = msgspec.json.Decoder(msgspec.defstruct("Members", fields, rename=renamed, frozen=True, gc=False)).decode

    def read(payload: bytes) -> Callable[[str], object]:
        found = dict(zip(first, msgspec.structs.astuple(decode(payload)), strict=True))

        def find(place: str) -> object:
            first_step, *rest = place.split(".")
            raw = found[first_step]
            return None if raw is ABSENT else json_tree.find(raw, rest)

        return find

    return read


def _ends(node: _Node, steps: tuple[str, ...]) -> list[tuple[int, tuple[str, ...]]]:
    """Every attribute that ends at a node or below it, and the steps that are left to it."""
    found = [(position, steps) for position in node.ends]
    for step, child in node.children.items():
        found += _ends(child, (*steps, step))
    return found


def _finder(steps: Sequence[str], kind: AttributeKind) -> Callable[[Any], Value]:
    of_kind = OF_KIND[kind]

    def finish(raw: msgspec.Raw) -> Value:
        return MISSING if raw is ABSENT else of_kind(json_tree.find(raw, steps))

    return finish


def _getter(places: list[str]) -> Callable[[Any], Sequence[Any]]:
    if not places:
        return lambda _struct: ()
    get: Callable[[Any], Any] = attrgetter(*places)
    # an attrgetter of one name gives the value, of several a tuple
    return get if len(places) > 1 else lambda struct: (get(struct),)


class JsonPayload:
    """Reads JSON; see :class:`tieline.match.events.reading.Codec`.

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
