"""The columns of the tables: ours, which begin with an underscore, and one for each attribute ever declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from tieline.conf.schema import Attribute, AttributeKind
from tieline.log.columns import LOG, SHARD
from tieline.pipeline.lake.layout import DUPLICATES, OTHER, QUARANTINE, Changed, Table

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

TIME: Final = pa.timestamp("us", tz="UTC")

#: What every table of events has.
OURS: Final = pa.schema(
    [
        ("_offset", pa.int64()),
        ("_shard", pa.string()),
        ("_received", TIME),
        ("_time", TIME),
        ("_topic", pa.string()),
        ("_publisher", pa.string()),
        ("_level", pa.int32()),
        ("_class", pa.string()),
        ("_qos", pa.int32()),
        ("_seq", pa.string()),
        ("_hilbert", pa.int64()),
    ]
)
#: What the event type of undeclared topics has besides.
PAYLOAD: Final = pa.field("_payload", pa.binary())
#: Where a row is: in the names of directories, not in the files; Delta tables have the batch in the files.
DAY: Final = pa.field("day", pa.date32())
BATCH: Final = pa.field("batch", pa.int64())
PARTITIONS: Final = pa.schema([DAY, BATCH])

_OF_KIND: Final[Mapping[AttributeKind, pa.DataType]] = {
    "number": pa.float64(),
    "integer": pa.int64(),
    "category": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": TIME,
}

#: The map of attributes says what the payload says: it is left out of the tables that keep whole records.
RECORD: Final = pa.schema([field.with_nullable(True) for field in (*LOG, SHARD) if field.name != "attributes"])
_QUARANTINE: Final = RECORD.append(pa.field("reason", pa.string()))
_DUPLICATES: Final = RECORD.append(pa.field("reason", pa.string())).append(pa.field("first_offset", pa.int64()))

_RESERVED: Final = frozenset(name.lower() for name in (*OURS.names, PAYLOAD.name, *PARTITIONS.names))


def of_kind(kind: AttributeKind) -> pa.DataType:
    """The type of a column that holds attributes of a kind."""
    return _OF_KIND[kind]


def arrow_schema(table: Table, attributes: Mapping[str, AttributeKind]) -> pa.Schema:
    """The columns in the files of a table; ``attributes`` are those of its event type, in the order of appearance."""
    if table.parts == (QUARANTINE,):
        return _QUARANTINE
    if table.parts == (DUPLICATES,):
        return _DUPLICATES
    if table.event_type == OTHER:
        return OURS.append(PAYLOAD)
    return pa.schema([*OURS, *(pa.field(name, of_kind(kind)) for name, kind in attributes.items())])


def spark_schema(files: pa.Schema) -> StructType:
    """The same for Spark, with the columns that directories stand for."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(pa.schema([*files, *PARTITIONS]))


def check_names(event_type: str, attributes: Iterable[Attribute]) -> None:
    """Refuse attributes that would be two columns of one name; Spark does not tell capitals from small letters."""
    if event_type.lower() == OTHER:
        raise Changed(
            f"an event type may not be called {event_type}: the table {OTHER} holds the messages that have no event "
            "type."
        )
    seen: dict[str, str] = {}
    for each in attributes:
        lower = each.name.lower()
        if lower in _RESERVED:
            raise Changed(
                f"event type {event_type} has an attribute {each.name}, which is the name of another column: give it "
                "another name; path says what the payload calls it."
            )
        if lower in seen:
            raise Changed(
                f"event type {event_type} has the attributes {seen[lower]} and {each.name}, which differ in capitals "
                "only: tables cannot tell them apart."
            )
        seen[lower] = each.name
