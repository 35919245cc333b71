"""Waiting times by class against the table: quantiles as bounds, verdicts only where the buckets allow one."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.core.durable.test_capture import Scene
from tests.pipeline.jobs.scenes import at, emitted, events_table, frame, rows, stream, traffic
from tieline.core.account import WAIT_BUCKETS
from tieline.log.record import Occurrence
from tieline.pipeline.jobs.latency import BY_NAME, NoRequirement, latency, requirements_of
from tieline.pipeline.jobs.traffic import carried, deliveries

REQUIRED = requirements_of(["alarm=immediate-1a"])


def judged(spark: SparkSession, *told: Occurrence, **how: Any) -> list[dict[str, Any]]:
    records = deliveries(frame(spark, events_table(told)))
    return sorted(rows(latency(records, REQUIRED, **how)), key=lambda row: (-row["level"], row["topics"]))


def test_quantiles_are_upper_edges_and_verdicts_need_both(spark: SparkSession) -> None:
    found = judged(
        spark,
        # 99 of 100 below 2 ms, one between 8 and 16: within 10 ms for 99 %, but not known for all
        traffic(10, "p", "grid/1/alarm", "s", {1: 90, 2: 9, 16: 1}, level=3, class_="alarm"),
        traffic(20, "p", "grid/2/alarm", "s", {2: 100}, level=3, class_="alarm"),
        # a median in [8, 16) ms: whether 10 ms are kept nobody knows
        traffic(10, "p", "grid/1/cmd", "s", {16: 10}, level=2, class_="control"),
        # everything above half an hour is in one bucket without an end
        traffic(10, "p", "grid/1/log", "s", {2**21: 5}, level=0, class_="log"),
    )
    alarm, control, log = found
    assert (alarm["messages"], alarm["p50_ms"], alarm["p99_ms"], alarm["max_ms"]) == (200, 2.0, 2.0, 16.0)
    assert (alarm["requirement"], alarm["strict_ms"], alarm["limit_ms"]) == ("immediate-1a", 3.0, 10.0)
    assert alarm["verdict"] == "kept, strict"
    assert alarm["within"] == pytest.approx(199 / 200)
    assert (control["requirement"], control["verdict"]) == ("control", "kept, strict")  # 16 ms is what control asks for
    assert (log["p50_ms"], log["requirement"], log["verdict"]) == (math.inf, "distribution", "missed")


def test_a_limit_inside_a_bucket_is_undecided(spark: SparkSession) -> None:
    waits = {"between": {16: 1}, "late": {32: 1}, "soon": {8: 1}}
    told = [traffic(10, "p", topic, "s", each, level=3, class_="alarm") for topic, each in waits.items()]
    assert {row["topics"]: row["verdict"] for row in judged(spark, *told, depth=1)} == {
        "between": "undecided",  # between 8 and 16 ms, and 10 are allowed
        "late": "missed",
        "soon": "kept",
    }
    (judged_by_median,) = judged(spark, traffic(10, "p", "a", "s", {2: 2, 32: 1}, level=3, class_="alarm"), judged=0.5)
    assert judged_by_median["verdict"] == "kept, strict"


def test_topics_are_grouped_by_their_first_levels(spark: SparkSession) -> None:
    found = judged(
        spark,
        traffic(10, "p", "grid/1/a", "s", {1: 1}),
        traffic(10, "p", "grid/1/b", "t", {1: 1}),
        traffic(10, "p", "grid/2/a", "s", {1: 1}),
        traffic(10, "p", "grid/1", "s", {1: 1}),
        traffic(10, "p", "x", "s", {1: 1}),
        depth=2,
    )
    assert [(row["topics"], row["messages"]) for row in found] == [
        ("grid/1", 1),
        ("grid/1/#", 2),
        ("grid/2/#", 1),
        ("x", 1),
    ]


def test_brokers_are_told_apart_where_that_is_asked(spark: SparkSession) -> None:
    here = [traffic(10, "p", "a", "s", {1: 3}), traffic(10, "p", "a", "s", {1: 2, 64: 2}, broker="west")]
    records = deliveries(frame(spark, events_table(here, "east"), events_table(here[:1], "west")))
    found = rows(latency(records, REQUIRED, by_broker=True))
    told = sorted((row["origin"], row["shard"], row["messages"], row["max_ms"]) for row in found)
    assert told == [("east", "east", 3, 1.0), ("west", "east", 4, 64.0), ("west", "west", 3, 1.0)]
    (whole,) = rows(latency(records, REQUIRED))
    assert (whole["messages"], "shard" in whole) == (10, False)


def test_how_long_it_was_under_way_and_over_how_many_links(spark: SparkSession) -> None:
    def came(shard: str, **detail: Any) -> pa.Table:
        told = {"since": 0, "level": 1, "class": "normal", "bytes": 10, **detail}
        return events_table([msgspec.structs.replace(traffic(10, "", "", "", {}), kind="carried", detail=told)], shard)

    told = frame(
        spark,
        came("c", broker="a", count=10, ages_ms={1: 8, 4: 2}, hops={1: 5, 2: 5}),
        came("c", broker="a", count=10, ages_ms={1: 10}, hops={2: 10}),
        came("b", broker="a", count=3, ages_ms={2: 3}, hops={1: 3}),
        events_table([traffic(10, "p", "a", "s", {1: 3})], "c"),
    )
    found = rows(latency(carried(told), REQUIRED, by_broker=True))
    assert sorted((row["origin"], row["shard"], row["messages"], row["hops"], row["max_ms"]) for row in found) == [
        ("a", "b", 3, 1.0, 2.0),
        ("a", "c", 20, 1.75, 4.0),
    ]


def test_what_a_class_takes_is_held_against_the_bandwidth_of_the_table(spark: SparkSession) -> None:
    def one(topic: str, subscriber: str, messages: int, class_: str) -> Occurrence:
        # each message has 100 bytes and a record spans 10 s: 100 messages are 8 kbit/s
        return traffic(10, "p", topic, subscriber, {1: messages}, class_=class_)

    required = requirements_of(["thin=control", "wide=control", "much=control", "each=demand-response"])
    told = [one("a", "s", 100, "thin"), one("a", "s", 500, "wide"), one("a", "s", 1_000, "much")]
    told += [one("a", subscriber, 150, "each") for subscriber in "stuv"]
    found = rows(latency(deliveries(frame(spark, events_table(told))), required))
    by_class = {row["class"]: row for row in found}
    assert {name: row["bandwidth"] for name, row in by_class.items()} == {
        "thin": "least is enough",
        "wide": "within",
        "much": "exceeded",
        "each": "least is enough",
    }
    assert by_class["wide"]["kbps"] == pytest.approx(40.0)
    # four subscribers take 48 kbit/s together, and the table means each node
    assert by_class["each"]["kbps"] == pytest.approx(12.0)
    assert (by_class["much"]["least_kbps"], by_class["much"]["most_kbps"]) == (9.6, 56.0)


def test_a_class_without_a_requirement_says_so(spark: SparkSession) -> None:
    records = deliveries(frame(spark, events_table([traffic(10, "p", "a", "s", {1: 1}, class_="other")])))
    (found,) = rows(latency(records, {}))
    assert (found["requirement"], found["verdict"], found["within"]) == (None, "no requirement", None)


def test_a_quantile_is_the_bucket_of_the_sorted_messages(spark: SparkSession) -> None:
    random = Random(7)
    histograms = [
        {bucket: random.randint(1, 50) for bucket in random.sample(range(WAIT_BUCKETS), random.randint(1, 6))}
        for _ in range(200)
    ]
    told = [
        traffic(10, "p", f"t/{number:03}", "s", {1 << bucket: count for bucket, count in each.items()})
        for number, each in enumerate(histograms)
    ]
    found = judged(spark, *told, depth=2)
    for histogram, row in zip(histograms, found, strict=True):
        every = sorted(bucket for bucket, count in histogram.items() for _ in range(count))
        edges = [math.inf if bucket == WAIT_BUCKETS - 1 else float(1 << bucket) for bucket in every]
        for name, part in (("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99), ("max_ms", 1.0)):
            # the least message that at least this part does not exceed
            assert row[name] == edges[math.ceil(part * len(edges)) - 1]


def test_the_records_of_a_real_broker(spark: SparkSession) -> None:
    scene = Scene(events="on", period="10s")
    scene.world.client("s").subscribe("a/#")
    publisher = scene.world.client("p")
    for _ in range(3):
        publisher.publish("a/b", b"hello", qos=1)
    scene.world.advance(10.0)
    told = rows(deliveries(frame(spark, events_table(scene.occurrences))))
    (one,) = told
    assert (one["publisher"], one["topic"], one["subscriber"], one["messages"]) == ("p", "a/b", "s", 3)
    assert (one["waits"][0], sum(one["waits"])) == (3, 3)
    assert (one["until"] - one["since"]).total_seconds() == pytest.approx(10.0)


def test_windows_of_a_stream_close_behind_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    batches = (
        [traffic(10, "p", "a", "s", {1: 1}), traffic(85, "p", "a", "s", {1: 2})],
        [traffic(20, "p", "a", "s", {1: 4})],  # late, but its window is open until something comes from 90 s on
        [traffic(200, "p", "a", "s", {1: 8})],
        [traffic(230, "p", "a", "s", {1: 16})],
        [traffic(30, "p", "a", "s", {1: 32})],  # too late: its window was told
        [traffic(400, "p", "a", "s", {1: 64})],
    )
    told = latency(deliveries(stream(spark, tmp_path, map(events_table, batches))), REQUIRED, window="60 seconds",
                   watermark="30 seconds")  # fmt: skip
    found = {row["window"]["start"]: row["messages"] for row in emitted(told)}
    assert found == {at(0): 5, at(60): 2, at(180): 24}


@pytest.mark.parametrize(
    ("written", "said"),
    [("alarm", "says nothing"), ("=control", "says nothing"), ("alarm=fast", 'no requirement "fast"')],
)
def test_mappings_that_cannot_be_meant(written: str, said: str) -> None:
    with pytest.raises(NoRequirement, match=said):
        requirements_of([written])


def test_a_class_name_goes_before_its_level() -> None:
    assert requirements_of(["alarm=outage"])["alarm"] is BY_NAME["outage"]
    assert requirements_of([])["3"] is BY_NAME["immediate-1a"]
