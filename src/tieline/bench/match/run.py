"""The run: the parts in order; a part that fails becomes rows that say so, and a wrong answer is such a failure."""

from __future__ import annotations

import contextlib
import datetime as dt
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

from tieline.bench.load.generator import Generator
from tieline.bench.load.job import Failure
from tieline.bench.machine import describe_commit, describe_machine, versions
from tieline.bench.match.broker import PLAIN, WITH_NUMBA, WITHOUT_NUMBA, Compare, unpacked
from tieline.bench.match.engines import Numba, absent_engines
from tieline.bench.match.goals import judge
from tieline.bench.match.index_jobs import NO_BROKER, Search, Update
from tieline.bench.match.plan import PARTS, Plan, end_name, update_name
from tieline.bench.match.record import MatchRecord
from tieline.bench.match.shapes import EVENT_TYPE, Shape, Spread
from tieline.bench.match.workload import counted
from tieline.bench.peers.brokers import Tieline
from tieline.bench.peers.instance import Instance
from tieline.bench.record import Row

__all__ = ["PARTS", "Plan", "Watcher", "run"]


class Watcher(Protocol):
    """Whoever wants to know how far the run has come."""

    def planned(self, steps: int) -> None:
        """So many steps will be made."""

    def step(self, text: str) -> None:
        """A step begins."""

    def found(self, rows: Sequence[Row]) -> None:
        """Rows are complete."""


def run(plan: Plan, watcher: Watcher) -> MatchRecord:
    """Measure everything planned; on Ctrl-C brokers and generators are ended and the interruption passes on."""
    began = time.monotonic()
    record = MatchRecord(
        quick=plan.quick,
        started=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        commit=describe_commit(),
        machine=describe_machine(),
        versions=versions("numpy", "numba", "rtree"),
        absent=absent_engines(),
    )
    watcher.planned(plan.steps)
    _Run(plan, record, watcher).all()
    record.seconds = round(time.monotonic() - began, 1)
    record.goals = judge(record)
    return record


class _Run:
    """The parts, writing into one record."""

    def __init__(self, plan: Plan, record: MatchRecord, watcher: Watcher) -> None:
        self._plan = plan
        self._effort = plan.effort
        self._record = record
        self._watcher = watcher

    def all(self) -> None:
        """Part after part."""
        if "engine" in self._plan.parts:
            self._engine()
        if "update" in self._plan.parts:
            self._update()
        if "end" in self._plan.parts:
            for spread in self._effort.spreads:
                self._end(spread)

    def _engine(self) -> None:
        effort = self._effort
        with Generator() as generator:
            for configuration, engines in self._plan.searches():
                title = f"{counted(configuration.subscriptions)}, {configuration.column}"
                rows = [Row(workload=configuration.name, title=title, group="engine", peer=name) for name in engines]
                self._watcher.step(f"{title}: {', '.join(engines)}")
                for row in rows:
                    job = Search(
                        configuration=configuration, engine=row.peer, passes=effort.passes, seconds=effort.search_s
                    )
                    with _failing([row]):
                        row.repetitions.append(generator.run(job, NO_BROKER))
                self._add(rows)

    def _update(self) -> None:
        for configuration, engines in self._plan.updates():
            title = f"{counted(configuration.subscriptions)}, {configuration.attributes} attributes"
            rows = [
                Row(workload=update_name(configuration), title=title, group="update", peer=name) for name in engines
            ]
            self._watcher.step(f"changes, {title}: {', '.join(engines)}")
            for row in rows:
                with _failing([row]), Generator() as generator:
                    row.repetitions.append(
                        generator.run(Update(configuration=configuration, engine=row.peer), NO_BROKER)
                    )
            self._add(rows)

    def _end(self, spread: Spread) -> None:
        effort = self._effort
        names = [WITH_NUMBA] if Numba.is_present() else [WITHOUT_NUMBA]
        if Numba.is_present() and effort.without_numba:
            names.append(WITHOUT_NUMBA)
        title = f"{counted(effort.conditions)}, {spread}"
        rows = {
            name: Row(workload=end_name(spread, effort.conditions), title=title, group="end", peer=name)
            for name in (PLAIN, *names)
        }
        self._watcher.step(f"brokers with {title}")
        with _failing(list(rows.values())), contextlib.ExitStack() as stack:
            generator = stack.enter_context(Generator())
            instances = [
                Instance(Tieline(EVENT_TYPE, without="numba" if name == WITHOUT_NUMBA else ""), None) for name in rows
            ]
            for instance in instances:
                stack.callback(instance.stop)
            plain, *sifting = [instance.start() for instance in instances]
            job = Compare(
                shape=Shape(
                    spread=spread,
                    subscriptions=effort.conditions,
                    clients=effort.clients,
                    events=effort.events,
                ),
                sifting=tuple(zip(names, sifting, strict=True)),
                seconds=effort.spell_s,
                repetitions=effort.repetitions,
                beside_s=effort.beside_s,
            )
            try:
                found = generator.run(job, plain)
            except Failure as failure:
                obituaries = [obituary for instance in instances if (obituary := instance.obituary())]
                raise Failure("; ".join(obituaries) or str(failure)) from failure
            for name, repetitions in unpacked(found).items():
                rows[name].repetitions += repetitions
        self._add(list(rows.values()))

    def _add(self, rows: list[Row]) -> None:
        self._record.rows += rows
        self._watcher.found(rows)


@contextlib.contextmanager
def _failing(rows: Sequence[Row]) -> Iterator[None]:
    """A failure inside becomes the rows' last word."""
    try:
        yield
    except (Failure, OSError) as failure:
        for row in rows:
            row.status, row.note = "failed", str(failure)
