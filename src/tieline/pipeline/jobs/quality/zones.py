"""The voltage/frequency plane in three zones, and how long each node was in which.

Zone 1 is where both values are normal, zone 2 what the standard tolerates for a while, zone 3 what it never does. For
an island of 230 V and 50 Hz these are the zones of the microgrid example: 207 to 253 V with 49 to 51 Hz, and 195.5 to
253 V with 42.5 to 57.5 Hz.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality import weeks
from tieline.pipeline.jobs.quality.limits import Limits, Range
from tieline.pipeline.jobs.quality.means import usable

#: A reading stands until the next one, but not for longer than so many times the node's usual interval.
STANDS_FOR: Final = 2.0


def zone(limits: Limits) -> Column:
    """1, 2 or 3, of the columns voltage and frequency."""
    normal = _within("voltage", limits.normal("voltage")) & _within("frequency", limits.normal("frequency"))
    tolerated = _within("voltage", limits.extreme("voltage")) & _within("frequency", limits.extreme("frequency"))
    return sql.when(normal, 1).when(tolerated, 2).otherwise(3)


def time_in_zones(timed: DataFrame, roster: DataFrame, limits: Limits) -> DataFrame:
    """Seconds by node and week: columns node, monday, zone_1_s, zone_2_s, zone_3_s.

    ``timed``: readings with ``gap_s``.  What no reading stands for is in no zone, and so is a reading that lacks one of
    the two values.
    """
    usual = sql.coalesce(sql.col("every_s"), sql.lit(0.0))
    stands = sql.least(sql.coalesce(sql.col("gap_s"), usual), usual * STANDS_FOR)
    complete = timed.where(usable("voltage") & usable("frequency")).join(
        sql.broadcast(roster.select("node", "every_s")), "node"
    )
    seconds = [
        sql.sum(sql.when(zone(limits) == number, stands).otherwise(0.0)).alias(f"zone_{number}_s")
        for number in (1, 2, 3)
    ]
    week = weeks.monday(sql.col("time"), limits.time_zone).alias("monday")
    return complete.groupBy("node", week).agg(*seconds)


def _within(column: str, allowed: Range) -> Column:
    return sql.col(column).between(allowed.low, allowed.high)


#: How far the picture goes beyond the tolerated range, as a part of that range.
_MARGIN: Final = 0.12
_CELLS: Final = 720


@dataclass(frozen=True, slots=True)
class Axis:
    """One side of the plane, cut into cells of equal width."""

    low: float
    high: float
    cells: int = _CELLS

    @property
    def step(self) -> float:
        return (self.high - self.low) / self.cells

    def cell(self, value: Column) -> Column:
        """The number of the cell; values beyond the ends are in the first and the last one."""
        clipped = sql.least(sql.greatest(value, sql.lit(self.low)), sql.lit(self.high))
        return sql.least(sql.floor((clipped - self.low) / self.step), sql.lit(self.cells - 1)).cast("int")


def axes(limits: Limits) -> tuple[Axis, Axis]:
    """Voltage and frequency, so that all three zones are in the picture."""
    return _axis(*limits.extreme("voltage")), _axis(*limits.extreme("frequency"))


def plane_density(readings: DataFrame, limits: Limits) -> DataFrame:
    """Readings of all nodes by cell: columns volt_cell, hertz_cell, readings; usually a few thousand rows."""
    volts, hertz = axes(limits)
    cells = volts.cell(sql.col("voltage")).alias("volt_cell"), hertz.cell(sql.col("frequency")).alias("hertz_cell")
    complete = readings.where(usable("voltage") & usable("frequency"))
    return complete.groupBy(*cells).agg(sql.count(sql.lit(1)).alias("readings"))


def _axis(low: float, high: float) -> Axis:
    margin = (high - low) * _MARGIN
    return Axis(low - margin, high + margin)
