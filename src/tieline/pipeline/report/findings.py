"""What a power-quality report is made of: plain values, collected from Spark or written by hand in a test."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Final, NamedTuple

from tieline.pipeline.jobs.quality.clauses import NEVER_ASSESSED, SUBJECTS, YEAR_WEEKS, Clause
from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.jobs.quality.quantities import FREQUENCY, SIGNALLING, VOLTAGE
from tieline.pipeline.jobs.quality.verdicts import FAIL, PASS, TOO_LITTLE, of_counts


class Judgement(NamedTuple):
    """A clause, held against one week of one node, or of one of its phases; the counts are windows."""

    node: str
    phase: str
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


class YearJudgement(NamedTuple):
    """A clause on years, held against the 52 weeks that end with the last one."""

    node: str
    clause: str
    #: The first and the last of its weeks that are here, and how many those are.
    first: str
    last: str
    weeks: int
    windows: int
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


class Incident(NamedTuple):
    """One dip, swell, interruption or rapid change of the supply."""

    node: str
    start: datetime
    kind: str
    #: Which phases took part; None where nobody said it.
    phases: str | None
    #: What was left of the voltage, or how far it went, in percent of the nominal one.
    percent: float | None
    duration: float | None
    depth: str
    lasting: str


class LeftOut(NamedTuple):
    """Windows on end that were not judged, and why; without a quantity, silence of the whole node."""

    node: str
    quantity: str
    phase: str
    why: str
    begin: datetime
    end: datetime
    windows: int


class Course(NamedTuple):
    """The voltage of a node, or of a phase, for some time: the least, the mean and the greatest 10-minute mean."""

    node: str
    phase: str
    start: datetime
    low: float
    mean: float
    high: float


class Interval(NamedTuple):
    """One mean that is far from nominal."""

    quantity: str
    node: str
    phase: str
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
    #: The most severe ones, and how many of all those are.
    listed: tuple[Incident, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    course: tuple[Course, ...] = field(default=(), repr=False)
    course_s: int = 3_600
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
    def clauses(self) -> tuple[Clause, ...]:
        """The clauses on weeks and days for which there are judgements, in the order of the standard."""
        found = {each.clause for each in self.judgements}
        return tuple(each for each in self.limits.clauses() if each.name in found)

    @cached_property
    def year_clauses(self) -> tuple[Clause, ...]:
        """The clauses on years, which are judged from the counts of weeks."""
        return tuple(each for each in self.limits.clauses(FREQUENCY) if each.period == "year")

    @cached_property
    def rules(self) -> tuple[Clause, ...]:
        """The clauses that decide about a week."""
        return tuple(each for each in self.clauses if self.limits.is_rule(each))

    def main_clauses(self, quantity: str | None = None) -> tuple[Clause, ...]:
        """Those on voltage and frequency, or on one of them."""
        wanted = (VOLTAGE, FREQUENCY) if quantity is None else (quantity,)
        return tuple(each for each in self.clauses if each.quantity in wanted)

    @cached_property
    def further_clauses(self) -> tuple[Clause, ...]:
        """Those on what only some meters measure: flicker, unbalance, distortion, signals."""
        return tuple(each for each in self.clauses if each.quantity not in (VOLTAGE, FREQUENCY))

    @cached_property
    def not_assessed(self) -> tuple[tuple[str, str, str], ...]:
        """Number, subject and why, of what the standard covers and this report does not."""
        carried = {_subject(each.quantity) for each in self.clauses}
        missing = [
            (number, subject, _absent(quantity))
            for quantity, (number, subject) in SUBJECTS.items()
            if quantity not in carried
        ]
        if not any(each.kind == "rapid" for each in self.incidents):
            missing.append(("4.2.3.1", "single rapid voltage changes", "no meter told one; the standard has no limits"))
        return tuple(sorted([*missing, *NEVER_ASSESSED]))

    @cached_property
    def _index(self) -> dict[tuple[str, str, str], list[Judgement]]:
        found = defaultdict(list)
        for each in self.judgements:
            found[each.node, each.week, each.clause].append(each)
        return found

    def phases(self, node: str, clause: Clause) -> list[str]:
        """On which phases of a node a clause was judged; one empty name where there is only one."""
        return sorted({each.phase for week in self.weeks for each in self._index.get((node, week, clause.name), ())})

    def judgement(self, node: str, week: str, clause: Clause, phase: str | None = None) -> Judgement:
        """What was found about one clause on a phase, or on the worst one: a supply is as good as its worst phase."""
        found = self._index[node, week, clause.name]
        if phase is not None:
            return next(each for each in found if each.phase == phase)
        return min(found, key=lambda each: (_BADNESS[each.verdict], 1 if each.share is None else each.share))

    def has(self, node: str, clause: Clause) -> bool:
        """Whether a node has what the clause is about."""
        return any((node, week, clause.name) in self._index for week in self.weeks)

    def _verdicts(self, node: str, week: str, clauses: Iterable[Clause]) -> list[str]:
        return [each.verdict for clause in clauses for each in self._index.get((node, week, clause.name), ())]

    def week_verdict(self, node: str, week: str) -> str:
        """A week passes when all rules on it do, on all phases; one that fails is enough to fail."""
        return all_of(self._verdicts(node, week, self.rules))

    def clause_weeks(self, node: str, clause: Clause) -> Counter[str]:
        """How many weeks of a node ended with which verdict on a clause."""
        return Counter(all_of(self._verdicts(node, week, [clause])) for week in self.weeks)

    def node_weeks(self, node: str) -> Counter[str]:
        """How many weeks of a node ended with which verdict."""
        return Counter(self.week_verdict(node, week) for week in self.weeks)

    def node_verdict(self, node: str) -> str:
        """That of the weeks that could be judged, and of the year if it failed.

        How many weeks those were is always printed beside it, and so is what is known of the year.
        """
        years = {self.year(node, clause).verdict for clause in self.year_clauses}
        return FAIL if FAIL in years else of_weeks(self.node_weeks(node))

    def clause_verdict(self, node: str, clause: Clause) -> str:
        """The same for one clause."""
        return of_weeks(self.clause_weeks(node, clause))

    def year(self, node: str, clause: Clause) -> YearJudgement:
        """A clause on the year that ends with the last week, by the counts of its weeks.

        Windows of weeks that are not here count as not measured, so a short study can break a year but not pass it.
        """
        weekly = next(each for each in self.main_clauses(clause.quantity) if not each.is_absolute)
        last = self.weeks[-YEAR_WEEKS:]
        found = [self.judgement(node, week, weekly) for week in last]
        windows = sum(each.windows for each in found) + (YEAR_WEEKS - len(last)) * found[-1].windows
        judged, outside = sum(each.judged for each in found), sum(each.outside for each in found)
        return YearJudgement(
            node=node,
            clause=clause.name,
            first=last[0],
            last=last[-1],
            weeks=len(last),
            windows=windows,
            judged=judged,
            outside=outside,
            share=1 - outside / judged if judged else None,
            coverage=judged / windows,
            verdict=of_counts(outside, judged, windows, clause.permille, self.limits.least_coverage),
        )

    def coverage(self, quantity: str, nodes: Iterable[str] | None = None) -> float:
        """Which part of all windows was measured, of some nodes or of all."""
        clause = self.main_clauses(quantity)[0]
        places = [(node, week, clause.name) for node in nodes or self.nodes for week in self.weeks]
        chosen = [each for place in places for each in self._index.get(place, ())]
        windows = sum(each.windows for each in chosen)
        return sum(each.measured for each in chosen) / windows if windows else 0.0

    def lowest_share(self, node: str, clause: Clause) -> float | None:
        """The worst week's share of good windows, on the worst phase."""
        shares = [each.share for week in self.weeks for each in self._index.get((node, week, clause.name), ())]
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


#: Which verdict of several phases is the one to show.
_BADNESS: Final = {FAIL: 0, TOO_LITTLE: 1, PASS: 2}


def _subject(quantity: str) -> str:
    return "harmonics" if quantity.startswith("harmonic_") else quantity


def _absent(quantity: str) -> str:
    if quantity == SIGNALLING:
        return "no readings carry it, or the frequency of the signals was not said"
    return "no readings carry it"


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
