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


def test_phases_and_further_quantities_have_names_of_their_own(spark: SparkSession) -> None:
    names = "_topic string, at long, node string, u1 double, voltage_l2 double, u3 double, THD double"
    table = spark.createDataFrame([("t", NOON, "R1", 230.0, 231.0, 232.0, 2.5)], names)
    table = table.withColumn("_time", sql.timestamp_seconds("at"))
    further = {"voltage_l1": "u1", "voltage_l3": "u3", "thd": "THD"}
    row = readings(table, Columns(further=further)).collect()[0].asDict()
    assert (row["voltage"], row["voltage_l1"], row["voltage_l2"], row["voltage_l3"]) == (None, 230.0, 231.0, 232.0)
    assert row["thd"] == 2.5
    with pytest.raises(Unmapped, match='"thx" is no quantity'):
        Columns(further={"thx": "THD"})


def test_phases_that_come_one_by_one_stand_side_by_side(spark: SparkSession) -> None:
    rows = [("R1", NOON, "1", 231.0, 50.0), ("R1", NOON, "l2", 232.0, None), ("R1", NOON, "C", 233.0, None)]
    rows.append(("R1", NOON + 1, "L3", 234.0, 50.1))
    table = spark.createDataFrame(rows, "node string, at long, phase string, voltage double, frequency double")
    table = table.withColumns({"_time": sql.timestamp_seconds("at"), "_topic": sql.lit("t")})
    found = readings(table, Columns(stamped="begin")).orderBy("time").collect()
    assert [(row.frequency, row.voltage_l1, row.voltage_l2, row.voltage_l3) for row in found] == [
        (50.0, 231.0, 232.0, 233.0),
        (50.1, None, None, 234.0),
    ]


def test_a_rapid_change_says_how_far_it_went(spark: SparkSession) -> None:
    rows = [("R1", NOON, "rapid", 219.0, -11.5, 0.4, "2"), ("R1", NOON, "dip", 150.0, -80.0, 0.4, None)]
    names = "node string, at long, kind string, residual double, change double, duration double, phase string"
    table = spark.createDataFrame(rows, names)
    table = table.withColumns({"_time": sql.timestamp_seconds("at"), "_topic": sql.lit("t")})
    found = incidents(table, Columns()).collect()
    assert [(row.kind, row.residual, row.phase) for row in found] == [("rapid", 11.5, "L2"), ("dip", 150.0, None)]
