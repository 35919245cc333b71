"""Records as Arrow columns without a Python object for each value: the fast way, by compiled loops.

Rows are chosen by topic first, once for each different one; columns are then made of the chosen rows only.  A condition
needs the values of a payload and is not for this way, nor is anything that :mod:`tieline.net.logserver.loops` cannot
read: such records go the other way, which says what is wrong with them or reads them all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieline.core.log_columns import PAIR, VALUE
from tieline.core.record import Record
from tieline.net.logserver import columns
from tieline.net.logserver.batches import Found, Way
from tieline.net.logserver.loops import maps, records
from tieline.net.logserver.loops.records import Places
from tieline.net.logserver.loops.values import Bytes
from tieline.net.logserver.properties import user_properties
from tieline.net.logserver.selection import Remembered, Selection
from tieline.net.logserver.sight import Sight
from tieline.net.logserver.span import Span
from tieline.net.store.reading import Group

_NUMBER: Final = {name: row for row, name in enumerate(records.NUMBERS)}
_STRETCH: Final = {name: row for row, name in enumerate(records.STRETCHES)}
_TOPIC: Final = _STRETCH["topic"]


class _Unusual(Exception):
    """The loops cannot read this."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """Where everything stands, for some records, as :func:`tieline.net.logserver.loops.records.walk` notes it."""

    blob: Bytes
    offsets: Places
    numbers: Places
    places: Places
    lengths: Places

    def chosen(self, which: slice | NDArray[np.bool_]) -> _Parts:
        """The same of some of the records."""
        kept = (each[:, which] for each in (self.numbers, self.places, self.lengths))
        return _Parts(self.blob, self.offsets[which], *kept)

    def stretches(self, row: int, kind: pa.DataType) -> pa.Array:
        """A column of texts or bytes."""
        return _copied(self.blob, self.places[row], self.lengths[row], kind)


class ByColumn:
    """The way for messages without a condition; ``otherwise`` takes what it cannot read."""

    def __init__(self, schema: pa.Schema, selection: Selection, sight: Sight, otherwise: Way) -> None:
        self._schema = schema
        self._otherwise = otherwise
        self._event_of = selection.event_of
        self._sees = None if sight.is_open else Remembered(sight.record)
        self._takes = None if selection.is_everything else selection.has_topic
        needed = columns.fields_of(schema) | ({"topic"} if self._sees or self._takes else set())
        known = Record.__struct_fields__
        self._wanted = max((known.index(name) for name in needed), default=0) + 1

    def __call__(self, groups: Sequence[Group], span: Span) -> Found:
        """As :class:`tieline.net.logserver.batches.Way` says."""
        try:
            parts, withheld = self._visible(self._taken_apart(groups, span))
            made = [self._column(field, parts) for field in self._schema]
        except (_Unusual, pa.ArrowInvalid):
            return self._otherwise(groups, span)
        return Found(pa.RecordBatch.from_arrays(made, schema=self._schema), withheld)

    def _taken_apart(self, groups: Sequence[Group], span: Span) -> _Parts:
        blob = np.frombuffer(b"".join([group.blob for group in groups]), np.uint8)
        table = np.empty((len(groups), 3), np.int64)
        table[:, 1] = np.cumsum([len(group.blob) for group in groups])
        table[0, 0] = 0
        table[1:, 0] = table[:-1, 1]
        table[:, 2] = [group.records for group in groups]
        rows = int(table[:, 2].sum())
        numbers = np.empty((len(records.NUMBERS), rows), np.int64)
        places = np.empty((len(records.STRETCHES) + 1, rows), np.int64)
        lengths = np.empty_like(places)
        if not records.walk(blob, table, self._wanted, numbers, places, lengths):
            raise _Unusual
        first = groups[0].first_offset
        offsets = np.arange(first, first + rows, dtype=np.int64)
        asked = slice(max(0, span.first - first), max(0, span.last - first))
        return _Parts(blob, offsets, numbers, places, lengths).chosen(asked)

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
                return pa.array(parts.numbers[_NUMBER["received"]] // 1_000).view(field.type)
            case "topic" if field.name == "event":
                return _events(parts.stretches(_TOPIC, pa.string()), self._event_of)
            case "properties" if field.name == "properties":
                return _properties(parts)
            case "attributes":
                return _attributes(parts)
            case name if name in _NUMBER:
                return _numbers(parts.numbers[_NUMBER[name]], field.type)
            case name:
                return parts.stretches(_STRETCH[name], field.type)


def _by_topic(parts: _Parts, test: Callable[[str], bool]) -> NDArray[np.bool_]:
    """What a test says of the topic of each record."""
    coded = parts.stretches(_TOPIC, pa.string()).dictionary_encode()
    answers = np.fromiter(map(test, coded.dictionary.to_pylist()), np.bool_, len(coded.dictionary))
    chosen: NDArray[np.bool_] = answers[coded.indices.to_numpy()]
    return chosen


def _events(topics: pa.Array, event_of: Callable[[str], str | None]) -> pa.Array:
    coded = topics.dictionary_encode()
    names = pa.array([event_of(topic) for topic in coded.dictionary.to_pylist()], pa.string())
    return names.take(coded.indices)


def _numbers(values: Places, kind: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(kind):
        return pa.array(values.astype(np.bool_))
    # a number that does not fit is an error, as it is for the other way
    return pa.array(values).cast(kind)


def _copied(blob: Bytes, places: Places, lengths: Places, kind: pa.DataType) -> pa.Array:
    """Stretches of bytes as one column."""
    ends = np.zeros(places.size + 1, np.int32)
    data = np.empty(int(lengths.sum()), np.uint8)
    records.gather(blob, np.ascontiguousarray(places), np.ascontiguousarray(lengths), ends, data)
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
    row = _STRETCH["properties"]
    places, lengths = np.ascontiguousarray(parts.places[row]), np.ascontiguousarray(parts.lengths[row])
    counts = np.empty(places.size, np.int64)
    if not maps.count_users(parts.blob, places, lengths, counts):
        return columns.pairs([user_properties(each) for each in parts.stretches(row, pa.binary()).to_pylist()])
    keys, values = (np.empty((2, int(counts.sum())), np.int64) for _ in range(2))
    maps.users(parts.blob, places, lengths, keys, values)
    flat = [_copied(parts.blob, each[0], each[1], pa.string()) for each in (keys, values)]
    return pa.ListArray.from_arrays(_ends(counts), pa.StructArray.from_arrays(flat, fields=list(PAIR)))


def _attributes(parts: _Parts) -> pa.Array:
    places, counts = (np.ascontiguousarray(each[records.ATTRIBUTES]) for each in (parts.places, parts.lengths))
    total = int(counts.sum())
    keys, texts = (np.empty((2, total), np.int64) for _ in range(2))
    kinds, values = np.empty(total, np.uint8), np.empty(total, np.float64)
    if not maps.pairs(parts.blob, places, counts, keys, kinds, values, texts):
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
    return pa.MapArray.from_arrays(_ends(counts), names, items, mask=pa.array(places < 0))


def _only(texts: pa.Array, which: NDArray[np.bool_]) -> pa.Array:
    """Texts where there are some; the others are missing, not empty."""
    if which.all():
        return texts
    _nothing, ends, data = texts.buffers()
    valid = pa.array(which).buffers()[1]
    return pa.Array.from_buffers(texts.type, len(texts), [valid, ends, data])
