"""Which content is hot: where in the space of their attributes events gather, and which conditions they meet.

A cell is one of the space that brokers route by (:class:`tieline.match.space.Space`): the routing attributes of the
event type, each cut into 2^order parts.  A missing value is in the last part, as it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.match.events import Attribute, EventType
from tieline.match.space import Space
from tieline.pipeline.jobs.topic_heat import Windows

#: What a cell is called in the output.
CELL: Final = "cell"


class NoSpace(ValueError):
    """An event type has no attributes with bounds; the text is a sentence."""


def space_of(event: EventType, order: int | None = None) -> Space:
    """The grid of an event type; ``order`` coarsens or refines it."""
    routing = _routing(event)
    if not routing:
        raise NoSpace(f"the event type {event.name} declares no number with bounds, so it has no space to be hot in.")
    return Space([each.bounds for each in routing if each.bounds], order or event.order)


def cell_heat(events: DataFrame, event: EventType, windows: Windows, *, order: int | None = None) -> DataFrame:
    """One row for each window and cell that holds an event: start, end, cell (an array), events, share.

    ``events`` is a table of the lake, streaming or not; share is the part of the window's events and only there without
    a stream.
    """
    space = space_of(event, order)
    places = [_place(each, space) for each in _routing(event)]
    counted = _by_window(events.withColumn(CELL, sql.array(*places)), windows, CELL, "events")
    if events.isStreaming:
        return counted
    whole = counted.groupBy("start", "end").agg(sql.sum("events").alias("_whole"))
    return (
        counted.join(whole, ["start", "end"]).withColumn("share", sql.col("events") / sql.col("_whole")).drop("_whole")
    )


def condition_heat(pairs: DataFrame, windows: Windows) -> DataFrame:
    """How often each subscription was met: start, end, subscription, matches.

    ``pairs`` is what :mod:`tieline.pipeline.jobs.match` makes.
    """
    return _by_window(pairs, windows, "subscription", "matches")


def described(cell: Sequence[int], event: EventType, order: int | None = None) -> str:
    """A cell as the condition that its events meet."""
    space = space_of(event, order)
    parts = 1 << space.order
    tests = []
    for place, each, (low, high) in zip(cell, _routing(event), space.bounds, strict=True):
        width = (high - low) / parts
        # The outermost parts have no outer end, and the last one holds events without the value too.
        if place > 0:
            tests.append(f"{each.name} >= {low + place * width:g}")
        if place < parts - 1:
            tests.append(f"{each.name} < {low + (place + 1) * width:g}")
    return " and ".join(tests)


def _routing(event: EventType) -> list[Attribute]:
    return [each for name in event.routing if (each := event.attributes[event.position[name]]).bounds is not None]


def _place(attribute: Attribute, space: Space) -> Column:
    """The place of a value along its axis: the same arithmetic as :meth:`Space.cells`, in the same order."""
    assert attribute.bounds is not None
    low, high = attribute.bounds
    last = (1 << space.order) - 1
    value = sql.col(f"`{attribute.name}`")
    number = value.cast("double") if attribute.kind != "timestamp" else sql.unix_micros(value) / 1e6
    part = (number - sql.lit(low)) / sql.lit(high - low)
    scaled = sql.floor(part * sql.lit(float(last + 1))).cast("int")
    return sql.when(part < 0.0, 0).when(part < 1.0, scaled).otherwise(last)


def _by_window(rows: DataFrame, windows: Windows, key: str, count: str) -> DataFrame:
    if rows.isStreaming:
        rows = rows.withWatermark("_time", f"{windows.late_s} seconds")
    window = sql.window("_time", f"{windows.length_s} seconds", f"{windows.slide_s} seconds")
    counted = rows.groupBy(window, key).agg(sql.count("*").alias(count))
    return counted.select("window.start", "window.end", key, count)
