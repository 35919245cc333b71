"""How often each small rectangle of the voltage/frequency plane was measured: the cloud behind the zones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.jobs.quality.means import usable

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


def density(readings: DataFrame, limits: Limits) -> DataFrame:
    """Readings of all nodes by cell: columns volt_cell, hertz_cell, readings; usually a few thousand rows."""
    volts, hertz = axes(limits)
    cells = volts.cell(sql.col("voltage")).alias("volt_cell"), hertz.cell(sql.col("frequency")).alias("hertz_cell")
    complete = readings.where(usable("voltage") & usable("frequency"))
    return complete.groupBy(*cells).agg(sql.count(sql.lit(1)).alias("readings"))


def _axis(low: float, high: float) -> Axis:
    margin = (high - low) * _MARGIN
    return Axis(low - margin, high + margin)
