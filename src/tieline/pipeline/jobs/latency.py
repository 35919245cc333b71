"""Waiting times by class, held against what IEC 61850 and IEEE 1646 allow.

Theory of operation
-------------------
A broker tells waiting times as histograms with the edges 1, 2, 4, … ms, so the quantile of any part of the messages is
known only as a bucket.  What is reported is the bucket's upper edge: the part in question waited *less than* that.  A
verdict uses both edges and is ``undecided`` where the limit lies between them, rather than guess.

The time is that from a message's arrival at the broker until it was handed to the subscriber's socket.  Networks and
clients take their own time, so ``kept`` says that the broker's part of the way fits, and ``missed`` that nothing else
could have helped.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.deliveries import EDGES_MS
from tieline.pipeline.jobs.requirements import Requirement

#: What topics are gathered under when they are not told apart.
ALL_TOPICS: Final = "#"
#: The parts whose waiting times are reported.
QUANTILES: Final = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "max_ms": 1.0}
#: The upper edge of the last bucket.
_ENDLESS: Final = float("inf")
_UPPER: Final = (*map(float, EDGES_MS[:-1]), _ENDLESS)
_LOWER: Final = (0.0, *map(float, EDGES_MS[:-1]))


def latency(
    traffic: DataFrame,
    required: Mapping[str, Requirement],
    *,
    judged: float = 0.99,
    depth: int = 0,
    window: str | None = None,
    watermark: str = "1 minute",
) -> DataFrame:
    """One row for each class and group of topics, and for each window where one is given.

    ``traffic`` is what :func:`tieline.pipeline.jobs.deliveries.deliveries` makes, streaming or not.  ``required`` is by
    class name or, where it does not name the class, by level.  Topics are grouped by their first ``depth`` levels.  The
    verdict is about the waiting time that the part ``judged`` of the messages did not exceed.
    """
    keys = [sql.col("level"), sql.col("class"), _group(depth).alias("topics")]
    if window is not None:
        traffic = traffic.withWatermark("until", watermark)
        keys.insert(0, sql.window("until", window).alias("window"))
    counts = sql.array(*(sql.sum(sql.col("waits")[bucket]) for bucket in range(len(EDGES_MS))))
    summed = traffic.groupBy(*keys).agg(sql.sum("messages").alias("messages"), counts.alias("counts"))
    known = summed.withColumns({"passed": _running("counts"), "rule": _rule(required)})
    strict, limit = sql.col("rule.strict_ms"), sql.col("rule.limit_ms")
    return known.select(
        *(["window"] if window is not None else []),
        "level",
        "class",
        "topics",
        "messages",
        *(_edge(part, _UPPER).alias(name) for name, part in QUANTILES.items()),
        sql.col("rule.name").alias("requirement"),
        strict.alias("strict_ms"),
        limit.alias("limit_ms"),
        _within(limit).alias("within"),
        _verdict(_edge(judged, _LOWER), _edge(judged, _UPPER), strict, limit).alias("verdict"),
    )


def _group(depth: int) -> Column:
    """The first levels of a topic, as the filter of all topics that share them."""
    if not depth:
        return sql.lit(ALL_TOPICS)
    levels = sql.split("topic", "/")
    is_deeper = sql.size(levels) > depth
    return sql.when(is_deeper, sql.concat(sql.substring_index("topic", "/", depth), sql.lit("/#"))).otherwise(
        sql.col("topic")
    )


def _running(counts: str) -> Column:
    """How many messages are in each bucket or one before it."""
    numbers = sql.sequence(sql.lit(1), sql.lit(len(EDGES_MS)))
    zero = sql.lit(0).cast("long")
    return sql.transform(
        numbers, lambda number: sql.aggregate(sql.slice(counts, sql.lit(1), number), zero, operator.add)
    )


def _edge(part: float, edges: tuple[float, ...]) -> Column:
    """An edge of the bucket in which the waiting time lies that this part of the messages did not exceed."""
    below = sql.size(sql.filter("passed", lambda passed: passed < sql.col("messages") * sql.lit(part)))
    return _numbers(edges)[below]


def _within(limit: Column) -> Column:
    """The part of the messages that were in time for certain: those in buckets that end at the limit or before."""
    buckets = sql.size(sql.filter(_numbers(_UPPER), lambda edge: edge <= limit))
    return (
        sql.when(limit.isNull(), None)
        .when(buckets == 0, 0.0)
        .otherwise(sql.col("passed")[buckets - 1] / sql.col("messages"))
    )


def _numbers(values: tuple[float, ...]) -> Column:
    return sql.array(*map(sql.lit, values))


def _verdict(lower: Column, upper: Column, strict: Column, limit: Column) -> Column:
    return (
        sql.when(limit.isNull(), "no requirement")
        .when(upper <= strict, "kept, strict")
        .when(upper <= limit, "kept")
        .when(lower >= limit, "missed")
        .otherwise("undecided")
    )


def _rule(required: Mapping[str, Requirement]) -> Column:
    """The requirement of a row: that of its class, else that of its level, else none."""
    found = sql.lit(None).cast("struct<name: string, strict_ms: double, limit_ms: double>")
    # A level is a digit and a class may be called so too; its own name goes first.
    for column in (sql.col("level").cast("string"), sql.col("class")):
        for key, each in sorted(required.items()):
            is_meant = column == key
            found = sql.when(is_meant, _limits(each)).otherwise(found)
    return found


def _limits(each: Requirement) -> Column:
    columns = {"name": each.name, "strict_ms": each.strict_ms, "limit_ms": each.limit_ms}
    return sql.struct(*(sql.lit(value).alias(name) for name, value in columns.items()))
