"""Who sends what to whom, and how much: the demand matrix of brokers, from their traffic records."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from tieline.core.durable.chronicle import OTHERS
from tieline.pipeline.jobs.deliveries import named

#: A row of the matrix is one of these.
KEYS: Final = ("shard", "publisher", "topic", "subscriber", "level", "class")


def demand(traffic: DataFrame) -> DataFrame:
    """One row for each publisher, topic, subscriber and class at a broker, with its rates; in a fixed order.

    ``traffic`` is what :func:`tieline.pipeline.jobs.deliveries.deliveries` makes.  Rates are over the time that the
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
