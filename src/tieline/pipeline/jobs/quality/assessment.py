"""Everything that readings and incidents say about a network, as named tables: above all the verdicts on its weeks."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from tieline.pipeline.jobs.quality import flags, incidents, means, overview, polyphase, weeks, zones
from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.jobs.quality.quantities import QUANTITIES, SIGNALLING, Series, series_in
from tieline.pipeline.jobs.quality.verdicts import judge


@dataclass(frozen=True, slots=True)
class Assessment:
    """Tables that are computed when they are read; ``kept`` are those that others are made of."""

    #: What the readings carry.
    carried: tuple[Series, ...]
    #: The readings, each with the time until the next one of its node.
    timed: DataFrame
    #: node, every_s, first, last, readings, lines.
    roster: DataFrame
    #: node, monday: every node with every week.
    calendar: DataFrame
    #: node, quantity, phase, seconds, start, value, samples, measured, flagged, why: the means of all windows.
    means: DataFrame
    #: node, phase, monday, clause, and the columns of :func:`~tieline.pipeline.jobs.quality.verdicts.judge`.
    verdicts: DataFrame
    #: node, monday, zone_1_s, zone_2_s, zone_3_s.
    zones: DataFrame
    #: node, time, kind, residual, duration, percent, depth, lasting, phases, monday: one row for each.
    incidents: DataFrame
    #: node, quantity, phase, why, begin, end, windows.
    left_out: DataFrame
    #: volt_cell, hertz_cell, readings.
    plane: DataFrame

    @property
    def kept(self) -> tuple[DataFrame, ...]:
        """What is worth ``persist`` before several of the tables are read."""
        return self.timed, self.roster, self.means


def assess(readings: DataFrame, happened: DataFrame, limits: Limits) -> Assessment:
    """Hold readings against limits, beside the incidents that ``happened``.

    ``readings``: node, time, voltage, frequency, and columns of further quantities and of single phases by their names
    (``voltage_l1``, ``thd``; ``FURTHER`` in ``quantities`` has them all).  ``happened``: node, time, kind, residual,
    duration, and phase if there is one.
    """
    carried = tuple(
        each
        for each in series_in(readings.columns)
        if each.quantity != SIGNALLING or limits.signal_hz is not None  # without it there is no limit
    )
    timed = means.with_gaps(overview.with_furthest(readings, limits))
    roster = means.roster_of(timed, carried, limits)
    lines = means.lines_of(roster)
    calendar = weeks.calendar(roster, limits.time_zone)
    of_supply = polyphase.of_the_supply(happened, lines)
    excused = incidents.flagging(of_supply, limits)
    lengths = {QUANTITIES[each.quantity].window_s for each in carried}
    found = flags.mark_flagged(means.all_means(timed, carried, limits, lines), excused, calendar, lengths)
    expected = lines.select("node", "quantity", "phase").join(calendar, "node")
    return Assessment(
        carried=carried,
        timed=timed,
        roster=roster,
        calendar=calendar,
        means=found,
        verdicts=judge(found, expected, [each.quantity for each in carried], limits),
        zones=zones.time_in_zones(timed, roster, limits),
        incidents=incidents.classify(of_supply, limits),
        left_out=overview.left_out(found, timed, roster, calendar, limits),
        plane=zones.plane_density(timed, limits),
    )
