"""The run of a plan: first what will not be measured, then case after case; and what is shown of its progress.

Each failure is the last word of its rows.  On a terminal there is a bar, elsewhere a line for each step.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tieline.bench.load.job import Failure
from tieline.bench.suite.declaration import Case, Schedule, Suite
from tieline.bench.suite.results import Results, Row

#: The version of the form in which all records are written.
VERSION = 2
#: Where there is no bar, at most one line in so many seconds says what a step is doing.
_NOW_AND_THEN_S = 10.0


class RunObserver(Protocol):
    """Whoever wants to know how far the run has come."""

    def say(self, text: str) -> None:
        """Hear something that should be known before the run begins."""

    def planned(self, steps: int) -> None:
        """Hear how many steps will be made."""

    def step(self, text: str) -> None:
        """Hear that the next step begins."""

    def found(self, rows: Sequence[Row]) -> None:
        """Hear that these rows are complete."""


def run(suite: Suite, plan: Schedule, observer: RunObserver) -> Results:
    """Measure everything planned; on Ctrl-C what was started is ended and the interruption passes on."""
    began = time.monotonic()
    results = Results.begun(f"{suite.name}-{VERSION}", plan.versions, quick=plan.quick, absent=dict(plan.absent))
    results.machine |= plan.machine
    for why, goals in suite.forecast(plan).items():
        observer.say(f"will not be measured, because {why}:")
        for text in goals:
            observer.say(f"  {text}")
    observer.planned(plan.steps)
    running = CaseRunner(suite, results, observer)
    with contextlib.ExitStack() as stack:
        if any(not case.obstacle for case in plan.cases):
            for resource in plan.resources:
                stack.enter_context(resource)
        for case in plan.cases:
            is_late = time.monotonic() - began > plan.budget_s
            running.measure(case, case.obstacle or (f"{plan.budget_s:,.0f} s were over" if is_late else ""))
    results.seconds = round(time.monotonic() - began, 1)
    results.totals |= suite.totals(results)
    results.goals = [goal.judge(results) for goal in suite.goals]
    return results


class CaseRunner:
    """A run under way, as its cases see it."""

    def __init__(self, suite: Suite, results: Results, observer: RunObserver) -> None:
        self.results = results
        self._observer = observer
        self._failures: tuple[type[Exception], ...] = (Failure, OSError, MemoryError, *suite.failures)

    def measure(self, case: Case, objection: str = "") -> None:
        """Measure a case, or say why it is not."""
        if objection:
            for row in case.rows:
                row.end("not run", objection)
        else:
            with self.failing(case.rows):
                case.measure(self, case.rows)
        self.results.rows += case.rows
        self._observer.found(case.rows)

    def step(self, text: str) -> None:
        """Say what is being done now."""
        self._observer.step(text)

    @contextlib.contextmanager
    def failing(self, rows: Sequence[Row]) -> Iterator[None]:
        """Whatever fails inside becomes the last word of these rows."""
        try:
            yield
        except self._failures as failure:
            if not rows:
                raise  # nobody would say so
            for row in rows:
                row.end("failed", str(failure) or type(failure).__name__)


class Steps:
    """So many steps, and the one that is being made."""

    def __init__(self, console: Console, line: Callable[[Row], str] = str) -> None:
        """``line`` is how a row is told."""
        self._console = console
        self._line = line
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            refresh_per_second=2,  # drawing takes CPU that the brokers are measured by
        )
        self._task = self._bar.add_task("starting", total=None)
        self._steps = self._begun = 0
        self._title = ""
        self._said_at = 0.0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def planned(self, steps: int) -> None:
        """Hear how many steps will be made."""
        self._steps = steps
        self._bar.update(self._task, total=steps)

    def step(self, text: str) -> None:
        """Hear that the next step begins."""
        self._bar.update(self._task, description=text, completed=self._begun)
        self._title = text
        self._begun += 1
        if not self._console.is_terminal:
            self.say(f"[{self._begun}/{self._steps}] {text}")

    def detail(self, text: str) -> None:
        """Hear what the step is doing; where there is no bar to say so, it is printed now and then."""
        self._bar.update(self._task, description=f"{self._title}: {text}")
        now = time.monotonic()
        if not self._console.is_terminal and now - self._said_at >= _NOW_AND_THEN_S:
            self.say(f"  {text}")

    def found(self, rows: Sequence[Row]) -> None:
        """Hear that these rows are complete."""
        for row in rows:
            self.say(f"  {self._line(row)}")

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._said_at = time.monotonic()
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)
