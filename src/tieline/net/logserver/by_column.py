"""Records as Arrow columns without a Python object for each value: the fast way, by compiled loops.

Rows are chosen by topic first, once for each different one; columns are then made of the chosen rows only.  What
messages say is read from them one by one where the records do not carry it; only the column of attributes waits for
that.  A condition needs the values of every payload and is not for this way, nor is anything that
:mod:`tieline.net.logserver.loops` cannot read: such records go the other way, which says what is wrong with them or
reads them all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieline.log.columns import PAIR, VALUE
from tieline.log.record import Record
from tieline.net.logserver import columns
from tieline.net.logserver.batches import Found, Way
from tieline.net.logserver.loops import maps, records
from tieline.net.logserver.loops.records import Numbers, Places
from tieline.net.logserver.loops.values import Bytes
from tieline.net.logserver.question import OffsetSpan
from tieline.net.logserver.selection import Remembered, Selection, Visibility
from tieline.net.store.declared_types import DeclaredTypes
from tieline.net.store.reading import Group
from tieline.wire.properties import user_properties

#: The place of a field in a record.
_FIELD: Final = {name: place for place, name in enumerate(Record.__struct_fields__)}
#: Places in the bytes of some groups have 32 bits.
_MOST_BYTES: Final = 2**31 - 1


class _Unusual(Exception):
    """The loops cannot read this."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """Where the values of some records stand, as :func:`tieline.net.logserver.loops.records.walk` notes it."""

    blob: Bytes
    offsets: Numbers
    starts: Places

    def chosen(self, which: slice | NDArray[np.bool_]) -> _Parts:
        """The same of some of the records."""
        return _Parts(self.blob, self.offsets[which], self.starts[:, which])

    def of(self, field: str) -> Places:
        """Where the values of one field stand."""
        return np.ascontiguousarray(self.starts[_FIELD[field]])

    def numbers(self, field: str) -> Numbers:
        """The values of a field of whole numbers or flags."""
        values = np.empty(self.offsets.size, np.int64)
        if not records.numbers(self.blob, self.of(field), values):
            raise _Unusual
        return values

    def stretches(self, field: str, kind: pa.DataType) -> pa.Array:
        """A column of texts or bytes."""
        found = np.empty((2, self.offsets.size), np.int32)
        records.stretches(self.blob, self.of(field), found[0], found[1])
        return _copied(self.blob, found[0], found[1], kind)


class ByColumn:
    """The way for messages without a condition; ``otherwise`` takes what it cannot read."""

    def __init__(self, schema: pa.Schema, selection: Selection, visibility: Visibility, otherwise: Way) -> None:
        self._schema = schema
        self._otherwise = otherwise
        self._event_of = selection.event_of
        self._types = selection.types
        self._sees = None if visibility.is_open else Remembered(visibility.record)
        self._takes = None if selection.is_everything else selection.has_topic
        needed = columns.fields_of(schema) | ({"topic"} if self._sees or self._takes else set())
        self._wanted = max((_FIELD[name] for name in needed), default=0) + 1

    def __call__(self, groups: Sequence[Group], span: OffsetSpan) -> Found:
        """Build the columns of a batch, or leave it to the other way if a record is unusual."""
        try:
            parts, withheld = self._visible(self._taken_apart(groups, span))
            made = [self._column(field, parts) for field in self._schema]
        except (_Unusual, pa.ArrowInvalid):
            return self._otherwise(groups, span)
        return Found(pa.RecordBatch.from_arrays(made, schema=self._schema), withheld)

    def _taken_apart(self, groups: Sequence[Group], span: OffsetSpan) -> _Parts:
        blob = np.frombuffer(b"".join([group.blob for group in groups]), np.uint8)
        table = np.empty((len(groups), 3), np.int64)
        table[:, 1] = np.cumsum([len(group.blob) for group in groups])
        table[0, 0] = 0
        table[1:, 0] = table[:-1, 1]
        table[:, 2] = [group.records for group in groups]
        rows = int(table[:, 2].sum())
        starts = np.empty((self._wanted, rows), np.int32)
        if blob.size > _MOST_BYTES or not records.walk(blob, table, starts):
            raise _Unusual
        first = groups[0].first_offset
        offsets = np.arange(first, first + rows, dtype=np.int64)
        asked = slice(max(0, span.first - first), max(0, span.last - first))
        return _Parts(blob, offsets, starts).chosen(asked)

    def _visible(self, parts: _Parts) -> tuple[_Parts, int]:
        """The records that may be seen and are asked for, and how many may not be seen."""
        withheld = 0
        if self._sees is not None:
            seen = _by_topic(parts, self._sees)
            withheld = int(seen.size - np.count_nonzero(seen))
            parts = parts.chosen(seen)
        if self._takes is not None:
            parts = parts.chosen(_by_topic(parts, self._takes))
        return parts, withheld

    def _column(self, field: pa.Field, parts: _Parts) -> pa.Array:
        match columns.FIELDS.get(field.name, field.name):
            case "offset":
                return pa.array(parts.offsets)
            case "received" if field.name == "received":
                return pa.array(parts.numbers("received") // 1_000).view(field.type)
            case "topic" if field.name == "event":
                return _events(parts.stretches("topic", pa.string()), self._event_of)
            case "properties" if field.name == "properties":
                return _properties(parts)
            case "attributes":
                return self._attributes(parts)
            case name if pa.types.is_string(field.type) or pa.types.is_binary(field.type):
                return parts.stretches(name, field.type)
            case name:
                return _numbers(parts.numbers(name), field.type)

    def _attributes(self, parts: _Parts) -> pa.Array:
        """What the records carry, and what is read from those that carry nothing."""
        carried = _attributes(parts)
        if not self._types or not carried.null_count:
            return carried
        is_bare = carried.is_null().to_numpy(zero_copy_only=False)
        read = _read(parts.chosen(is_bare), self._types)
        if len(read) == len(carried):
            return read
        places = np.arange(len(carried))
        places[is_bare] = np.arange(len(carried), len(carried) + len(read))
        return pa.concat_arrays([carried, read]).take(pa.array(places))


def _read(parts: _Parts, types: DeclaredTypes) -> pa.Array:
    """What messages say by the event types of their time."""
    topics = parts.stretches("topic", pa.string()).to_pylist()
    payloads, properties = (parts.stretches(name, pa.binary()).to_pylist() for name in ("payload", "properties"))
    return columns.attributes(list(map(types.read, parts.offsets.tolist(), topics, payloads, properties)))


def _by_topic(parts: _Parts, test: Callable[[str], bool]) -> NDArray[np.bool_]:
    """What a test says of the topic of each record."""
    coded = parts.stretches("topic", pa.string()).dictionary_encode()
    answers = np.fromiter(map(test, coded.dictionary.to_pylist()), np.bool_, len(coded.dictionary))
    chosen: NDArray[np.bool_] = answers[coded.indices.to_numpy()]
    return chosen


def _events(topics: pa.Array, event_of: Callable[[str], str | None]) -> pa.Array:
    coded = topics.dictionary_encode()
    names = pa.array([event_of(topic) for topic in coded.dictionary.to_pylist()], pa.string())
    return names.take(coded.indices)


def _numbers(values: Numbers, kind: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(kind):
        return pa.array(values.astype(np.bool_))
    # a number that does not fit is an error, as it is for the other way
    return pa.array(values).cast(kind)


def _copied(blob: Bytes, places: Places, lengths: Places, kind: pa.DataType) -> pa.Array:
    """Stretches of bytes as one column."""
    ends = np.zeros(places.size + 1, np.int32)
    data = np.empty(int(lengths.sum()), np.uint8)
    records.gather(blob, places, lengths, ends, data)
    made = pa.Array.from_buffers(kind, places.size, [None, pa.py_buffer(ends), pa.py_buffer(data)])
    if pa.types.is_string(kind):
        made.validate(full=True)
    return made


def _ends(counts: Places) -> pa.Array:
    """Where the values of each row end in a flat column."""
    ends = np.zeros(counts.size + 1, np.int32)
    np.cumsum(counts, out=ends[1:])
    return pa.array(ends)


def _properties(parts: _Parts) -> pa.Array:
    starts = parts.of("properties")
    counts = np.empty_like(starts)
    if not maps.count_users(parts.blob, starts, counts):
        return columns.pairs([user_properties(each) for each in parts.stretches("properties", pa.binary()).to_pylist()])
    keys, values = (np.empty((2, int(counts.sum())), np.int32) for _ in range(2))
    maps.users(parts.blob, starts, keys, values)
    flat = [_copied(parts.blob, each[0], each[1], pa.string()) for each in (keys, values)]
    return pa.ListArray.from_arrays(_ends(counts), pa.StructArray.from_arrays(flat, fields=list(PAIR)))


def _attributes(parts: _Parts) -> pa.Array:
    starts = parts.of("attributes")
    counts = np.empty_like(starts)
    maps.count_pairs(parts.blob, starts, counts)
    is_missing = counts < 0
    counts[is_missing] = 0
    total = int(counts.sum())
    keys, texts = (np.empty((2, total), np.int32) for _ in range(2))
    kinds, values = np.empty(total, np.uint8), np.empty(total, np.float64)
    if not maps.pairs(parts.blob, starts, keys, kinds, values, texts):
        raise _Unusual
    is_text = kinds == maps.TEXT
    text = _copied(parts.blob, texts[0], texts[1], pa.string()) if is_text.any() else pa.nulls(total, pa.string())
    items = pa.StructArray.from_arrays(
        [
            pa.array(values, mask=kinds != maps.NUMBER),
            _only(text, is_text),
            pa.array(values.astype(np.bool_), mask=kinds != maps.FLAG),
        ],
        fields=list(VALUE),
    )
    names = _copied(parts.blob, keys[0], keys[1], pa.string())
    return pa.MapArray.from_arrays(_ends(counts), names, items, mask=pa.array(is_missing))


def _only(texts: pa.Array, which: NDArray[np.bool_]) -> pa.Array:
    """Texts where there are some; the others are missing, not empty."""
    if which.all():
        return texts
    _nothing, ends, data = texts.buffers()
    valid = pa.array(which).buffers()[1]
    return pa.Array.from_buffers(texts.type, len(texts), [valid, ends, data])
