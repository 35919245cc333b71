"""Sinks inside Spark: results of a query back to brokers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.pipeline.sink.conftest import Collect, properties
from tieline.pipeline.complaint import our_sentence
from tieline.pipeline.sink.rows import BATCH_SPAN, producer_of
from tieline.pipeline.sink.writers import ONCE
from tieline.pytest_plugin import BrokerThread

pytestmark = pytest.mark.timeout(300)


def results(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count, numPartitions=3).selectExpr(
        "concat('r/', id % 2) AS topic", "cast(id AS string) AS payload", "1 AS level"
    )


def stream(spark: SparkSession, place: Path) -> DataFrame:
    """A stream of two batches of results."""
    for _ in range(2):
        results(spark, 20).coalesce(1).write.mode("append").parquet(str(place))
    return (
        spark.readStream.schema("topic string, payload string, level int")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(place))
    )


def test_a_data_frame_once(spark: SparkSession, broker: BrokerThread, collect: Collect) -> None:
    collector = collect(broker.port)
    address = f"mqtt://127.0.0.1:{broker.port}"
    results(spark, 50).write.format("tieline").mode("append").options(broker=address, producer="report").save()
    found = collector.wait(50)
    assert sorted(int(message.payload) for message in found) == list(range(50))
    assert [properties(message)[ONCE] for message in found] == [f"report/{n}" for n in range(50)]
    assert {properties(message)["priority"] for message in found} == {"1"}


def test_a_stream_has_a_number_for_each_row(
    spark: SparkSession, broker: BrokerThread, collect: Collect, tmp_path: Path
) -> None:
    collector = collect(broker.port)
    query = (
        stream(spark, tmp_path / "in").writeStream.format("tieline")
        .option("broker", f"mqtt://127.0.0.1:{broker.port}")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    found = collector.wait(40)
    producer = producer_of(query.id)
    expected = [f"{producer}/{batch * BATCH_SPAN + n}" for batch in range(2) for n in range(20)]
    assert [properties(message)[ONCE] for message in found] == expected


def test_any_broker_often_enough(spark: SparkSession, broker: BrokerThread, collect: Collect, tmp_path: Path) -> None:
    collector = collect(broker.port)
    address = f"mqtt://127.0.0.1:{broker.port}"
    query = (
        stream(spark, tmp_path / "in").writeStream.format("mqtt").option("broker", address)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    results(spark, 10).write.format("mqtt").mode("append").options(broker=address, producer="report").save()
    found = collector.wait(50)
    names = {properties(message)["idem"] for message in found}
    assert names >= {f"{query.id}/{batch}/0/{n}" for batch in range(2) for n in range(20)}
    assert len(names) == 50 and sum(name.startswith("report/0/") for name in names) == 10


def test_refusals_are_sentences(spark: SparkSession, broker: BrokerThread) -> None:
    address = f"mqtt://127.0.0.1:{broker.port}"
    frame = results(spark, 3)
    for written, text in (
        (frame.write.format("tieline").mode("append"), "the option broker is missing"),
        (frame.write.format("tieline").mode("overwrite").option("broker", address), "cannot be overwritten"),
        (frame.selectExpr("topic", "payload", "level AS x").write.format("mqtt").mode("append"), 'the column "x"'),
        (
            frame.selectExpr("'a/#' AS topic", "payload")
            .write.format("tieline")
            .mode("append")
            .option("broker", address),
            'the topic "a/#", which cannot be published to',
        ),
    ):
        with pytest.raises(PySparkException) as caught:
            written.save()
        assert text in (our_sentence(caught.value) or ""), str(caught.value)
