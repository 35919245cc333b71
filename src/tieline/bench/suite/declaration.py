"""What a benchmark declares: what its numbers mean and are to reach, how they are shown, and what is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from tieline.bench.metrics import Metric
from tieline.bench.suite.picture import Picture
from tieline.bench.suite.results import Key, Results, Row, Verdict

#: Why a goal has no number when the caller asked for other parts.
NOT_ASKED = "not asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTable:
    """How the rows of one group are shown."""

    title: str
    #: The shown numbers, and the headings of their columns.
    columns: Mapping[str, str]
    #: A line for each workload and a column for each peer; the numbers of a cell in the order of the columns.
    is_grid: bool = False
    #: The last column of a grid is the ratio of these two peers.
    ratio: tuple[str, str] | None = None
    #: Workloads of which other numbers are shown.
    instead: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One sentence of the requirements, with the rows that decide about it."""

    #: ``{}`` stands for the detail, if there is one.
    text: str
    limit: float
    unit: str
    #: Computes the number from the rows; None if they were not measured.
    value: Callable[[Results], float | None]
    #: The rows that the number is about: one is enough, and if one failed, the goal is not met.
    rows: tuple[Key, ...]
    #: The rows that it is held against; one of them is enough.
    against: tuple[Key, ...] = ()
    at_least: bool = False
    #: How much the number rests on, in words that are part of the text.
    detail: Callable[[Results], str] | None = None

    def judge(self, results: Results) -> Verdict:
        """Hold the measured number against the limit."""
        measured = self.value(results)
        failed = any(map(results.failed, self.rows))
        reasons = {(row.workload, row.peer): "" if row.metrics else row.note for row in results.rows}
        return Verdict(
            text=self.text.format(self.detail(results) if self.detail else ""),
            limit=self.limit,
            unit=self.unit,
            at_least=self.at_least,
            measured=measured,
            failed=failed,
            why=self.objection(reasons, results.absent) if measured is None else "",
        )

    def objection(self, reasons: Mapping[Key, str], absent: Mapping[str, str]) -> str:
        """Why there is no number, given for each row why it has none; nothing if there is one."""
        for keys in (self.rows, self.against):
            words = [reasons.get(key, _missing(key, absent)) for key in keys]
            if keys and all(words):
                return next((text for text in words if text != NOT_ASKED), NOT_ASKED)
        return ""


def _missing(key: Key, absent: Mapping[str, str]) -> str:
    _, peer = key
    return f"{peer} is not installed (to install it: {absent[peer]})" if peer in absent else NOT_ASKED


def value_goal(
    text: str,
    limit: float,
    unit: str,
    key: Key,
    metric: str,
    *,
    at_least: bool = False,
    detail: Callable[[Results], str] | None = None,
) -> Goal:
    """A goal about one number of one row."""
    return Goal(
        text=text,
        limit=limit,
        unit=unit,
        value=lambda results: results.value(*key, metric),
        rows=(key,),
        at_least=at_least,
        detail=detail,
    )


def ratio_goal(
    text: str, limit: float, workload: str, metric: str, peers: tuple[str, str], *, at_least: bool = False
) -> Goal:
    """A goal about one number of the first of two peers, times that of the second."""
    subject, baseline = peers
    return Goal(
        text=text,
        limit=limit,
        unit="x",
        value=lambda results: results.ratio(workload, metric, subject, baseline),
        rows=((workload, subject),),
        against=((workload, baseline),),
        at_least=at_least,
    )


class Running(Protocol):
    """What a case is given while it is measured."""

    results: Results

    def step(self, text: str) -> None:
        """Say what is being done now."""

    def failing(self, rows: Sequence[Row]) -> AbstractContextManager[None]:
        """Whatever fails inside becomes the last word of these rows only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Rows that are measured together."""

    rows: list[Row]
    measure: Callable[[Running, list[Row]], None]
    #: About how long it takes.
    seconds: float
    #: How many steps it tells.
    steps: int = 1
    #: Why it cannot be measured here, in a sentence that says what would help.
    obstacle: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What is to be measured, in this order, and with what."""

    cases: Sequence[Case]
    quick: bool
    versions: Mapping[str, str]
    absent: Mapping[str, str] = field(default_factory=dict)
    #: No case begins later than this; those left out are reported as not run.
    budget_s: float
    #: What cases share, opened before the first and closed after the last.
    resources: Sequence[AbstractContextManager[object]] = ()
    #: What else should be known about the machine.
    machine: Mapping[str, str | int | float] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """How many steps will be told."""
        return sum(case.steps for case in self.cases if not case.obstacle)

    def reasons(self) -> dict[Key, str]:
        """For each row why it will probably have no numbers; nothing where it will have some."""
        found: dict[Key, str] = {}
        expected_s = 0.0
        for case in self.cases:
            late = f"the {self.budget_s:,.0f} s of this run will probably be over before its turn comes"
            why = case.obstacle or (late if expected_s > self.budget_s else "")
            expected_s += 0.0 if case.obstacle else case.seconds
            found |= {(row.workload, row.peer): why or row.note for row in case.rows}
        return found


def _nothing(_results: Results) -> Iterable[str]:
    return ()


def _none(_results: Results) -> Mapping[str, float]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One benchmark: everything about it that does not depend on what a caller asks for."""

    #: What the command and the files are called.
    name: str
    metrics: Mapping[str, Metric]
    #: By the group of their rows, in the order in which they are shown.
    tables: Mapping[str, GroupTable]
    goals: Sequence[Goal]
    picture: Picture | None = None
    #: The headings of a row's title and of who was measured.
    headings: tuple[str, str] = ("case", "with")
    #: What a reader should know before the tables, and after them.
    words: Callable[[Results], Iterable[str]] = _nothing
    remarks: Callable[[Results], Iterable[str]] = _nothing
    #: Numbers of the run as a whole, computed from its rows.
    totals: Callable[[Results], Mapping[str, float]] = _none
    #: Why the results may not be used, in words: the command fails then.
    faults: Callable[[Results], Iterable[str]] = _nothing
    #: What may be raised beside failures of the brokers, and becomes a row's last word.
    failures: tuple[type[Exception], ...] = ()

    def forecast(self, plan: Schedule) -> dict[str, list[str]]:
        """The goals that this plan will not measure, by the reason; those that nobody asked for are not among them."""
        reasons = plan.reasons()
        found: dict[str, list[str]] = {}
        for goal in self.goals:
            why = goal.objection(reasons, plan.absent)
            if why and why != NOT_ASKED:
                found.setdefault(why, []).append(goal.text.format(""))
        return found
