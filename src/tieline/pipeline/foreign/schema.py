"""The columns that ``format("mqtt")`` gives, in Arrow and, derived from that, in Spark's words."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


MQTT_ARROW: Final = pa.schema(
    [
        _required("offset", pa.int64()),
        _required("received", pa.timestamp("us", tz="UTC")),
        _required("topic", pa.string()),
        _required("payload", pa.binary()),
        _required("qos", pa.int8()),
        _required("retain", pa.bool_()),
        _required("dup", pa.bool_()),
        _required("properties", pa.list_(pa.struct([_required("key", pa.string()), _required("value", pa.string())]))),
    ]
)
MQTT: Final[StructType] = from_arrow_schema(MQTT_ARROW)
