"""Everything that readings and incidents say about a network, as named tables."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from tieline.pipeline.jobs.quality import flags, incidents, means, plane, weeks, zones
from tieline.pipeline.jobs.quality.cadence import cadence
from tieline.pipeline.jobs.quality.clauses import WINDOW_S
from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.jobs.quality.verdicts import judge


@dataclass(frozen=True, slots=True)
class Assessment:
    """Tables that are computed when they are read; ``kept`` are those that others are made of."""

    #: node, every_s.
    cadence: DataFrame
    #: node, monday: every node with every week.
    calendar: DataFrame
    #: node, start, end, value, samples, measured, flagged: 10-minute means.
    voltage: DataFrame
    #: The same for 10-second means.
    frequency: DataFrame
    #: node, monday, clause, and the columns of ``verdicts.judge``.
    verdicts: DataFrame
    #: node, monday, zone_1_s, zone_2_s, zone_3_s.
    zones: DataFrame
    #: node, monday, kind, depth, lasting, incidents.
    incidents: DataFrame
    #: volt_cell, hertz_cell, readings.
    plane: DataFrame

    @property
    def kept(self) -> tuple[DataFrame, ...]:
        """What is worth ``persist`` before several of the tables are read."""
        return self.cadence, self.calendar, self.voltage, self.frequency


def assess(readings: DataFrame, happened: DataFrame, limits: Limits) -> Assessment:
    """Hold readings against limits, beside the incidents that ``happened``.

    ``readings``: node, time, voltage, frequency. ``happened``: node, time, kind, residual, duration.
    """
    usual = cadence(readings, limits)
    calendar = weeks.calendar(readings, limits.time_zone)
    voltage = flags.mark(means.voltage(readings, limits, usual), happened, calendar, WINDOW_S["voltage"])
    frequency = flags.mark(means.frequency(readings, limits, usual), happened, calendar, WINDOW_S["frequency"])
    return Assessment(
        cadence=usual,
        calendar=calendar,
        voltage=voltage,
        frequency=frequency,
        verdicts=judge(voltage, calendar, "voltage", limits).unionByName(
            judge(frequency, calendar, "frequency", limits)
        ),
        zones=zones.time_in_zones(readings, usual, limits),
        incidents=incidents.table(happened, limits),
        plane=plane.density(readings, limits),
    )
