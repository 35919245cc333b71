"""What a row keeps of its record: the columns of ours, or the whole record where it could not be read."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tieline.pipeline.decode import sequence
from tieline.pipeline.lake.columns import OURS, RECORD
from tieline.wire.properties import user_properties

#: The columns of a record that decoding needs.  Spark converts what it is asked for row by row, so the nested ones,
#: which the raw properties and the payload repeat, are not asked for.
NEEDED: Final = tuple(name for name in RECORD.names if name not in ("properties", "event"))


def ours(records: pa.Table, time: pa.Array | None = None) -> pa.Table:
    """Our columns of some records; event time is the given one, or when the record was received."""
    received = records["received"].combine_chunks()
    if time is None or not pa.types.is_timestamp(time.type):
        time = received
    columns = {
        "_offset": records["offset"],
        "_shard": records["shard"],
        "_received": received,
        "_time": pc.coalesce(time, received),
        "_topic": records["topic"],
        "_publisher": records["publisher"],
        "_level": records["level"].cast(pa.int32()),
        "_class": records["class"],
        "_qos": records["qos"].cast(pa.int32()),
        "_seq": sequence.texts(records["raw_properties"].combine_chunks()),
        "_hilbert": pa.nulls(len(records), pa.int64()),
    }
    return pa.table(columns, schema=OURS)


def quarantined(records: pa.Table, event: str, reasons: list[str]) -> pa.Table:
    """Whole records, with why each is none of its event type."""
    return whole(records, [event] * len(records)).append_column("reason", pa.array(reasons, pa.string()))


def duplicated(
    records: pa.Table, names: list[str | None], reasons: list[str], first_offsets: list[int | None]
) -> pa.Table:
    """Whole records, with how it is known that each repeats another, and which one if that is known."""
    found = whole(records, names).append_column("reason", pa.array(reasons, pa.string()))
    return found.append_column("first_offset", pa.array(first_offsets, pa.int64()))


def whole(records: pa.Table, names: list[str | None] | list[str]) -> pa.Table:
    """All columns of some records but the map of attributes, as tables keep them."""
    pairs = [user_properties(block) for block in records["raw_properties"].to_pylist()]
    derived = {
        "properties": pa.array(
            [[{"key": key, "value": value} for key, value in each] for each in pairs], RECORD.field("properties").type
        ),
        "event": pa.array(names, pa.string()),
    }
    return pa.table({name: derived[name] if name in derived else records[name] for name in RECORD.names}, schema=RECORD)
