"""Who sends what to whom, and how much: what brokers told about their deliveries, and the demand matrix made of it.

A traffic record of the stream ``events`` sums what one subscriber was sent of one publisher's topic, in one class,
during one period.  Its waiting times are a histogram: how many messages waited less than 2^n milliseconds, and not less
than half of that.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
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


#: A row of the matrix is one of these.
KEYS: Final = ("shard", "publisher", "topic", "subscriber", "level", "class")


def demand_matrix(traffic: DataFrame) -> DataFrame:
    """One row for each publisher, topic, subscriber and class at a broker, with its rates; in a fixed order.

    ``traffic`` is what :func:`tieline.pipeline.jobs.traffic.deliveries` makes.  Rates are over the time that the
    broker's records span: a topic that was silent for half of it has half the rate.
    """
    span = Window.partitionBy("shard")
    first, last = sql.unix_micros(sql.min("since").over(span)), sql.unix_micros(sql.max("until").over(span))
    timed = traffic.withColumn("seconds", (last - first) / 1e6)
    summed = (
        named(timed)
        .groupBy(*KEYS)
        .agg(
            sql.sum("messages").alias("messages"),
            sql.sum("bytes").alias("bytes"),
            sql.first("seconds").alias("seconds"),
        )
    )
    return summed.select(
        *KEYS,
        "messages",
        "bytes",
        "seconds",
        (sql.col("messages") / sql.col("seconds")).alias("messages_per_s"),
        (sql.col("bytes") / sql.col("seconds")).alias("bytes_per_s"),
    ).orderBy(*KEYS)


def unnamed_share(traffic: DataFrame) -> float:
    """The part of all deliveries that brokers had no room to name, and that the matrix therefore lacks."""
    is_named = sql.col("topic") != OTHERS
    row = traffic.agg(
        sql.sum("messages").alias("all"), sql.sum(sql.when(is_named, sql.col("messages"))).alias("named")
    ).first()
    if row is None or not row["all"]:
        return 0.0
    return 1.0 - float(row["named"] or 0) / float(row["all"])


def homes(events: DataFrame) -> DataFrame:
    """At which broker each client connected last: client, shard."""
    connected = events.where(sql.col("kind") == "connect").groupBy("client")
    return connected.agg(sql.max_by("shard", sql.struct("time", "shard")).alias("shard"))
