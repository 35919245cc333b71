"""Subscriptions over tables: DataFrames of events or messages in, pairs of subscription and message out.

Theory of operation
-------------------
What the subscriptions ask for, bound to their event type, travels with the function that Spark calls in its workers
(Spark broadcasts functions that are large); every worker makes its indexes once and keeps them for the next batch.
Rows come and go as Arrow batches.

Where a subscription compares with what it was sent before, rows are first brought together by broker and topic, in the
order of their offsets.  Order means something within one broker only, so what a topic carried at another broker is
another history.  Without such subscriptions rows stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.conf.schema import Settings
from tieline.match.events import Events, EventType
from tieline.pipeline.jobs.match.bound import BoundSubscriptions, bind_all
from tieline.pipeline.jobs.match.rows import column_of
from tieline.pipeline.jobs.match.subscriptions import NoSubscription, Subscription
from tieline.pipeline.jobs.match.worker import Match, on_columns, on_messages

#: What the columns are called that say which message it was, in the lake and in the log.
PLACE: Final = ("_offset", "_shard", "_topic", "_time")
_LOGGED: Final = ("offset", "shard", "topic", "received")
_TYPES: Final = {"_offset": "BIGINT", "_shard": "STRING", "_topic": "STRING", "_time": "TIMESTAMP"}


def match_events(
    events: DataFrame,
    subscriptions: Sequence[Subscription],
    event: EventType,
    *,
    keep: Sequence[str] = PLACE,
    counted: bool = False,
) -> DataFrame:
    """What subscriptions would have been sent of a table of the lake.

    The table has the attributes that ``event`` declares and the columns of :data:`PLACE`.  Gives one row for each
    subscription and message: ``subscription``, and those of :data:`PLACE` that are to be kept.  Or, ``counted``, one
    for each subscription that was met: ``subscription``, ``matches``.  Columns that nobody needs are not read.
    """
    return match_bound(events, bind_all(subscriptions, event, only_declared=True), keep=keep, counted=counted)


def match_bound(
    events: DataFrame, bound: BoundSubscriptions, *, keep: Sequence[str] = PLACE, counted: bool = False
) -> DataFrame:
    """The same for subscriptions that are bound to their event type already: thousands take a second to bind."""
    needed = set() if counted else set(keep)
    if bound.is_stateful:
        needed |= {"_offset", "_shard", "_topic"}
    elif bound.any_topic is None:
        needed.add("_topic")
    place = [sql.col(name) for name in PLACE if name in needed]
    attributes = [sql.col(f"`{each.name}`").alias(column_of(at)) for at, each in enumerate(bound.attributes)]
    rows = events.select(*place, *attributes)
    return _mapped(_ordered(rows, bound.is_stateful), bound.ids, lambda: on_columns(bound), keep, counted=counted)


def columns_for(settings: Settings) -> tuple[str, ...]:
    """The columns of the log that :func:`match_messages` needs.

    ``attributes`` are only among them where a message alone does not tell what it says, because of an earlier birth.
    """
    is_born = any(event.payload == "sparkplug" for event in settings.event.values())
    return (*_LOGGED, "payload", "raw_properties", *(("attributes",) if is_born else ()))


def match_messages(
    messages: DataFrame, subscriptions: Sequence[Subscription], settings: Settings, *, counted: bool = False
) -> DataFrame:
    """The same for messages as the log holds them, of all event types; settings declare those.

    ``messages`` has the columns that :func:`columns_for` names.  Nothing is missing there, so attributes that no type
    declares, user properties and payloads that cannot be read mean what they mean to a broker.
    """
    events = Events(settings)
    types = [*events.types.values(), events.untyped]
    by_type = {each.name: bind_all(subscriptions, each) for each in types}
    place = [sql.col(name).alias(ours) for name, ours in zip(_LOGGED, PLACE, strict=True)]
    rows = _ordered(
        messages.select(*place, *columns_for(settings)[len(_LOGGED) :]),
        any(bound.is_stateful for bound in by_type.values()),
    )
    ids = tuple(each.id for each in subscriptions)
    return _mapped(rows, ids, lambda: on_messages(by_type, settings), PLACE, counted=counted)


def match_payloads(
    others: DataFrame, subscriptions: Sequence[Subscription], settings: Settings, *, counted: bool = False
) -> DataFrame:
    """The same for the lake's table of topics without a declared type, which has the column _payload."""
    nothing = sql.lit(None)
    renamed = others.select(
        *(sql.col(ours).alias(logged) for ours, logged in zip(PLACE, _LOGGED, strict=True)),
        sql.col("_payload").alias("payload"),
        nothing.cast("binary").alias("raw_properties"),
        nothing.cast("map<string, struct<number: double, text: string, flag: boolean>>").alias("attributes"),
    )
    return match_messages(renamed, subscriptions, settings, counted=counted)


def _ordered(rows: DataFrame, is_stateful: bool) -> DataFrame:
    if not is_stateful:
        return rows
    if rows.isStreaming:
        raise NoSubscription(
            "changed() and delta() compare with the message before, and a stream's batches are not in the order of "
            "offsets: replay them over tables instead."
        )
    keys: list[Column] = [sql.col("_shard"), sql.col("_topic")]
    return rows.repartition(*keys).sortWithinPartitions(*keys, "_offset")


def _mapped(
    rows: DataFrame, ids: tuple[str, ...], make: Callable[[], Match], keep: Sequence[str], *, counted: bool
) -> DataFrame:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        find = make()
        names = pa.array(ids, pa.string())
        totals = np.zeros(len(ids), np.int64)
        for batch in batches:
            taken, numbers = find(batch)
            if counted:
                totals += np.bincount(numbers, minlength=len(ids))
            elif len(taken):
                found = pa.array(taken)
                columns = [names.take(pa.array(numbers)), *(batch.column(name).take(found) for name in keep)]
                yield pa.RecordBatch.from_arrays(columns, names=["subscription", *keep])
        if counted and totals.any():
            met = np.flatnonzero(totals)
            columns = [names.take(pa.array(met)), pa.array(totals[met])]
            yield pa.RecordBatch.from_arrays(columns, names=["subscription", "matches"])

    if not counted:
        return rows.mapInArrow(run, ", ".join(["subscription STRING", *(f"{name} {_TYPES[name]}" for name in keep)]))
    counts = rows.mapInArrow(run, "subscription STRING, matches BIGINT")
    return counts.groupBy("subscription").agg(sql.sum("matches").alias("matches"))
