"""Findings without Spark: a network of some nodes and weeks, good, bad and silent."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from tieline.pipeline.jobs.quality.assessment import FAIL, PASS, TOO_LITTLE
from tieline.pipeline.jobs.quality.limits import WINDOW_S, Limits
from tieline.pipeline.jobs.quality.zones import axes
from tieline.pipeline.report.findings import (
    Cell,
    Findings,
    IncidentCount,
    Interval,
    Judgement,
    Offsets,
    Origin,
    ZoneTime,
)

WEEK_S = 604_800


def invent(
    nodes: tuple[str, ...] = ("R1", "R11", "R15", "R16", "C12", "I2"),
    weeks: tuple[str, ...] = ("2026-W44", "2026-W45", "2026-W46"),
    limits: Limits | None = None,
) -> Findings:
    """The first node breaks the voltage clauses in the last week, the last node was silent in the first."""
    limits = limits or Limits(system="island")
    chance = random.Random(1)
    judgements = []
    for node in nodes:
        for week in weeks:
            bad = node == nodes[0] and week == weeks[-1]
            silent = node == nodes[-1] and week == weeks[0]
            for clause in limits.clauses():
                windows = WEEK_S // WINDOW_S[clause.quantity]
                measured = windows // 3 if silent else int(windows * chance.uniform(0.97, 1))
                flagged = chance.randrange(windows // 200 + 1)
                judged = measured - flagged
                outside = 0 if clause.is_absolute else int(judged * chance.uniform(0, 0.03))
                if bad and clause.quantity == "voltage":
                    outside = int(judged * (0.004 if clause.is_absolute else 0.072))
                verdict = TOO_LITTLE if silent else FAIL if bad and clause.quantity == "voltage" else PASS
                judgements.append(
                    Judgement(
                        node,
                        week,
                        clause.name,
                        windows,
                        measured,
                        min(7, windows - measured),
                        flagged,
                        judged,
                        outside,
                        1 - outside / judged,
                        judged / windows,
                        verdict,
                    )
                )
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
        worst=(
            Interval("voltage", nodes[0], datetime(2026, 11, 12, 17, 50, tzinfo=UTC), 193.81, -15.73, is_flagged=False),
            Interval("voltage", nodes[0], datetime(2026, 11, 12, 18, 0, tzinfo=UTC), 198.4, -13.74, is_flagged=True),
            Interval(
                "frequency", nodes[1], datetime(2026, 11, 3, 4, 0, 10, tzinfo=UTC), 48.12, -3.76, is_flagged=False
            ),
        ),
        plane=tuple(Cell(*at, count) for at, count in cloud.items()),
        every_s=(1.0, 1.0),
    )
