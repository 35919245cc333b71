"""How hot topics are, over sliding windows: from what brokers delivered, and from what was published.

Theory of operation
-------------------
The broker's own heat is the number of clients that a topic reaches at the moment.  A window sees more: who was really
sent something, how often, and what is published although nobody reads it yet.  Both inputs become rows of one shape
(*activity*), so that one aggregation serves either or their union, and with a watermark the same code runs as a stream:
a window is told once, when nothing that belongs to it can come any more; what comes later than that is left out.

A traffic record belongs to the windows that its period's end lies in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.traffic import named


class NoWindow(ValueError):
    """Windows that cannot be meant; the text is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What counts how much in a topic's heat."""

    #: Of each client that was sent a message of the topic in the window.
    subscribers: float = 1.0
    #: Of one delivery per second, and of one publish per second.
    deliveries: float = 1.0
    publishes: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Which stretches of time are looked at."""

    length_s: int = 300
    #: From the begin of one window to the begin of the next.
    slide_s: int = 60
    #: Streaming: how late a row may be.
    late_s: int = 60

    def __post_init__(self) -> None:
        if self.slide_s <= 0 or self.length_s <= 0 or self.length_s % self.slide_s:
            raise NoWindow(
                f"windows of {self.length_s} s cannot begin every {self.slide_s} s: the length is a multiple of that."
            )


def from_deliveries(traffic: DataFrame) -> DataFrame:
    """Activity from what :func:`tieline.pipeline.jobs.traffic.deliveries` makes."""
    return named(traffic).select(
        "topic",
        sql.col("until").alias("time"),
        "subscriber",
        "shard",
        sql.col("messages").alias("deliveries"),
        sql.lit(0).cast("long").alias("publishes"),
    )


def from_messages(messages: DataFrame, *, topic: str = "topic", time: str = "received") -> DataFrame:
    """Activity from messages, one row each: of the log, or of a table of the lake."""
    return messages.where(~sql.col(topic).startswith("$")).select(
        sql.col(topic).alias("topic"),
        sql.col(time).alias("time"),
        sql.lit(None).cast("string").alias("subscriber"),
        sql.lit(None).cast("string").alias("shard"),
        sql.lit(0).cast("long").alias("deliveries"),
        sql.lit(1).cast("long").alias("publishes"),
    )


def topic_heat(activity: DataFrame, windows: Windows, weights: Weights) -> DataFrame:
    """One row for each window and topic: start, end, topic, subscribers, brokers, deliveries, publishes, heat.

    A message that is delivered at several brokers is published once, and its subscribers are those of all of them.
    """
    if activity.isStreaming:
        activity = activity.withWatermark("time", f"{windows.late_s} seconds")
    window = sql.window("time", f"{windows.length_s} seconds", f"{windows.slide_s} seconds")
    counted = activity.groupBy(window, "topic").agg(
        # A stream cannot count distinct values; a set is exact, and as small as a topic's audience.
        sql.size(sql.collect_set("subscriber")).alias("subscribers"),
        sql.size(sql.collect_set("shard")).alias("brokers"),
        sql.sum("deliveries").alias("deliveries"),
        sql.sum("publishes").alias("publishes"),
    )
    heat = (
        weights.subscribers * sql.col("subscribers")
        + weights.deliveries * sql.col("deliveries") / windows.length_s
        + weights.publishes * sql.col("publishes") / windows.length_s
    )
    columns = ("topic", "subscribers", "brokers", "deliveries", "publishes")
    return counted.select("window.start", "window.end", *columns, heat.alias("heat"))


def recent(activity: DataFrame, windows: Windows) -> DataFrame:
    """Only what the window of :func:`hottest` can hold, so that a long history costs no more than a short one."""
    last = activity.agg(sql.max("time").alias("last"))
    since = sql.col("last") - sql.expr(f"INTERVAL {windows.length_s} SECONDS")
    return activity.join(sql.broadcast(last), sql.col("time") > since, "left_semi")


def hottest(heat: DataFrame, most: int, *, behind_s: int = 0) -> list[Row]:
    """The hottest topics of the window that ends last, or so long before it, the hottest first.

    The windows that end last have only begun when the last row comes.  The one that ends ``length_s - slide_s`` before
    them is the oldest that still holds that row, and nearly full.
    """
    last = heat.agg(sql.max("end").alias("last"))
    is_meant = sql.col("end") == sql.col("last") - sql.expr(f"INTERVAL {behind_s} SECONDS")
    rows = heat.join(sql.broadcast(last), is_meant, "left_semi")
    return rows.orderBy(sql.desc("heat"), "topic").limit(most).collect()


def heat_by_topic(rows: Iterable[Row]) -> dict[str, float]:
    """Rows as a broker takes them: heat by topic."""
    return {row["topic"]: float(row["heat"]) for row in rows}
