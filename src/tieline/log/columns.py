"""Records as Arrow columns: the schema on which readers of the log rely, and which a made-up log must have too.

Types are those that Spark, DuckDB and pandas take without a cast: no unsigned integers, dictionaries or fixed-size
binaries, which Spark's Python sources refuse.  The schemas only grow, at their end; ``VERSION`` says by how much.

What a message says (``attributes``) is a map from names to a number, a text or a flag, of which one is set.  A map of
one type cannot hold all three, and a JSON text would have to be parsed by every reader, row by row;
``attributes['voltage'].number`` is a column.  The detail of an event is JSON: its shape depends on the kind of event.

Needs pyarrow, which the broker does not: only programs that read or write logs import this.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

VERSION: Final = 1

TIME: Final = pa.timestamp("us", tz="UTC")


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


PAIR: Final = pa.struct([_required("key", pa.string()), _required("value", pa.string())])
VALUE: Final = pa.struct([("number", pa.float64()), ("text", pa.string()), ("flag", pa.bool_())])

LOG: Final = pa.schema(
    [
        _required("offset", pa.int64()),
        _required("received", TIME),
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
        _required("properties", pa.list_(PAIR)),
        _required("raw_properties", pa.binary()),
        _required("digest", pa.binary()),
        pa.field("event", pa.string()),
        pa.field("attributes", pa.map_(pa.string(), VALUE)),
    ]
)
EVENTS: Final = pa.schema(
    [
        _required("offset", pa.int64()),
        _required("time", TIME),
        _required("time_ns", pa.int64()),
        _required("kind", pa.string()),
        _required("client", pa.string()),
        _required("topic", pa.string()),
        _required("detail", pa.string()),
    ]
)

#: The broker's name, which tells the logs of several brokers apart once they are in one place.
SHARD: Final = _required("shard", pa.string())
