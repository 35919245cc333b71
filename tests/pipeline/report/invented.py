"""Findings without Spark: a network of some nodes and weeks, good, bad and silent."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta

from tieline.pipeline.jobs.quality.clauses import Clause
from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.jobs.quality.quantities import QUANTITIES
from tieline.pipeline.jobs.quality.verdicts import FAIL, PASS, TOO_LITTLE
from tieline.pipeline.jobs.quality.zones import axes
from tieline.pipeline.report.findings import (
    Cell,
    Course,
    Findings,
    Incident,
    IncidentCount,
    Interval,
    Judgement,
    LeftOut,
    Offsets,
    Origin,
    ZoneTime,
)

WEEK_S = 604_800


def _at(day: int, hour: float) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC) + timedelta(hours=hour)


def _judgement(
    chance: random.Random, place: tuple[str, str, str], clause: Clause, is_bad: bool, is_silent: bool
) -> Judgement:
    windows = WEEK_S // QUANTITIES[clause.quantity].window_s
    measured = windows // 3 if is_silent else int(windows * chance.uniform(0.97, 1))
    flagged = chance.randrange(windows // 200 + 1)
    judged = measured - flagged
    outside = 0 if clause.is_absolute else int(judged * chance.uniform(0, 0.03))
    if is_bad:
        outside = int(judged * (0.004 if clause.is_absolute else 0.072))
    verdict = TOO_LITTLE if is_silent else FAIL if is_bad else PASS
    thin = min(7, windows - measured)
    shares = (1 - outside / judged, judged / windows)
    return Judgement(*place, clause.name, windows, measured, thin, flagged, judged, outside, *shares, verdict)


def _course(nodes: tuple[str, ...], phases: tuple[str, ...]) -> tuple[Course, ...]:
    """Three weeks with an evening dip each day; the last node was silent in the first week."""
    chance = random.Random(2)
    return tuple(
        Course(node, phase, start, mean - chance.uniform(1, 4), mean, mean + chance.uniform(1, 4))
        for node in nodes
        for number, phase in enumerate(phases)
        for hour in range(0, 21 * 24, 3)
        if not (node == nodes[-1] and 48 < hour < 168)
        for start in [datetime(2026, 10, 26, tzinfo=UTC) + timedelta(hours=hour)]
        for mean in [229 + 5 * number - 7 * math.exp(-(((hour % 24) - 18) ** 2) / 12)]
    )


def invent(
    nodes: tuple[str, ...] = ("R1", "R11", "R15", "R16", "C12", "I2"),
    weeks: tuple[str, ...] = ("2026-W44", "2026-W45", "2026-W46"),
    limits: Limits | None = None,
    phases: tuple[str, ...] = ("",),
    further: tuple[str, ...] = (),
) -> Findings:
    """The first node breaks the voltage clauses in the last week, the last node was silent in the first.

    With several phases only the last one is bad.  ``further`` quantities are all good.
    """
    limits = limits or Limits(system="island")
    chance = random.Random(1)
    judgements = []
    for node in nodes:
        for week in weeks:
            bad = node == nodes[0] and week == weeks[-1]
            silent = node == nodes[-1] and week == weeks[0]
            for quantity in ("voltage", "frequency", *further):
                for phase in phases if quantity == "voltage" else ("",):
                    for clause in limits.clauses(quantity):
                        if clause.period != "year":
                            is_bad = bad and quantity == "voltage" and phase == phases[-1]
                            judgements.append(_judgement(chance, (node, phase, week), clause, is_bad, silent))
    volts, hertz = axes(limits)
    cloud: dict[tuple[int, int], int] = {}
    for _ in range(30_000):
        at = (
            int((chance.gauss(228, 6) - volts.low) / volts.step),
            int((chance.gauss(50, 0.35 if chance.random() < 0.97 else 1.6) - hertz.low) / hertz.step),
        )
        cloud[at] = cloud.get(at, 0) + 20
    return Findings(
        limits=limits,
        origin=Origin("/var/lib/tieline/lake", "reading", "incident", (Offsets("north", 1_200, 5_443_200, 5_440_000),)),
        first=datetime(2026, 10, 26, tzinfo=UTC),
        last=datetime(2026, 11, 15, 23, 59, 59, tzinfo=UTC),
        readings=5_440_000,
        judgements=tuple(judgements),
        zones=tuple(
            ZoneTime(node, week, WEEK_S * 0.978 - 90, WEEK_S * 0.021, 90.0 if node == nodes[0] else 0.0)
            for node in nodes
            for week in weeks
        ),
        incidents=(
            IncidentCount(nodes[0], weeks[0], "dip", "80 > u ≥ 70", "10 – 200 ms", 3),
            IncidentCount(nodes[-1], weeks[0], "dip", "70 > u ≥ 40", "200 – 500 ms", 1),
            IncidentCount(nodes[1], weeks[-1], "dip", "outside the table", "outside the table", 2),
            IncidentCount(nodes[0], weeks[-1], "swell", "120 > u > 110", "0.5 – 5 s", 4),
            IncidentCount(nodes[0], weeks[-1], "interruption", "5 > u", "short, up to 3 min", 1),
        ),
        listed=(
            Incident(nodes[0], _at(9, 3.2), "dip", "L1 L2", 74.2, 0.14, "80 > u ≥ 70", "10 – 200 ms"),
            Incident(nodes[0], _at(11, 7.0), "interruption", None, 0.0, 12.0, "5 > u", "short, up to 3 min"),
            Incident(nodes[1], _at(12, 1.0), "dip", None, None, None, "outside the table", "outside the table"),
        ),
        left_out=(
            LeftOut(nodes[0], "voltage", phases[0], "dip", _at(9, 3), _at(9, 3.5), 3),
            LeftOut(nodes[-1], "", "", "no readings", _at(10, 0), _at(11, 0), 144),
        ),
        course=_course(nodes, phases),
        course_s=3 * 3_600,
        worst=(
            Interval("voltage", nodes[0], "", _at(12, 17.84), 193.81, -15.73, is_flagged=False),
            Interval("voltage", nodes[0], "", _at(12, 18), 198.4, -13.74, is_flagged=True),
            Interval(
                "frequency", nodes[1], "", datetime(2026, 11, 3, 4, 0, 10, tzinfo=UTC), 48.12, -3.76, is_flagged=False
            ),
        ),
        plane=tuple(Cell(*at, count) for at, count in cloud.items()),
        every_s=(1.0, 1.0),
    )
