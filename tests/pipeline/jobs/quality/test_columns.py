"""Tables of other shapes become readings: other names, nodes from topics, times that end or begin a reading."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality.columns import Columns, Unmapped, incidents, readings

pytestmark = pytest.mark.timeout(300)

NOON = 1_794_225_600


@pytest.fixture(name="table", scope="module")
def _table(spark: SparkSession) -> DataFrame:
    rows = [("grid/a/R1/state", NOON, "one", 231, 1), ("grid", NOON, None, None, 2)]
    return spark.createDataFrame(rows, "_topic string, at long, meter string, `u.rms` int, day int").withColumn(
        "_time", sql.timestamp_seconds("at")
    )


def _rows(table: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in table.withColumn("time", sql.unix_micros("time")).collect()]


def test_an_attribute_names_the_node_and_else_the_topic_does(table: DataFrame) -> None:
    found = readings(table, Columns(node="meter", voltage="u.rms"))
    before_noon = NOON * 1_000_000 - 1  # a reading that ends at noon is about the time before
    assert _rows(found) == [("one", before_noon, 231.0, None), ("grid", before_noon, None, None)]


def test_a_level_of_the_topic_names_the_node(table: DataFrame) -> None:
    found = readings(table, Columns(node_topic_level=3, voltage="u.rms", stamped="begin"))
    assert _rows(found) == [("R1", NOON * 1_000_000, 231.0, None), ("grid", NOON * 1_000_000, None, None)]


def test_what_is_missing_is_named_with_what_is_there(table: DataFrame) -> None:
    with pytest.raises(Unmapped, match=r'no column "voltage"; there is at, meter, u\.rms'):
        readings(table, Columns(node="meter"))
    with pytest.raises(Unmapped, match='no column "node"'):
        readings(table, Columns(voltage="u.rms"))
    with pytest.raises(Unmapped, match='"meter" holds string'):
        readings(table, Columns(node="meter", voltage="meter"))
    with pytest.raises(Unmapped, match='no column "kind"'):
        incidents(table, Columns(node="meter"))
