"""Waiting times by class, held against what IEC 61850 and IEEE 1646 allow.

How soon messages of a smart grid have to arrive is the table in Marzal et al. (the paper about the Hilbert ring), which
gathers both standards.  Where a class has two limits, the strict one is what its most demanding functions need and the
other what any of its functions has to keep.  The table's other column is the bandwidth that each class is to find; what
a class takes is held against it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.traffic import EDGES_MS


class NoRequirement(ValueError):
    """A requirement is named that the table does not have; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One class of the table."""

    name: str
    strict_ms: float
    limit_ms: float
    #: The bandwidth of the table in kbit/s; the two are one where it has one number.
    least_kbps: float
    most_kbps: float
    #: What it is about, for people.
    about: str
    #: The table means it for each node.
    is_per_node: bool = False


#: "Minutes" is all that the table says about the slowest demand response; two are the fewest that are several.
_MINUTES_MS: Final = 120_000.0

TABLE: Final[tuple[Requirement, ...]] = (
    Requirement("immediate-1a", 3.0, 10.0, 9.6, 9.6, "immediate action, type 1A: trip, block, release"),
    Requirement("immediate-1b", 20.0, 100.0, 9.6, 9.6, "immediate action, type 1B: other automation"),
    Requirement("control", 16.0, 100.0, 9.6, 56.0, "control"),
    Requirement("monitoring", 15.0, 200.0, 9.6, 56.0, "monitoring"),
    Requirement("distribution", 100.0, 2_000.0, 9.6, 100.0, "distribution management"),
    Requirement("demand-response", 500.0, _MINUTES_MS, 14.0, 100.0, "demand response", is_per_node=True),
    Requirement("outage", 2_000.0, 2_000.0, 56.0, 56.0, "outage management"),
)
BY_NAME: Final[Mapping[str, Requirement]] = {each.name: each for each in TABLE}

#: What a level has to keep where nobody says otherwise.
BY_LEVEL: Final[Mapping[str, str]] = {"3": "immediate-1a", "2": "control", "1": "monitoring", "0": "distribution"}


def requirements_of(written: Iterable[str]) -> dict[str, Requirement]:
    """Which class, by name or level, has to keep what: ``CLASS=REQUIREMENT``, over :data:`BY_LEVEL`."""
    chosen = {level: BY_NAME[name] for level, name in BY_LEVEL.items()}
    for each in written:
        class_, equals, name = each.partition("=")
        if not equals or not class_:
            raise NoRequirement(f'"{each}" says nothing; write CLASS=REQUIREMENT, such as alarm=immediate-1a.')
        if name not in BY_NAME:
            raise NoRequirement(f'there is no requirement "{name}"; there are {", ".join(BY_NAME)}.')
        chosen[class_] = BY_NAME[name]
    return chosen


#: Which broker accepted messages, and which delivered them.
BROKERS: Final = ("origin", "shard")
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
    by_broker: bool = False,
    window: str | None = None,
    watermark: str = "1 minute",
) -> DataFrame:
    """One row for each class and group of topics, and for each window where one is given, and each pair of brokers.

    ``traffic`` is what :func:`tieline.pipeline.jobs.traffic.deliveries` or ``carried`` makes, streaming or not; of the
    latter there is also the mean number of links.  ``required`` is by
    class name or, where it does not name the class, by level.  Topics are grouped by their first ``depth`` levels.  The
    verdict is about the waiting time that the part ``judged`` of the messages did not exceed.

    ``kbps`` is what a row's deliveries took, on average over the time that its records span, and for each subscriber
    where the table means its bandwidth for each node (about, where there are many subscribers); ``bandwidth`` holds it
    against the table.
    """
    brokers = BROKERS if by_broker else ()
    keys = [*map(sql.col, brokers), sql.col("level"), sql.col("class"), _group(depth).alias("topics")]
    if window is not None:
        traffic = traffic.withWatermark("until", watermark)
        keys.insert(0, sql.window("until", window).alias("window"))
    counts = sql.array(*(sql.sum(sql.col("waits")[bucket]) for bucket in range(len(EDGES_MS))))
    is_carried = "links" in traffic.columns
    hops = [(sql.sum("links") / sql.sum("messages")).alias("hops")] if is_carried else []
    taken = [sql.sum("bytes").alias("bytes"), sql.min("since").alias("since"), sql.max("until").alias("until")]
    # an exact count of different subscribers is refused where the records are a stream
    nodes = sql.approx_count_distinct("subscriber").alias("nodes")
    summed = traffic.groupBy(*keys).agg(
        sql.sum("messages").alias("messages"), counts.alias("counts"), *hops, *taken, nodes
    )
    known = summed.withColumns({"passed": _running("counts"), "rule": _rule(required)})
    strict, limit = sql.col("rule.strict_ms"), sql.col("rule.limit_ms")
    least, most, kbps = sql.col("rule.least_kbps"), sql.col("rule.most_kbps"), _kbps()
    return known.select(
        *(["window"] if window is not None else []),
        *brokers,
        "level",
        "class",
        "topics",
        *(["hops"] if is_carried else []),
        "messages",
        *(_edge(part, _UPPER).alias(name) for name, part in QUANTILES.items()),
        sql.col("rule.name").alias("requirement"),
        strict.alias("strict_ms"),
        limit.alias("limit_ms"),
        _within(limit).alias("within"),
        _verdict(_edge(judged, _LOWER), _edge(judged, _UPPER), strict, limit).alias("verdict"),
        kbps.alias("kbps"),
        least.alias("least_kbps"),
        most.alias("most_kbps"),
        _bandwidth(kbps, least, most).alias("bandwidth"),
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


def _kbps() -> Column:
    """Kilobits per second; nothing where the records span no time."""
    seconds = sql.col("until").cast("double") - sql.col("since").cast("double")
    nodes = sql.when(sql.col("rule.is_per_node"), sql.greatest(sql.col("nodes"), sql.lit(1))).otherwise(1)
    return sql.when(seconds > 0, sql.col("bytes") * 8 / 1_000 / seconds / nodes)


def _bandwidth(kbps: Column, least: Column, most: Column) -> Column:
    """Whether the thinnest line of the table would carry it, or the widest one, or none."""
    return (
        sql.when(least.isNull() | kbps.isNull(), "no requirement")
        .when(kbps <= least, "least is enough")
        .when(kbps <= most, "within")
        .otherwise("exceeded")
    )


_LIMITS: Final = (
    "struct<name: string, strict_ms: double, limit_ms: double, least_kbps: double, most_kbps: double, "
    "is_per_node: boolean>"
)


def _rule(required: Mapping[str, Requirement]) -> Column:
    """The requirement of a row: that of its class, else that of its level, else none."""
    found = sql.lit(None).cast(_LIMITS)
    # A level is a digit and a class may be called so too; its own name goes first.
    for column in (sql.col("level").cast("string"), sql.col("class")):
        for key, each in sorted(required.items()):
            is_meant = column == key
            found = sql.when(is_meant, _limits(each)).otherwise(found)
    return found


def _limits(each: Requirement) -> Column:
    columns = {
        "name": each.name, "strict_ms": each.strict_ms, "limit_ms": each.limit_ms, "least_kbps": each.least_kbps,
        "most_kbps": each.most_kbps, "is_per_node": each.is_per_node,
    }  # fmt: skip
    return sql.struct(*(sql.lit(value).alias(name) for name, value in columns.items()))
