"""Records as Arrow columns: the schema that readers rely on, and how each column is filled.

Types are those that Spark, DuckDB and pandas take without a cast: no unsigned integers, dictionaries or fixed-size
binaries, which Spark's Python sources refuse.  The schema only grows, at its end; ``VERSION`` says by how much.

What a message says (``attributes``) is a map from names to a number, a text or a flag, of which one is set.  A map of
one type cannot hold all three, and a JSON text would have to be parsed by every reader, row by row;
``attributes['voltage'].number`` is a column.  The detail of an event is JSON: its shape depends on the kind of event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tieline.core.record import Occurrence, Record
from tieline.net.logserver.properties import user_properties
from tieline.net.logserver.question import Stream, Unanswerable

VERSION: Final = 1

_TIME: Final = pa.timestamp("us", tz="UTC")
_PAIR: Final = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string(), nullable=False)])
_VALUE: Final = pa.struct([("number", pa.float64()), ("text", pa.string()), ("flag", pa.bool_())])


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


SCHEMAS: Final[dict[Stream, pa.Schema]] = {
    "log": pa.schema(
        [
            _required("offset", pa.int64()),
            _required("received", _TIME),
            _required("received_ns", pa.int64()),
            _required("publisher", pa.string()),
            _required("epoch", pa.int64()),
            _required("packet_id", pa.int32()),
            _required("dup", pa.bool_()),
            _required("qos", pa.int8()),
            _required("retain", pa.bool_()),
            _required("level", pa.int8()),
            _required("class", pa.string()),
            _required("topic", pa.string()),
            _required("payload", pa.binary()),
            _required("properties", pa.list_(_PAIR)),
            _required("raw_properties", pa.binary()),
            _required("digest", pa.binary()),
            pa.field("event", pa.string()),
            pa.field("attributes", pa.map_(pa.string(), _VALUE)),
        ]
    ),
    "events": pa.schema(
        [
            _required("offset", pa.int64()),
            _required("time", _TIME),
            _required("time_ns", pa.int64()),
            _required("kind", pa.string()),
            _required("client", pa.string()),
            _required("topic", pa.string()),
            _required("detail", pa.string()),
        ]
    ),
}


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


#: Columns whose field is called otherwise.
_FIELDS: Final = {"class": "class_", "received_ns": "received", "raw_properties": "properties", "time_ns": "time"}

#: The name of the event type of a topic.
EventOf = Callable[[str], str | None]


def log_batch(records: Sequence[Record], schema: pa.Schema, event_of: EventOf) -> pa.RecordBatch:
    """Messages as columns."""
    return pa.RecordBatch.from_arrays([_log_column(field, records, event_of) for field in schema], schema=schema)


def events_batch(occurrences: Sequence[Occurrence], schema: pa.Schema) -> pa.RecordBatch:
    """Events of the broker as columns."""
    return pa.RecordBatch.from_arrays([_events_column(field, occurrences) for field in schema], schema=schema)


def _log_column(field: pa.Field, records: Sequence[Record], event_of: EventOf) -> pa.Array:
    match field.name:
        case "received":
            return _times(_each("received", records))
        case "properties":
            return _pairs([user_properties(block) for block in _each("properties", records)])
        case "event":
            return pa.array([event_of(topic) for topic in _each("topic", records)], field.type)
        case "attributes":
            return _attributes(_each("attributes", records))
        case name:
            return pa.array(_each(_FIELDS.get(name, name), records), field.type)


def _events_column(field: pa.Field, occurrences: Sequence[Occurrence]) -> pa.Array:
    match field.name:
        case "time":
            return _times(_each("time", occurrences))
        case "detail":
            return pa.array([msgspec.json.encode(each).decode() for each in _each("detail", occurrences)], field.type)
        case name:
            return pa.array(_each(_FIELDS.get(name, name), occurrences), field.type)


def _each(name: str, records: Sequence[object]) -> list[Any]:
    return list(map(attrgetter(name), records))


def _times(nanoseconds: list[int]) -> pa.Array:
    return pc.divide(pa.array(nanoseconds, pa.int64()), 1_000).cast(_TIME)


# Nested columns are built from flat ones: a Python object per value and row would cost more than all others together.


def _pairs(lists: Sequence[list[tuple[str, str]]]) -> pa.Array:
    pairs = list(chain.from_iterable(lists))
    keys = pa.array([key for key, _value in pairs], pa.string())
    values = pa.array([value for _key, value in pairs], pa.string())
    flat = pa.StructArray.from_arrays([keys, values], fields=list(_PAIR))
    return pa.ListArray.from_arrays(_ends(lists), flat)


def _attributes(maps: Sequence[dict[str, Any] | None]) -> pa.Array:
    values = list(chain.from_iterable(each.values() for each in maps if each))
    items = pa.StructArray.from_arrays(
        [
            pa.array([None if isinstance(each, bool | str) else float(each) for each in values], pa.float64()),
            pa.array([each if isinstance(each, str) else None for each in values], pa.string()),
            pa.array([each if isinstance(each, bool) else None for each in values], pa.bool_()),
        ],
        fields=list(_VALUE),
    )
    keys = pa.array(list(chain.from_iterable(each for each in maps if each)), pa.string())
    missing = pa.array([each is None for each in maps], pa.bool_())
    return pa.MapArray.from_arrays(_ends(maps), keys, items, mask=missing)


def _ends(rows: Sequence[Sized | None]) -> pa.Array:
    """Where the values of each row end in the flat column."""
    return pa.array(list(accumulate((len(row) if row else 0 for row in rows), initial=0)), pa.int32())
