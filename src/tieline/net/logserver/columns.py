"""Records as Arrow columns: how each column of the schemas in :mod:`tieline.log.columns` is filled."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, Final  # Any: the stream decides what its records are

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tieline.log.columns import EVENTS, LOG, PAIR, TIME, VALUE
from tieline.log.record import Occurrence, Record
from tieline.net.logserver.question import Stream, Unanswerable
from tieline.wire.properties import user_properties

SCHEMAS: Final[dict[Stream, pa.Schema]] = {"log": LOG, "events": EVENTS}


def schema_of(stream: Stream, columns: Sequence[str] | None) -> pa.Schema:
    """The schema of an answer; refuses columns that the stream does not have."""
    whole = SCHEMAS[stream]
    if columns is None:
        return whole
    if not columns or len(set(columns)) < len(columns):
        raise Unanswerable("columns", "columns is refused: it takes at least one name, and each of them once")
    for name in columns:
        if name not in whole.names:
            known = ", ".join(whole.names)
            raise Unanswerable("columns", f'columns is refused: {stream} has no column "{name}"; it has {known}')
    return pa.schema([whole.field(name) for name in columns])


#: Columns that are made of a field with another name.
FIELDS: Final = {
    "class": "class_",
    "received_ns": "received",
    "raw_properties": "properties",
    "event": "topic",
    "time_ns": "time",
}

#: Values of attributes that are no numbers.  A log holds these types and none derived from them, so that a look at the
#: type is enough; ``isinstance`` takes several times as long.
_NO_NUMBERS: Final = frozenset({str, bool})

#: The name of the event type of a topic.
EventOf = Callable[[str], str | None]


def fields_of(schema: pa.Schema) -> set[str]:
    """The fields that records must have to become these columns; offsets are not kept in them."""
    return {FIELDS.get(name, name) for name in schema.names} - {"offset"}


def log_batch(
    records: Sequence[Record], schema: pa.Schema, event_of: EventOf, offsets: Sequence[int] | None = None
) -> pa.RecordBatch:
    """Messages as columns; their offsets are the given ones, or those that they know themselves."""
    made = [_log_column(field, records, event_of, offsets) for field in schema]
    return pa.RecordBatch.from_arrays(made, schema=schema)


def events_batch(
    occurrences: Sequence[Occurrence], schema: pa.Schema, offsets: Sequence[int] | None = None
) -> pa.RecordBatch:
    """Events of the broker as columns; their offsets are the given ones, or those that they know themselves."""
    made = [_events_column(field, occurrences, offsets) for field in schema]
    return pa.RecordBatch.from_arrays(made, schema=schema)


def _log_column(
    field: pa.Field, records: Sequence[Record], event_of: EventOf, offsets: Sequence[int] | None
) -> pa.Array:
    match field.name:
        case "offset" if offsets is not None:
            return pa.array(offsets, field.type)
        case "received":
            return _times(_each("received", records))
        case "properties":
            return pairs([user_properties(block) for block in _each("properties", records)])
        case "event":
            topics = _each("topic", records)
            names = {topic: event_of(topic) for topic in set(topics)}
            return pa.array(list(map(names.__getitem__, topics)), field.type)
        case "attributes":
            return attributes(_each("attributes", records))
        case name:
            return pa.array(_each(FIELDS.get(name, name), records), field.type)


def _events_column(field: pa.Field, occurrences: Sequence[Occurrence], offsets: Sequence[int] | None) -> pa.Array:
    match field.name:
        case "offset" if offsets is not None:
            return pa.array(offsets, field.type)
        case "time":
            return _times(_each("time", occurrences))
        case "detail":
            return pa.array([msgspec.json.encode(each).decode() for each in _each("detail", occurrences)], field.type)
        case name:
            return pa.array(_each(FIELDS.get(name, name), occurrences), field.type)


def _each(name: str, records: Sequence[object]) -> list[Any]:
    return list(map(attrgetter(name), records))


def _times(nanoseconds: list[int]) -> pa.Array:
    return pc.divide(pa.array(nanoseconds, pa.int64()), 1_000).cast(TIME)


# Nested columns are built from flat ones: a Python object per value and row would cost more than all others together.


def pairs(lists: Sequence[list[tuple[str, str]]]) -> pa.Array:
    """A list of names and texts in each row."""
    found = list(chain.from_iterable(lists))
    keys = pa.array([key for key, _value in found], pa.string())
    values = pa.array([value for _key, value in found], pa.string())
    flat = pa.StructArray.from_arrays([keys, values], fields=list(PAIR))
    return pa.ListArray.from_arrays(_ends(lists), flat)


def attributes(maps: Sequence[dict[str, Any] | None]) -> pa.Array:
    """A map of names to numbers, texts or flags in each row, or none."""
    values = list(chain.from_iterable(each.values() for each in maps if each))
    kinds = set(map(type, values))
    items = pa.StructArray.from_arrays(
        [
            pa.array([None if type(each) in _NO_NUMBERS else float(each) for each in values], pa.float64()),
            _only(str, values, kinds, pa.string()),
            _only(bool, values, kinds, pa.bool_()),
        ],
        fields=list(VALUE),
    )
    keys = pa.array(list(chain.from_iterable(each for each in maps if each)), pa.string())
    missing = pa.array([each is None for each in maps], pa.bool_())
    return pa.MapArray.from_arrays(_ends(maps), keys, items, mask=missing)


def _only(kind: type, values: Sequence[object], kinds: set[type], made: pa.DataType) -> pa.Array:
    """The values of one kind, among others."""
    if kind not in kinds:
        return pa.nulls(len(values), made)
    return pa.array([each if type(each) is kind else None for each in values], made)


def _ends(rows: Sequence[Sized | None]) -> pa.Array:
    """Where the values of each row end in the flat column."""
    return pa.array(list(accumulate((len(row) if row else 0 for row in rows), initial=0)), pa.int32())
