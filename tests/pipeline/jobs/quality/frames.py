"""Readings and incidents of tests as Spark frames."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from tests.pipeline.jobs.quality.oracle import Incident, Reading

READINGS = "node string, time timestamp, voltage double, frequency double"
INCIDENTS = "node string, time timestamp, kind string, residual double, duration double"


def readings_frame(spark: SparkSession, rows: Iterable[Reading]) -> DataFrame:
    table = pd.DataFrame(rows, columns=["node", "time", "voltage", "frequency"])
    return spark.createDataFrame(_timed(table).astype({"voltage": float, "frequency": float}), READINGS)


def incidents_frame(spark: SparkSession, rows: Iterable[Incident]) -> DataFrame:
    table = pd.DataFrame(rows, columns=["node", "time", "kind", "residual", "duration"])
    return spark.createDataFrame(_timed(table).astype({"residual": float, "duration": float}), INCIDENTS)


def _timed(table: pd.DataFrame) -> pd.DataFrame:
    table["time"] = pd.to_datetime((table["time"] * 1e6).round().astype("int64"), unit="us", utc=True)
    return table
