"""What ``spark.readStream`` with ``format("mqtt")`` takes and gives: its options and its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tieline.pipeline.broker import NAMES as BROKER_NAMES
from tieline.pipeline.broker import BrokerAddress, read_broker
from tieline.pipeline.options import Given, OptionError
from tieline.wire.errors import Violation
from tieline.wire.topics import check_filter


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


NAMES: Final = (
    *BROKER_NAMES, "topics", "spool", "qos", "version", "clientId", "sessionExpiry", "receiveMaximum",
    "maxRowsPerTrigger", "spoolRows", "patience",
)  # fmt: skip
_MOST_LEVELS: Final = 65_535
_WEEK_S: Final = 604_800


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignOptions:
    """What a reader is asked to do."""

    broker: BrokerAddress
    topics: tuple[str, ...]
    #: The directory of the spool, which has to survive as long as the query's checkpoint.
    spool: Path
    qos: int
    is_version_5: bool
    #: None for one that follows from the spool.
    client_id: str | None
    session_expiry_s: int
    #: Messages that the broker sends before it wants an acknowledgement.
    receive_maximum: int
    max_rows: int
    #: Messages in the spool at which nothing more is taken from the broker.
    spool_rows: int
    patience_s: float


def read_options(options: Mapping[str, str]) -> ForeignOptions:
    """Take options apart; raises :class:`OptionError`."""
    given = Given("mqtt", NAMES, options)
    topics, spool = given.listed("topics"), given.text("spool")
    if not topics:
        raise OptionError('the option topics is missing: .option("topics", "plant/#"), several with commas')
    for topic in topics:
        try:
            check_filter(topic, _MOST_LEVELS)
        except Violation as problem:
            raise OptionError(f'topics = "{topic}" is refused: {problem}') from None
    if spool is None or not Path(spool).is_absolute():
        raise OptionError(
            "the option spool is missing: a directory with its whole path, on the driver's machine, that stays as "
            "long as the checkpoint does"
        )
    return ForeignOptions(
        broker=read_broker(given),
        topics=topics,
        spool=Path(spool),
        qos=int(given.one_of("qos", "1", "0")),
        is_version_5=given.one_of("version", "5", "3.1.1") == "5",
        client_id=given.text("clientId"),
        session_expiry_s=min(given.count("sessionExpiry", _WEEK_S), 2**32 - 1),
        receive_maximum=min(given.count("receiveMaximum", 10_000), 65_535),
        max_rows=given.count("maxRowsPerTrigger", 50_000),
        spool_rows=given.count("spoolRows", 10_000_000),
        patience_s=given.seconds("patience", 60.0),
    )
