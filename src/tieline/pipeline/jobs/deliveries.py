"""What a broker told about its deliveries: the traffic records of the stream ``events``, as columns.

A record sums what one subscriber was sent of one publisher's topic, in one class, during one period.  Its waiting times
are a histogram: how many messages waited less than 2^n milliseconds, and not less than half of that.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.core.account import WAIT_BUCKETS
from tieline.core.durable.chronicle import OTHERS

#: Upper ends of the buckets of waiting times in milliseconds.  The last bucket has none: it holds everything else.
EDGES_MS: Final = tuple(1 << bucket for bucket in range(WAIT_BUCKETS))

_DETAIL: Final = (
    "since BIGINT, publisher STRING, class STRING, level INT, count BIGINT, bytes BIGINT, waits_ms MAP<STRING, BIGINT>"
)


def deliveries(events: DataFrame) -> DataFrame:
    """One row for each traffic record; streaming or not.

    Columns: shard, since, until (the period), publisher, topic, subscriber, level, class, messages, bytes, waits (an
    array with one count for each of :data:`EDGES_MS`).
    """
    # The broker wrote the text itself, so one that cannot be read is damage and no row to pass over.
    detail = sql.from_json("detail", _DETAIL, {"mode": "FAILFAST"})
    told = events.where(sql.col("kind") == "traffic").withColumn("_", detail)
    return told.select(
        "shard",
        sql.timestamp_micros(sql.expr("_.since div 1000")).alias("since"),
        sql.col("time").alias("until"),
        _told("publisher").alias("publisher"),
        "topic",
        sql.col("client").alias("subscriber"),
        _told("level").alias("level"),
        _told("class").alias("class"),
        _told("count").alias("messages"),
        _told("bytes").alias("bytes"),
        sql.array(*(_waited(edge) for edge in EDGES_MS)).alias("waits"),
    )


def named(traffic: DataFrame) -> DataFrame:
    """Only what names its clients and its topic, and is no message of the broker about itself."""
    return traffic.where((sql.col("topic") != OTHERS) & ~sql.col("topic").startswith("$"))


def _told(field: str) -> Column:
    return sql.col("_").getField(field)


def _waited(edge_ms: int) -> Column:
    return sql.coalesce(_told("waits_ms").getItem(str(edge_ms)), sql.lit(0))
