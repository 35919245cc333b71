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

_SUMS: Final = "since BIGINT, broker STRING, class STRING, level INT, count BIGINT, bytes BIGINT"
_DETAIL: Final = f"{_SUMS}, publisher STRING, waits_ms MAP<STRING, BIGINT>"
_CARRIED: Final = f"{_SUMS}, ages_ms MAP<STRING, BIGINT>, hops MAP<STRING, BIGINT>"


def deliveries(events: DataFrame) -> DataFrame:
    """One row for each traffic record; streaming or not.

    Columns: shard (the broker that delivered), origin (the one that had accepted the messages), since, until (the
    period), publisher, topic, subscriber, level, class, messages, bytes, waits (an array with one count for each of
    :data:`EDGES_MS`; of the wait at the broker that delivered).
    """
    # The broker wrote the text itself, so one that cannot be read is damage and no row to pass over.
    detail = sql.from_json("detail", _DETAIL, {"mode": "FAILFAST"})
    told = events.where(sql.col("kind") == "traffic").withColumn("_", detail)
    return told.select(
        "shard",
        # it is said where it is another one
        sql.coalesce(_told("broker"), sql.col("shard")).alias("origin"),
        sql.timestamp_micros(sql.expr("_.since div 1000")).alias("since"),
        sql.col("time").alias("until"),
        _told("publisher").alias("publisher"),
        "topic",
        sql.col("client").alias("subscriber"),
        _told("level").alias("level"),
        _told("class").alias("class"),
        _told("count").alias("messages"),
        _told("bytes").alias("bytes"),
        _histogram("waits_ms"),
    )


def carried(events: DataFrame) -> DataFrame:
    """One row for each broker, level and period of what came from another broker: the columns of :func:`deliveries`.

    Nobody in particular published or received it, and messages are parcels: what left another broker together.
    ``waits`` are the times for which brokers on the way had it, the wires between them not counted; ``links`` is the
    sum of the links that each came over, from where it was parked last if it was.
    """
    detail = sql.from_json("detail", _CARRIED, {"mode": "FAILFAST"})
    told = events.where(sql.col("kind") == "carried").withColumn("_", detail)
    hops = sql.map_entries(_told("hops"))
    links = sql.aggregate(
        hops, sql.lit(0).cast("long"), lambda so_far, hop: so_far + hop["key"].cast("long") * hop["value"]
    )
    return told.select(
        "shard",
        _told("broker").alias("origin"),
        sql.timestamp_micros(sql.expr("_.since div 1000")).alias("since"),
        sql.col("time").alias("until"),
        sql.lit("").alias("publisher"),
        sql.lit("#").alias("topic"),
        sql.lit("").alias("subscriber"),
        _told("level").alias("level"),
        _told("class").alias("class"),
        _told("count").alias("messages"),
        _told("bytes").alias("bytes"),
        _histogram("ages_ms"),
        links.alias("links"),
    )


def named(traffic: DataFrame) -> DataFrame:
    """Only what names its clients and its topic, and is no message of the broker about itself."""
    return traffic.where((sql.col("topic") != OTHERS) & ~sql.col("topic").startswith("$"))


def _told(field: str) -> Column:
    return sql.col("_").getField(field)


def _histogram(field: str) -> Column:
    """How much took how long, as an array with one count for each of the edges."""
    counts = (sql.coalesce(_told(field).getItem(str(edge)), sql.lit(0)) for edge in EDGES_MS)
    return sql.array(*counts).alias("waits")


#: A row of the matrix is one of these.
KEYS: Final = ("shard", "origin", "publisher", "topic", "subscriber", "level", "class")


def demand_matrix(traffic: DataFrame) -> DataFrame:
    """One row for each publisher, topic, subscriber and class at two brokers, with its rates; in a fixed order.

    Those are the broker that delivered and the one that had accepted the messages, which may be the same.

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
