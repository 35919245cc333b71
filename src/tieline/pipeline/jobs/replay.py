"""Recorded messages, ready to be sent again: from the log, or made again from tables, in the order of time.

Tables hold attributes and no payloads.  A payload in JSON, or one that is a number, is written anew from them; it says
the same as the recorded one, not letter by letter.  Sparkplug B and CBOR are not written anew: replay those from a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import reduce
from operator import or_
from typing import Any, Final  # Any: rows of Spark

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.conf.schema import Attribute, Event
from tieline.wire.errors import ProtocolError
from tieline.wire.topics import check_filter

_MAX_LEVELS = 65_535


class NoFilter(ValueError):
    """A topic filter that is none; the text is a sentence."""


def of_topics(rows: DataFrame, column: str, filters: Sequence[str]) -> DataFrame:
    """The rows whose topic matches one of some filters; all rows if there are none."""
    if not filters:
        return rows
    return rows.where(reduce(or_, (_matches(sql.col(column), each) for each in filters)))


def _matches(topic: Column, filter_: str) -> Column:
    return topic.rlike(pattern(filter_))


def pattern(filter_: str) -> str:
    """A regular expression, without repetition inside repetition, that matches what a topic filter does."""
    try:
        check_filter(filter_, _MAX_LEVELS)
    except ProtocolError as error:
        raise NoFilter(f'"{filter_}" is no topic filter: {error.text}.') from None
    levels = filter_.split("/")
    is_open = levels[-1] == "#"
    parts = ["[^/]*" if level == "+" else re.escape(level) for level in (levels[:-1] if is_open else levels)]
    # [MQTT-4.7.2-1] wildcards do not match a first level that begins with $
    hidden = "(?!\\$)" if levels[0] in ("+", "#") else ""
    if not is_open:
        return f"^{hidden}{'/'.join(parts)}\\z"
    return f"^{hidden}" if not parts else f"^{hidden}{'/'.join(parts)}(/|\\z)"


#: What a message to send has.
COLUMNS: Final = ("time", "shard", "offset", "publisher", "topic", "payload", "qos", "retain", "level", "properties")
#: The columns of the log of which it is made.
LOGGED: Final = ("received", *COLUMNS[1:])
_NO_PROPERTIES: Final = "array<struct<key: string, value: string>>"


class Unrepeatable(ValueError):
    """What a table holds cannot be written as messages; the text is a sentence."""


def from_log(log: DataFrame) -> DataFrame:
    """Messages as the log has them."""
    return log.select(sql.col("received").alias("time"), *COLUMNS[1:])


def from_table(events: DataFrame, name: str, declared: Event) -> DataFrame:
    """Messages that say what a table of an event type says; the time is the event's own."""
    if declared.payload == "number":
        (attribute,) = declared.attributes[:1]
        payload = _value(attribute).cast("string")
    elif declared.payload == "json":
        payload = sql.to_json(_object(_nested(name, declared.attributes)))
    else:
        raise Unrepeatable(
            f"the event type {name} is written in {declared.payload}, which tables cannot give back: replay a log."
        )
    return _from_lake(events, payload.cast("binary"))


def from_others(others: DataFrame) -> DataFrame:
    """Messages of topics without a declared type, which tables keep as they were."""
    return _from_lake(others, sql.col("_payload"))


def in_order(messages: DataFrame) -> Iterator[dict[str, Any]]:
    """All messages by their time, a day at a time: neither Spark nor this process holds more than one day sorted."""
    days = messages.agg(sql.min(sql.to_date("time")).alias("first"), sql.max(sql.to_date("time")).alias("last")).first()
    if days is None or days["first"] is None:
        return
    for day in _days(days["first"], days["last"]):
        of_day = messages.where(sql.to_date("time") == sql.lit(day))
        for row in of_day.orderBy("time", "shard", "offset").toLocalIterator(prefetchPartitions=True):
            yield row.asDict()


def _from_lake(rows: DataFrame, payload: Column) -> DataFrame:
    return rows.select(
        sql.col("_time").alias("time"),
        sql.col("_shard").alias("shard"),
        sql.col("_offset").alias("offset"),
        sql.col("_publisher").alias("publisher"),
        sql.col("_topic").alias("topic"),
        payload.alias("payload"),
        sql.col("_qos").alias("qos"),
        sql.lit(False).alias("retain"),
        sql.col("_level").alias("level"),
        sql.array().cast(_NO_PROPERTIES).alias("properties"),
    )


def _days(first: date, last: date) -> Iterator[date]:
    for number in range((last - first).days + 1):
        yield first + timedelta(days=number)


def _nested(name: str, attributes: tuple[Attribute, ...]) -> dict[str, Any]:
    """Where the payload holds each attribute: names, and below them names or attributes."""
    tree: dict[str, Any] = {}
    for attribute in attributes:
        *way, last = attribute.place.split(".")
        if any(step.isdigit() for step in (*way, last)):
            raise Unrepeatable(
                f"{attribute.name} of the event type {name} is in an array of its payload ({attribute.place}), of "
                "which tables do not know the rest: replay a log."
            )
        inner = tree
        for step in way:
            inner = inner.setdefault(step, {})
        inner[last] = attribute
    return tree


def _object(tree: Mapping[str, Any]) -> Column:
    # to_json leaves out what is null, as the message did
    return sql.struct(
        *((_object(inner) if isinstance(inner, dict) else _value(inner)).alias(step) for step, inner in tree.items())
    )


def _value(attribute: Attribute) -> Column:
    column = sql.col(f"`{attribute.name}`")
    if attribute.kind == "timestamp":
        return sql.unix_micros(column) / 1e6
    return column
