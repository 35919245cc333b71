"""What a power-quality report is made of: plain values, collected from Spark or written by hand in a test."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from tieline.pipeline.jobs.quality.assessment import FAIL, PASS, TOO_LITTLE
from tieline.pipeline.jobs.quality.limits import Clause, Limits, Quantity


class Judgement(NamedTuple):
    """A clause, held against one week of one node; the counts are windows."""

    node: str
    week: str
    clause: str
    windows: int
    measured: int
    thin: int
    flagged: int
    judged: int
    outside: int
    share: float | None
    coverage: float
    verdict: str


class ZoneTime(NamedTuple):
    """Seconds that a node spent in each zone in a week."""

    node: str
    week: str
    zone_1_s: float
    zone_2_s: float
    zone_3_s: float


class IncidentCount(NamedTuple):
    """How many incidents fall into one cell of the standard's tables."""

    node: str
    week: str
    kind: str
    depth: str
    lasting: str
    incidents: int


class Interval(NamedTuple):
    """One mean that is far from nominal."""

    quantity: Quantity
    node: str
    start: datetime
    value: float
    percent: float
    is_flagged: bool


class Cell(NamedTuple):
    """A small rectangle of the voltage/frequency plane, and how many readings fell into it."""

    volt_cell: int
    hertz_cell: int
    readings: int


class Offsets(NamedTuple):
    """Which records of a broker's log the readings came from."""

    shard: str
    first: int
    last: int
    readings: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the readings came from."""

    lake: str
    event: str
    #: None: the tables have no such event type, so nobody recorded incidents.
    incident_event: str | None
    offsets: tuple[Offsets, ...] = ()


@dataclass(frozen=True)
class Findings:
    """Everything that the page shows, and the JSON that programs get."""

    limits: Limits
    origin: Origin
    first: datetime
    last: datetime
    readings: int
    judgements: tuple[Judgement, ...]
    zones: tuple[ZoneTime, ...] = ()
    incidents: tuple[IncidentCount, ...] = ()
    worst: tuple[Interval, ...] = ()
    plane: tuple[Cell, ...] = field(default=(), repr=False)
    #: The shortest and the longest usual interval between two readings of a node.
    every_s: tuple[float, float] | None = None

    @cached_property
    def nodes(self) -> list[str]:
        """All nodes, in the order of their names."""
        return sorted({each.node for each in self.judgements}, key=natural)

    @cached_property
    def weeks(self) -> list[str]:
        """All weeks, oldest first."""
        return sorted({each.week for each in self.judgements})

    @cached_property
    def _index(self) -> dict[tuple[str, str, str], Judgement]:
        return {(each.node, each.week, each.clause): each for each in self.judgements}

    def judgement(self, node: str, week: str, clause: Clause) -> Judgement:
        """What was found about one clause."""
        return self._index[node, week, clause.name]

    def week_verdict(self, node: str, week: str) -> str:
        """A week passes when all its clauses do; one that fails is enough to fail."""
        return all_of(self.judgement(node, week, clause).verdict for clause in self.limits.clauses())

    def clause_weeks(self, node: str, clause: Clause) -> Counter[str]:
        """How many weeks of a node ended with which verdict on a clause."""
        return Counter(self.judgement(node, week, clause).verdict for week in self.weeks)

    def node_weeks(self, node: str) -> Counter[str]:
        """How many weeks of a node ended with which verdict."""
        return Counter(self.week_verdict(node, week) for week in self.weeks)

    def node_verdict(self, node: str) -> str:
        """That of the weeks that could be judged; how many those were is always printed beside it."""
        return of_weeks(self.node_weeks(node))

    def clause_verdict(self, node: str, clause: Clause) -> str:
        """The same for one clause."""
        return of_weeks(self.clause_weeks(node, clause))

    def coverage(self, quantity: Quantity, nodes: Iterable[str] | None = None) -> float:
        """Which part of all windows was measured, of some nodes or of all."""
        clause = self.limits.clauses(quantity)[0]
        chosen = [self.judgement(node, week, clause) for node in nodes or self.nodes for week in self.weeks]
        windows = sum(each.windows for each in chosen)
        return sum(each.measured for each in chosen) / windows if windows else 0.0

    def lowest_share(self, node: str, clause: Clause) -> float | None:
        """The worst week's share of good windows."""
        shares = [self.judgement(node, week, clause).share for week in self.weeks]
        return min((share for share in shares if share is not None), default=None)

    def incident_counts(self, node: str | None = None) -> Counter[str]:
        """Incidents by kind, of one node or of all."""
        counts: Counter[str] = Counter()
        for each in self.incidents:
            if node in (None, each.node):
                counts[each.kind] += each.incidents
        return counts

    def zone_seconds(self, node: str | None = None) -> tuple[float, float, float]:
        """Seconds in each zone over all weeks, of one node or of all together."""
        mine = [each for each in self.zones if node in (None, each.node)]
        return (
            sum(each.zone_1_s for each in mine),
            sum(each.zone_2_s for each in mine),
            sum(each.zone_3_s for each in mine),
        )


def natural(name: str) -> list[tuple[int, str]]:
    """A key by which R2 comes before R10."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [(int(part), "") if number % 2 else (-1, part) for number, part in enumerate(parts)]


def all_of(verdicts: Iterable[str]) -> str:
    """The verdict on several things that all must pass."""
    found = set(verdicts)
    return FAIL if FAIL in found else PASS if found == {PASS} else TOO_LITTLE


def of_weeks(weeks: Counter[str]) -> str:
    """The verdict on several weeks: one that failed decides, and those without data do not count as good."""
    return FAIL if weeks[FAIL] else PASS if weeks[PASS] else TOO_LITTLE
