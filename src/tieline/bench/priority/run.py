"""The run: the parts in order, the two brokers side by side or taking turns within each.

The thin link and the slow reader need hardly any processor time, so they run together; everything else runs alone.
A part that cannot run is left out with a reason; a part that fails becomes rows that say so.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from tieline.bench.load.generator import Generator
from tieline.bench.load.job import Failure, Metrics
from tieline.bench.machine import describe_commit, describe_machine
from tieline.bench.peers import BASELINE, SUBJECT, known_peers
from tieline.bench.peers.brokers import Tieline
from tieline.bench.peers.instance import Instance
from tieline.bench.peers.peer import executable
from tieline.bench.priority import busy, cost, link, slow, thin
from tieline.bench.priority.goals import judge
from tieline.bench.priority.record import PriorityRecord
from tieline.bench.record import Row

PARTS = {
    "thin": "a subscriber behind 128 kbit/s: urgent, bulk and low flows (needs root)",
    "busy": "50 publishers at full speed beside an urgent one",
    "slow": "a subscriber that reads 1 kB/s, and what others notice of it",
    "cost": "what classes cost while nothing is congested",
}


class Watcher(Protocol):
    """Whoever wants to know how far the run has come."""

    def planned(self, steps: int) -> None:
        """So many steps will be made."""

    def step(self, text: str) -> None:
        """A step begins."""

    def found(self, rows: Sequence[Row]) -> None:
        """Rows are complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is done."""

    thin_s: float
    slow_s: float
    busy_s: float
    busy_repetitions: int
    stranger_s: float
    stranger_repetitions: int
    cost_s: float
    cost_repetitions: int


FULL = Effort(
    thin_s=45.0,
    slow_s=30.0,
    busy_s=5.0,
    busy_repetitions=3,
    stranger_s=0.6,
    stranger_repetitions=3,
    cost_s=0.5,
    cost_repetitions=7,
)
QUICK = Effort(
    thin_s=14.0,
    slow_s=16.0,
    busy_s=1.5,
    busy_repetitions=3,
    stranger_s=0.2,
    stranger_repetitions=3,
    cost_s=0.2,
    cost_repetitions=3,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be run."""

    parts: Sequence[str] = tuple(PARTS)
    quick: bool = False

    @property
    def effort(self) -> Effort:
        """The amount of work."""
        return QUICK if self.quick else FULL

    @property
    def steps(self) -> int:
        """Number of steps that a watcher will hear of."""
        effort = self.effort
        each = {
            "thin": 1,
            "busy": 2 * effort.busy_repetitions,
            "slow": 1 + 2 * effort.stranger_repetitions,
            "cost": len(cost.CASES),
        }
        return sum(each[part] for part in self.parts)


def run(plan: Plan, watcher: Watcher) -> PriorityRecord:
    """Measure everything planned; on Ctrl-C brokers and namespaces are removed and the interruption passes on."""
    began = time.monotonic()
    known = known_peers()
    versions = {name: known[name].version() for name in (SUBJECT, BASELINE)}
    record = PriorityRecord(
        quick=plan.quick,
        started=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        commit=describe_commit(),
        machine=describe_machine(),
        versions={name: version for name, version in versions.items() if version is not None},
        absent={name: known[name].install for name, version in versions.items() if version is None},
    )
    watcher.planned(plan.steps)
    _Run(plan, record, watcher).all()
    record.seconds = round(time.monotonic() - began, 1)
    record.goals = judge(record)
    return record


