"""Means of a stream: late readings count while the watermark allows it, and the result is that of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from tests.pipeline.jobs.quality.frames import READINGS, readings_frame
from tests.pipeline.jobs.quality.oracle import Reading
from tieline.pipeline.jobs.quality import means
from tieline.pipeline.jobs.quality.limits import Limits

pytestmark = pytest.mark.timeout(300)

BEGIN = 1_794_182_400
LIMITS = Limits(every_s=5.0)

#: One file for each micro-batch. Spark drops by the watermark of two batches before, so the fourth is the first that
#: can lose a reading: it brings one that is 20 s late, which is allowed, and one that is far too late. The last moves
#: the watermark past everything.
FILES: tuple[tuple[Reading, ...], ...] = (
    (("a", BEGIN + 1.0, 230.0, 50.0), ("a", BEGIN + 6.0, 230.0, 50.2), ("b", BEGIN + 2.0, 231.0, 49.9)),
    (("a", BEGIN + 100.0, 230.0, 50.0), ("b", BEGIN + 101.0, 231.0, 49.0)),
    (("a", BEGIN + 102.0, 230.0, 50.2),),
    (("b", BEGIN + 81.0, 231.0, 49.5), ("a", BEGIN + 3.0, 230.0, 60.0)),
    (("a", BEGIN + 10_000.0, 230.0, 50.0),),
)


def test_late_readings_count_until_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    for number, rows in enumerate(FILES):
        readings_frame(spark, rows).coalesce(1).write.parquet(str(source / f"{number}"))
    stream = (
        spark.readStream.schema(READINGS)
        .option("maxFilesPerTrigger", 1)
        .option("latestFirst", "false")
        .parquet(str(source / "*"))
        .withWatermark("time", "30 seconds")
    )
    query = (
        means.frequency(stream, LIMITS)
        .writeStream.format("memory")
        .queryName("quality_means")
        .outputMode("append")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    found = {
        (row.node, row.begin - BEGIN): (round(row.value, 6), row.samples, row.measured)
        for row in spark.table("quality_means").withColumn("begin", sql.unix_seconds("start")).collect()
    }
    assert found == {
        ("a", 0): (50.1, 2, True),  # without the reading that came far too late
        ("b", 0): (49.9, 1, True),
        ("b", 80): (49.5, 1, True),  # 20 s late, and counted
        ("a", 100): (50.1, 2, True),
        ("b", 100): (49.0, 1, True),
    }
    dropped = [
        operator["numRowsDroppedByWatermark"]
        for progress in query.recentProgress
        for operator in progress["stateOperators"]
    ]
    assert sum(dropped) == 1


def test_a_stream_must_say_how_often_nodes_report(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="every_s"):
        means.voltage(readings_frame(spark, FILES[0]), Limits())
