"""The voltage/frequency plane in three zones, and how long each node was in which.

Zone 1 is where both values are normal, zone 2 what the standard tolerates for a while, zone 3 what it never does. For
an island of 230 V and 50 Hz these are the zones of the microgrid example: 207 to 253 V with 49 to 51 Hz, and 195.5 to
253 V with 42.5 to 57.5 Hz.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality import weeks
from tieline.pipeline.jobs.quality.cadence import with_gaps
from tieline.pipeline.jobs.quality.limits import Limits, Range
from tieline.pipeline.jobs.quality.means import usable

#: A reading stands until the next one, but not for longer than so many times the node's usual interval.
STANDS_FOR: Final = 2.0


def zone(limits: Limits) -> Column:
    """1, 2 or 3, of the columns voltage and frequency."""
    normal = _within("voltage", limits.normal("voltage")) & _within("frequency", limits.normal("frequency"))
    tolerated = _within("voltage", limits.extreme("voltage")) & _within("frequency", limits.extreme("frequency"))
    return sql.when(normal, 1).when(tolerated, 2).otherwise(3)


def time_in_zones(readings: DataFrame, cadence: DataFrame, limits: Limits) -> DataFrame:
    """Seconds by node and week: columns node, monday, zone_1_s, zone_2_s, zone_3_s.

    What no reading stands for is in no zone.
    """
    complete = readings.where(usable("voltage") & usable("frequency")).select("node", "time", "voltage", "frequency")
    usual = sql.coalesce(sql.col("every_s"), sql.lit(0.0))
    stands = sql.least(sql.coalesce(sql.col("gap_s"), usual), usual * STANDS_FOR)
    timed = with_gaps(complete).join(sql.broadcast(cadence), "node").withColumn("stands_s", stands)
    seconds = [
        sql.sum(sql.when(zone(limits) == number, sql.col("stands_s")).otherwise(0.0)).alias(f"zone_{number}_s")
        for number in (1, 2, 3)
    ]
    week = weeks.monday(sql.col("time"), limits.time_zone).alias("monday")
    return timed.groupBy("node", week).agg(*seconds)


def _within(column: str, allowed: Range) -> Column:
    return sql.col(column).between(allowed.low, allowed.high)
