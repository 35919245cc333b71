"""format("mqtt") inside Spark: a query, its end, what comes meanwhile, and its continuation."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.pipeline.foreign.test_stream import publish, reader
from tieline.pipeline.complaint import our_sentence
from tieline.pipeline.foreign.options import MQTT
from tieline.pytest_plugin import BrokerThread

pytestmark = pytest.mark.timeout(300)


def test_a_query_that_comes_back(spark: SparkSession, tmp_path: Path) -> None:
    with BrokerThread() as broker:
        frame = (
            spark.readStream.format("mqtt").option("broker", f"mqtt://127.0.0.1:{broker.port}")
            .option("topics", "n/#").option("spool", str(tmp_path / "spool")).option("maxRowsPerTrigger", 25).load()
        )  # fmt: skip
        assert frame.schema == MQTT

        def run() -> None:
            frame.writeStream.format("parquet").option("path", str(tmp_path / "out")).option(
                "checkpointLocation", str(tmp_path / "checkpoint")
            ).trigger(availableNow=True).start().awaitTermination()

        # the broker queues for a session that it knows
        known = reader(broker.port, tmp_path / "spool")
        known.initialOffset()
        known.stop()
        for first in (0, 40):
            publish(broker.port, first, first + 40)
            run()
        found = spark.read.parquet(str(tmp_path / "out")).selectExpr("cast(string(payload) AS int) AS n").collect()
        assert sorted(row.n for row in found) == list(range(80))


def test_refusals_are_sentences(spark: SparkSession) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.read.format("mqtt").load().collect()
    assert "MQTT keeps no history to read" in (our_sentence(caught.value) or "")
