"""format("tieline") inside Spark: batch, stream, restart, and errors as sentences."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.net.logserver.writing import record
from tests.pipeline.source.conftest import Serve, options
from tieline.conf.schema import Log, Settings
from tieline.pipeline.complaint import our_sentence
from tieline.pipeline.source.offsets import shards
from tieline.pipeline.source.options import LOG

# a loaded machine takes its time to start a JVM and its first workers
pytestmark = pytest.mark.timeout(300)


def test_a_batch_of_two_brokers(spark: SparkSession, serve: Serve) -> None:
    """No register() call: Spark finds the format by the name of its module."""
    north, south = serve("north", records=120), serve("south", records=50)
    frame = spark.read.format("tieline").options(**options(north, south, partitionRows=50)).load()
    assert frame.schema == LOG
    assert frame.rdd.getNumPartitions() == 4
    found = frame.select("shard", "offset", "payload", "received_ns").collect()
    assert sorted((row.shard, row.offset) for row in found) == [("north", n) for n in range(120)] + [
        ("south", n) for n in range(50)
    ]
    assert all(
        bytes(row.payload) == record(row.offset).payload and row.received_ns == record(row.offset).received
        for row in found
    )


def test_the_servers_filter_and_choose_columns(spark: SparkSession, serve: Serve) -> None:
    chosen = options(serve(records=100), topics="grid/3/+", where="number > 50", columns="topic,offset")
    frame = spark.read.format("tieline").options(**chosen).load()
    assert frame.columns == ["topic", "offset"]
    assert [tuple(row) for row in frame.collect()] == [("grid/3/pcc", n) for n in range(51, 100) if n % 7 == 3]


def _land(query_of: DataFrame, place: Path) -> StreamingQuery:
    """Each batch in a directory of its own: what a batch that runs again overwrites."""

    def land(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(place / f"batch={number}"))

    query = (
        query_of.writeStream.foreachBatch(land)
        .option("checkpointLocation", str(place.parent / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def test_a_stream_stops_continues_and_moves_its_reader(spark: SparkSession, serve: Serve, tmp_path: Path) -> None:
    readers = Settings(name="edge", log=Log(readers=("spark",)))
    served = serve(settings=readers, records=70)
    asked = options(served, maxRowsPerTrigger=30, columns="offset,shard", reader="spark")
    target = tmp_path / "landed"
    query = _land(spark.readStream.format("tieline").options(**asked).load(), target)
    progress = [each for each in query.recentProgress if each["numInputRows"]]
    assert [each["numInputRows"] for each in progress] == [30, 30, 10]
    assert shards(progress[-1]["sources"][0]["endOffset"]) == {"edge": 70}
    for first in range(70, 100, 10):
        served.writer.append([record(number) for number in range(first, first + 10)])
    _land(spark.readStream.format("tieline").options(**asked).load(), target)
    found = [row.offset for row in spark.read.parquet(str(target)).select("offset").collect()]
    assert sorted(found) == list(range(100))
    # Spark tells a source that a batch is finished when it plans the next one, so the last is not told yet
    assert int((tmp_path / "edge" / "readers" / "spark").read_text()) == 70


def test_lost_records_are_a_sentence(spark: SparkSession, serve: Serve, tmp_path: Path) -> None:
    served = serve(records=100)
    asked = options(served, maxRowsPerTrigger=30, columns="offset", startingOffsets='{"edge": 10}')
    served.writer.forget(50)
    with pytest.raises(PySparkException) as caught:
        _land(spark.readStream.format("tieline").options(**asked).load(), tmp_path / "landed")
    said = our_sentence(caught.value)
    assert said is not None and "offsets 10 to 49 of the broker edge are not there any more" in said
    _land(spark.readStream.format("tieline").options(**asked, failOnDataLoss="false").load(), tmp_path / "landed")
    found = [row.offset for row in spark.read.parquet(str(tmp_path / "landed")).select("offset").collect()]
    assert sorted(found) == list(range(50, 100))


def test_refusals_are_sentences(spark: SparkSession, serve: Serve) -> None:
    served = serve(records=3)
    for asked, text in (
        ({}, "the option url is missing"),
        (options(served, where="a >"), "expected"),
        (options(served, topic="a"), 'has no option "topic"'),
    ):
        with pytest.raises(PySparkException) as caught:
            spark.read.format("tieline").options(**asked).load().collect()
        assert text in (our_sentence(caught.value) or ""), str(caught.value)
