"""What ``df.write`` and ``df.writeStream`` take with our formats, ``tieline`` and ``mqtt``: options and columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import BinaryType, BooleanType, DataType, IntegralType, StringType, StructType

from tieline.pipeline.broker import NAMES as BROKER_NAMES
from tieline.pipeline.broker import BrokerAddress, read_broker
from tieline.pipeline.options import Given, OptionError
from tieline.pipeline.sink.publisher import WINDOW

NAMES: Final = (*BROKER_NAMES, "producer", "window", "patience")
_PRODUCER: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
#: How long a broker may be away, or acknowledge nothing.
_PATIENCE_S: Final = 60.0

_COLUMNS: Final[dict[str, tuple[type[DataType], ...]]] = {
    "topic": (StringType,),
    "payload": (BinaryType, StringType),
    "qos": (IntegralType,),
    "retain": (BooleanType,),
    "level": (IntegralType,),
    "order": (IntegralType,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """What a writer is asked to do."""

    broker: BrokerAddress
    #: The name under which a batch write numbers its messages; None for one that was never used before.
    producer: str | None
    window: int
    patience_s: float


def read_options(format_name: str, options: Mapping[str, str]) -> SinkOptions:
    """Take options apart; raises :class:`OptionError`."""
    given = Given(format_name, NAMES, options)
    producer = given.text("producer")
    if producer is not None and not _PRODUCER.fullmatch(producer):
        raise OptionError(f'producer = "{producer}" is refused: it has 1 to 64 letters, digits, dots, dashes')
    return SinkOptions(
        broker=read_broker(given),
        producer=producer,
        window=min(given.count("window", WINDOW), 65_535),
        patience_s=given.seconds("patience", _PATIENCE_S),
    )


def check_columns(format_name: str, schema: StructType) -> None:
    """Refuse a data frame that is not made of messages."""
    for name in ("topic", "payload"):
        if name not in schema.fieldNames():
            raise OptionError(
                f'format("{format_name}") publishes rows with topic and payload: there is no column {name}'
            )
    for field in schema.fields:
        if field.name not in _COLUMNS:
            raise OptionError(
                f'format("{format_name}") does not know the column "{field.name}": it takes {", ".join(_COLUMNS)}; '
                "put values into the payload, as in to_json(struct(...))"
            )
        if not isinstance(field.dataType, _COLUMNS[field.name]):
            raise OptionError(f"the column {field.name} cannot be {field.dataType.simpleString()}")


def sink_options(format_name: str, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> SinkOptions:
    """The options of a writer for these columns; raises :class:`OptionError`."""
    if overwrite:
        raise OptionError('what was published cannot be overwritten: use .mode("append")')
    check_columns(format_name, schema)
    return read_options(format_name, options)
