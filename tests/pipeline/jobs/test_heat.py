"""Heat over sliding windows: what counts, which window, and what comes too late."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.pipeline.jobs.scenes import at, emitted, events_table, frame, rows, stream, traffic
from tieline.match.events import Attribute, EventType
from tieline.match.space import Space
from tieline.pipeline.jobs.content_heat import NoSpace, cell_heat, condition_heat, described, space_of
from tieline.pipeline.jobs.topic_heat import (
    NoWindow,
    Weights,
    Windows,
    from_deliveries,
    from_messages,
    heat_by_topic,
    hottest,
    recent,
    topic_heat,
)
from tieline.pipeline.jobs.traffic import deliveries

WINDOWS = Windows(length_s=60, slide_s=30, late_s=30)
EACH = Weights(subscribers=1.0, deliveries=10.0, publishes=100.0)


def test_a_topic_of_several_brokers_is_one(spark: SparkSession) -> None:
    told = [
        events_table([traffic(10, "p", "a", subscriber, {1: 60}, broker=broker)], shard)
        for shard, subscriber, broker in (("east", "s", ""), ("west", "t", "east"), ("west", "u", "east"))
    ]
    found = rows(topic_heat(from_deliveries(deliveries(frame(spark, *told))), Windows(length_s=60, slide_s=60), EACH))
    (one,) = [row for row in found if row["deliveries"]]
    assert (one["subscribers"], one["brokers"], one["deliveries"]) == (3, 2, 180)


def test_subscribers_deliveries_and_publishes_count_in_every_window_they_lie_in(spark: SparkSession) -> None:
    told = deliveries(
        frame(
            spark,
            events_table(
                [
                    traffic(10, "p", "a", "s", {1: 60}),
                    traffic(20, "q", "a", "s", {1: 60}),
                    traffic(40, "p", "a", "t", {1: 30}),
                    traffic(40, "p", "(others)", "(others)", {1: 30}),
                    traffic(40, "", "$SYS/broker/uptime", "s", {1: 30}),
                ]
            ),
        )
    )
    messages = spark.createDataFrame([("a", at(5)), ("b", at(45)), ("$x", at(45))], "topic string, received timestamp")
    activity = from_deliveries(told).unionByName(from_messages(messages))
    found = {(row["start"], row["topic"]): row for row in rows(topic_heat(activity, WINDOWS, EACH))}
    assert set(found) == {(at(-30), "a"), (at(0), "a"), (at(30), "a"), (at(0), "b"), (at(30), "b")}
    early, whole, late = (found[at(start), "a"] for start in (-30, 0, 30))
    assert (early["subscribers"], early["deliveries"], early["publishes"]) == (1, 120, 1)
    assert (whole["subscribers"], whole["deliveries"], whole["publishes"]) == (2, 150, 1)
    assert (late["subscribers"], late["deliveries"], late["publishes"]) == (1, 30, 0)
    assert whole["heat"] == pytest.approx(2 + 10 * 150 / 60 + 100 / 60)
    assert found[at(0), "b"]["heat"] == pytest.approx(100 / 60)


def test_the_last_window_that_is_nearly_full_is_meant(spark: SparkSession) -> None:
    told = [traffic(second, "p", f"t/{second % 3}", "s", {1: 1 + second % 3}) for second in range(10, 310, 10)]
    activity = from_deliveries(deliveries(frame(spark, events_table(told))))
    windows = Windows(length_s=90, slide_s=30)
    behind_s = windows.length_s - windows.slide_s
    # the last record is at 300, so the windows that hold it begin at 240 (and end at 330), 270 and 300
    whole = hottest(topic_heat(activity, windows, Weights()), 10, behind_s=behind_s)
    some = hottest(topic_heat(recent(activity, windows), windows, Weights()), 2, behind_s=behind_s)
    assert {row["start"].timestamp() for row in whole} == {at(240).timestamp()}
    assert sum(row["deliveries"] for row in whole) == sum(1 + second % 3 for second in range(240, 310, 10))
    assert [row["topic"] for row in some] == ["t/2", "t/1"]
    assert heat_by_topic(some) == {row["topic"]: row["heat"] for row in whole[:2]}


def test_a_stream_tells_each_window_once_and_leaves_out_what_is_too_late(spark: SparkSession, tmp_path: Path) -> None:
    batches = (
        [traffic(10, "p", "a", "s", {1: 1}), traffic(55, "p", "b", "s", {1: 1})],
        [traffic(20, "p", "a", "t", {1: 2})],  # late, and in time
        [traffic(130, "p", "a", "s", {1: 4})],
        [traffic(140, "p", "a", "s", {1: 8})],
        [traffic(25, "p", "a", "u", {1: 16})],  # too late
        [traffic(300, "p", "a", "s", {1: 32})],
    )
    activity = from_deliveries(deliveries(stream(spark, tmp_path, map(events_table, batches))))
    told = emitted(topic_heat(activity, Windows(length_s=60, slide_s=60, late_s=30), Weights()))
    counted = [(row["start"], row["topic"], row["subscribers"], row["deliveries"]) for row in told]
    assert sorted(counted) == [(at(0), "a", 2, 3), (at(0), "b", 1, 1), (at(120), "a", 1, 12)]


def test_windows_that_cannot_be() -> None:
    for length_s, slide_s in ((60, 45), (60, 0), (0, 10), (30, 60)):
        with pytest.raises(NoWindow, match="multiple"):
            Windows(length_s=length_s, slide_s=slide_s)


EVENT = EventType(
    "reading",
    "grid/#",
    [Attribute("voltage", bounds=(200.0, 260.0)), Attribute("on", "boolean"), Attribute("pcc.f", bounds=(45.0, 55.0))],
    order=2,
)


def test_cells_are_those_of_the_space_that_brokers_route_by(spark: SparkSession) -> None:
    values = [(230.0, 50.0), (231.0, 50.1), (100.0, None), (260.0, 44.0), (None, 99.0), (214.999, 47.5)]
    told = pa.table(
        {
            "_time": pa.array([at(1)] * len(values), pa.timestamp("us", tz="UTC")),
            "voltage": pa.array([one for one, _other in values], pa.float64()),
            "pcc.f": pa.array([other for _one, other in values], pa.float64()),
        }
    )
    windows = Windows(length_s=60, slide_s=60)
    found = {tuple(row["cell"]): row for row in rows(cell_heat(frame(spark, told), EVENT, windows))}
    space = Space([(200.0, 260.0), (45.0, 55.0)], 2)
    infinity = float("inf")
    points = [tuple(infinity if value is None else value for value in point) for point in values]
    assert {cell: row["events"] for cell, row in found.items()} == {
        cell: sum(space.cells(point) == cell for point in points) for cell in map(space.cells, points)
    }
    assert found[2, 2]["share"] == pytest.approx(2 / 6)
    assert described((2, 2), EVENT) == "voltage >= 230 and voltage < 245 and pcc.f >= 50 and pcc.f < 52.5"
    assert described((0, 3), EVENT) == "voltage < 215 and pcc.f >= 52.5"
    coarse = {tuple(row["cell"]) for row in rows(cell_heat(frame(spark, told), EVENT, windows, order=1))}
    assert coarse <= {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_an_event_type_without_bounds_has_no_space() -> None:
    with pytest.raises(NoSpace, match="declares no number with bounds"):
        space_of(EventType("text", "a", [Attribute("name", "category")]))


def test_hot_conditions_are_those_that_are_met_often(spark: SparkSession) -> None:
    pairs = spark.createDataFrame(
        [("high", at(1)), ("high", at(2)), ("low", at(3)), ("high", at(70))], "subscription string, _time timestamp"
    )
    found = rows(condition_heat(pairs, Windows(length_s=60, slide_s=60)))
    counted = sorted((row["start"], row["subscription"], row["matches"]) for row in found)
    assert counted == [(at(0), "high", 2), (at(0), "low", 1), (at(60), "high", 1)]
