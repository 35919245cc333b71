"""What a broker writes down, as the tables that jobs read: the broker's own code all the way, without a disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tieline.conf.schema import Settings
from tieline.log.record import Occurrence, Record
from tieline.match.events import Events
from tieline.net.logserver.columns import SCHEMAS, events_batch, log_batch
from tieline.pipeline.source.options import EVENTS_ARROW, LOG_ARROW

#: When the tests' tables begin: the begin of a minute, an hour and a day.
START = datetime(2026, 3, 2, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """A moment so long after the start."""
    return START + timedelta(seconds=seconds)


def log_table(records: Sequence[Record], settings: Settings | None = None, shard: str = "a") -> pa.Table:
    """Messages as the log server gives them, with their broker's name."""
    events = Events(settings or Settings())
    numbered = [msgspec.structs.replace(each, offset=number) for number, each in enumerate(records)]
    return _with_shard(log_batch(numbered, SCHEMAS["log"], lambda topic: events.of(topic).name), shard, LOG_ARROW)


def events_table(occurrences: Sequence[Occurrence], shard: str = "a") -> pa.Table:
    """Events of a broker as the log server gives them, with its name."""
    numbered = [msgspec.structs.replace(each, offset=number) for number, each in enumerate(occurrences)]
    return _with_shard(events_batch(numbered, SCHEMAS["events"]), shard, EVENTS_ARROW)


def frame(spark: SparkSession, *tables: pa.Table) -> DataFrame:
    """Tables as one DataFrame."""
    return spark.createDataFrame(pa.concat_tables(tables))


def traffic(
    until_s: float,
    publisher: str,
    topic: str,
    subscriber: str,
    waits_ms: dict[int, int],
    *,
    level: int = 1,
    class_: str = "normal",
    size: int = 100,
    period_s: float = 10.0,
    broker: str = "",
) -> Occurrence:
    """A traffic record as a broker writes it; ``waits_ms`` is by bucket, and says how many messages there were.

    ``broker`` is the one that had accepted them, if it is another one.
    """
    messages = sum(waits_ms.values())
    detail = {
        "since": _nanoseconds(until_s - period_s),
        "publisher": publisher,
        "class": class_,
        "level": level,
        "count": messages,
        "bytes": messages * size,
        "waits_ms": waits_ms,
    }
    if broker:
        detail["broker"] = broker
    return Occurrence(_nanoseconds(until_s), "traffic", subscriber, topic, detail)


def stream(spark: SparkSession, directory: Path, batches: Iterable[pa.Table]) -> DataFrame:
    """Tables as a stream of which each is one batch, in their order: watermarks move on between batches."""
    for number, table in enumerate(batches):
        file = directory / f"{number}.parquet"
        pq.write_table(table, file)
        # files are taken in the order of their age
        os.utime(file, (1_000_000 + number, 1_000_000 + number))
    schema = spark.read.parquet(str(directory)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory))


def emitted(found: DataFrame) -> list[dict[str, Any]]:
    """What a streaming job tells once and for all, until its input ends."""
    told: list[dict[str, Any]] = []

    def take(batch: DataFrame, _number: int) -> None:
        told.extend(rows(batch))

    query = found.writeStream.outputMode("append").trigger(availableNow=True).foreachBatch(take).start()
    query.awaitTermination()
    return told


def rows(found: DataFrame) -> list[dict[str, Any]]:
    """What a job found, as dictionaries; times have their zone."""
    return [_zoned(row.asDict(recursive=True)) for row in found.collect()]


def _zoned(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _zoned(inner) for name, inner in value.items()}
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def _nanoseconds(seconds: float) -> int:
    return int((START.timestamp() + seconds) * 1e9)


def _with_shard(batch: pa.RecordBatch, shard: str, schema: pa.Schema) -> pa.Table:
    table = pa.Table.from_batches([batch])
    return table.append_column("shard", pa.array([shard] * len(table), pa.string())).cast(schema)
