"""The run: the parts in order; a part that fails becomes rows that say so."""

from __future__ import annotations

import contextlib
import datetime as dt
import time
from collections.abc import Iterator, Sequence

from tieline.bench.load.job import Failure
from tieline.bench.machine import describe_commit, describe_machine, versions
from tieline.bench.match.run import Watcher
from tieline.bench.plan import measures
from tieline.bench.plan.bounds import tallies
from tieline.bench.plan.effort import (
    FRESH,
    LARGE,
    LOOSE,
    Mesh,
    Plan,
    distributed_name,
    found_name,
    replan_name,
    size_name,
)
from tieline.bench.plan.goals import judge
from tieline.bench.plan.record import NAIVE, OURS, PlanRecord
from tieline.bench.record import Row
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan as Solution
from tieline.plan.proof import Refuted

_LIBRARIES = ("highspy", "numba", "numpy", "scipy")


def run(plan: Plan, watcher: Watcher) -> PlanRecord:
    """Measure everything planned."""
    began = time.monotonic()
    record = PlanRecord(
        quick=plan.quick,
        started=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        commit=describe_commit(),
        machine=describe_machine(),
        versions=versions(*_LIBRARIES),
        absent={},
    )
    watcher.planned(plan.steps)
    watcher.step("compiling and warming up")
    record.compile_s = measures.warm_up()
    _Run(plan, record, watcher).all()
    record.seconds = round(time.monotonic() - began, 1)
    record.goals = judge(record)
    return record


class _Run:
    """The parts, writing into one record."""

    def __init__(self, plan: Plan, record: PlanRecord, watcher: Watcher) -> None:
        self._plan = plan
        self._effort = plan.effort
        self._record = record
        self._watcher = watcher
        #: Meshes whose links may fail later, with their plans.
        self._kept: dict[str, list[tuple[Instance, Solution]]] = {}

    def all(self) -> None:
        """Part after part."""
        for name, part in (
            ("sizes", self._sizes),
            ("found", self._found),
            ("networks", self._networks),
            ("first", self._first),
            ("replan", self._replan),
            ("bounds", self._bounds),
            ("distributed", self._distributed),
        ):
            if name in self._plan.parts:
                part()

    def _sizes(self) -> None:
        effort = self._effort
        for size in effort.sizes:
            for tightness in effort.tightness:
                title = f"{size}, tightness {tightness:g}"
                self._watcher.step(f"{title}: {effort.seeds} instances")
                mine = Row(workload=size_name(size, tightness), title=title, group="sizes", peer=OURS)
                theirs = Row(workload=mine.workload, title=title, group="sizes", peer=NAIVE)
                # the naive model is held against ours where goals do so: elsewhere it would only run into its limit
                rows = [mine, theirs] if tightness == LOOSE else [mine]
                with _failing(rows):
                    for seed in range(effort.seeds):
                        mine.repetitions.append(measures.ours(size, seed, tightness, effort.exact_s))
                        if theirs in rows:
                            theirs.repetitions.append(measures.naive(size, seed, tightness, effort.naive_s))
                self._add(rows)

    def _found(self) -> None:
        effort = self._effort
        for size in LARGE:
            for tightness in effort.tightness:
                title = f"{size}, tightness {tightness:g}, seeds from {FRESH:,}"
                self._watcher.step(f"{title}: the best plan of {effort.fresh} instances")
                row = Row(workload=found_name(size, tightness), title=title, group="found", peer=OURS)
                with _failing([row]):
                    for seed in range(FRESH, FRESH + effort.fresh):
                        row.repetitions.append(
                            measures.best_found(size, seed, tightness, effort.found_s, effort.better_s)
                        )
                self._add([row])

    def _networks(self) -> None:
        for size, seeds in self._effort.meshes:
            self._watcher.step(f"{size.title}: {seeds} x {size.seconds:.0f} s")
            row = Row(workload=size.name, title=size.title, group="networks", peer=OURS)
            with _failing([row]):
                for seed in range(seeds):
                    instance, found, metrics = measures.network(size, seed)
                    row.repetitions.append(metrics)
                    self._kept.setdefault(size.name, []).append((instance, found))
            self._add([row])

    def _first(self) -> None:
        for size in self._effort.first:
            self._watcher.step(f"{size.title}: first plan")
            row = Row(workload=f"first-{size.name}", title=size.title, group="first", peer=OURS)
            with _failing([row]):
                row.repetitions.append(measures.first_plan(size, 0))
            self._add([row])

    def _replan(self) -> None:
        for size, count in self._effort.failures:
            self._watcher.step(f"{count} links fail, one at a time: {size.title}")
            row = Row(workload=replan_name(size), title=f"a link of {size.title}", group="replan", peer=OURS)
            with _failing([row]):
                for seed, (instance, before) in enumerate(self._kept.get(size.name) or [self._planned(size)]):
                    row.repetitions += measures.failures(instance, before, count, size.seconds, seed=seed)
            self._add([row])

    def _planned(self, size: Mesh) -> tuple[Instance, Solution]:
        instance, found, _ = measures.network(size, 0)
        return instance, found

    def _bounds(self) -> None:
        self._watcher.step(f"bounds of {self._effort.bounded:,} small instances")
        rows = [
            Row(workload="bounds", title="small instances", group="bounds", peer=name, repetitions=[tally.metrics])
            for name, tally in tallies(self._effort.bounded).items()
        ]
        self._add(rows)

    def _distributed(self) -> None:
        for size, tightness in self._effort.talkative:
            title = f"{size}, tightness {tightness:g}"
            self._watcher.step(f"brokers among themselves: {title}")
            row = Row(workload=distributed_name(size, tightness), title=title, group="distributed", peer=OURS)
            with _failing([row]):
                for seed in range(self._effort.seeds):
                    row.repetitions.append(measures.distributed(size, seed, tightness))
            self._add([row])

    def _add(self, rows: list[Row]) -> None:
        self._record.rows += rows
        self._watcher.found(rows)


@contextlib.contextmanager
def _failing(rows: Sequence[Row]) -> Iterator[None]:
    """A failure inside becomes the rows' last word; so does a plan that the proof refutes."""
    try:
        yield
    except (Failure, Refuted, MemoryError) as failure:
        for row in rows:
            row.status, row.note = "failed", str(failure) or type(failure).__name__