class _Run:
    """The parts, writing into one record."""

    def __init__(self, plan: Plan, record: PriorityRecord, watcher: Watcher) -> None:
        self._plan = plan
        self._effort = plan.effort
        self._record = record
        self._watcher = watcher
        self._peers = list(record.versions)

    def all(self) -> None:
        """Part after part."""
        with _in_background("slow" in self._plan.parts, self._peers, self._effort.slow_s) as watched:
            if "thin" in self._plan.parts:
                self._thin()
            if watched is not None:
                self._slow(watched)
        if "busy" in self._plan.parts:
            self._busy()
        if "slow" in self._plan.parts:
            self._strangers()
        if "cost" in self._plan.parts:
            self._cost()

    def _thin(self) -> None:
        obstacle = link.obstacle()
        if obstacle:
            self._record.left_out["thin"] = obstacle
            return
        seconds = self._effort.thin_s
        cases = [case for case in thin.CASES if case.peer in self._peers]
        if executable("openssl") is None:
            self._record.left_out["thin, TLS"] = "the openssl command is missing"
            cases = [case for case in cases if not case.is_tls]
        rows = [Row(workload=case.name, title=case.title, group="thin", peer=case.peer) for case in cases]
        self._watcher.step(f"thin link: {len(cases)} links at once for {seconds:.0f} s")
        with _failing(rows):
            for row, result in zip(rows, thin.run(cases, seconds=seconds), strict=True):
                row.repetitions.append(result.metrics)
                self._record.timelines[f"{row.workload} {row.peer}"] = result.urgent
        self._add(rows)

    def _slow(self, watched: Future[dict[str, Metrics]]) -> None:
        self._watcher.step("slow reader")
        rows = [Row(workload="slow", title="reads 1 kB/s of 4", group="slow", peer=peer) for peer in self._peers]
        with _failing(rows):
            found = watched.result()
            for row in rows:
                row.repetitions.append(found[row.peer])
        self._add(rows)

    def _busy(self) -> None:
        rows = [Row(workload="busy", title="50 publishers", group="busy", peer=peer) for peer in self._peers]
        for repetition in range(self._effort.busy_repetitions):
            for row in rows:
                if row.status == "measured":
                    self._watcher.step(f"busy broker: {row.peer} ({repetition + 1})")
                    with _failing([row]):
                        row.repetitions.append(busy.measure(row.peer, seconds=self._effort.busy_s))
        self._add(rows)

    def _strangers(self) -> None:
        rows = [
            Row(workload="strangers", title="1:1 and 50 paced clients", group="strangers", peer=peer)
            for peer in (slow.ALONE, slow.BESIDE)
        ]
        alone, beside = rows
        instance = slow.start(SUBJECT)
        with _failing(rows), contextlib.ExitStack() as stack:
            stack.callback(instance.stop)
            at = instance.start()
            generator = stack.enter_context(Generator())
            for repetition in range(self._effort.stranger_repetitions):
                for row in rows:
                    self._watcher.step(f"others, {row.peer} ({repetition + 1})")
                    row.repetitions.append(
                        slow.strangers(
                            at, generator, seconds=self._effort.stranger_s, is_slow_there=row.peer == slow.BESIDE
                        )
                    )
                before, after = alone.repetitions[-1], beside.repetitions[-1]
                for name, metric in (("rate_ratio", "rate"), ("p50_ratio", "p50_us"), ("p99_ratio", "p99_us")):
                    after[name] = after[metric] / before[metric]
        self._add(rows)

    def _cost(self) -> None:
        with contextlib.ExitStack() as stack:
            generator = stack.enter_context(Generator())
            instances = (Instance(Tieline(), None), Instance(Tieline(cost.CLASSES), None))
            for instance in instances:
                stack.callback(instance.stop)
            brokers = (instances[0].start(), instances[1].start())
            for case in cost.CASES:
                self._watcher.step(f"cost: {case.title}")
                rows = [
                    Row(workload=case.name, title=case.title, group="cost", peer=peer)
                    for peer in (cost.LACKING, cost.HAVING)
                ]
                with _failing(rows):
                    found = cost.measure(
                        case,
                        brokers,
                        generator,
                        seconds=self._effort.cost_s,
                        repetitions=self._effort.cost_repetitions,
                    )
                    for row, repetitions in zip(rows, found, strict=True):
                        row.repetitions += repetitions
                    for without, having in zip(*found, strict=True):
                        having["rate_ratio"] = having["rate"] / without["rate"]
                        having["cpu_ratio"] = having["cpu_us_delivered"] / without["cpu_us_delivered"]
                self._add(rows)

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


@contextlib.contextmanager
def _in_background(is_wanted: bool, peers: list[str], seconds: float) -> Iterator[Future[dict[str, Metrics]] | None]:
    if not is_wanted:
        yield None
        return
    over = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        try:
            yield threads.submit(slow.watch, peers, seconds=seconds, over=over)
        finally:
            over.set()
