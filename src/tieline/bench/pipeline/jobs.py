"""Part ``jobs``: commands over a lake from cold, as people call them, each a process of its own.

Most of what a short job takes is the start of Spark, and the first run of everything in a JVM that has compiled
nothing.  So nothing is warmed up here, and nothing is left out: the clock runs from the start of the process to its
end.  CPU is that of the process and everything below it, looked at while they run, because what a JVM has used nobody
adds up after its end; the last tenth of a second may be missing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

import pyarrow.parquet as pq

from tieline.bench.load.job import Failure
from tieline.bench.measure import Spent, cpu_ns, family, least
from tieline.bench.pipeline.part import Part, Site
from tieline.bench.pipeline.processes import our_path, our_program
from tieline.bench.pipeline.readings import EVENT_TYPE, METERS, log_table, readings
from tieline.bench.process import Process
from tieline.bench.suite.results import Row, rows_of
from tieline.conf.load import loads

WORKLOAD: Final = "jobs"
REPORT, HEAT, MATCH = "quality, with its report", "heat of content", "match of two subscriptions"
#: Jobs over the smaller lake.
BRIEF_JOBS: Final = (HEAT, MATCH)
_WEEK_S: Final = 604_800
_PORTION: Final = 250_000
_LOOK_S: Final = 0.1
_PATIENCE_S: Final = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs(Part):
    """A week of readings in two lakes, and commands that read them."""

    name: ClassVar[str] = WORKLOAD
    report_rows: int
    brief_rows: int
    repetitions: int

    @property
    def steps(self) -> int:
        """Two lakes, and the turns."""
        return 2 + (1 + len(BRIEF_JOBS)) * self.repetitions

    def rows(self) -> list[Row]:
        """One for each command."""
        return rows_of(WORKLOAD, "a command from cold", self.name, [REPORT, *BRIEF_JOBS])

    def measure(self, site: Site, rows: list[Row]) -> None:
        """Time and CPU of each."""
        lakes = {}
        for count in (self.report_rows, self.brief_rows):
            site.step(f"jobs: a lake with a week of {count:,} readings")
            lakes[count] = _lake(site, count)
        found: dict[str, list[Spent]] = {row.peer: [] for row in rows}
        for repetition in range(self.repetitions):
            for row in rows:
                site.step(f"jobs: {row.peer} ({repetition + 1})")
                lake = lakes[self.report_rows if row.peer == REPORT else self.brief_rows]
                found[row.peer].append(_cold(row.peer, lake, site.folder))
        for row in rows:
            took = least(found[row.peer])
            row.repetitions.append({"wall_s": took.wall_s, "cpu_s": took.cpu_s})


def words(job: str, lake: Path, folder: Path) -> Sequence[str]:
    """How a job is called."""
    there = ("--lake", str(lake))
    if job == REPORT:
        return ("pipeline", "quality", *there, "--out", str(folder / "report.html"), "--csv")
    if job == HEAT:
        return ("pipeline", "heat", *there, "--content", "reading", "--window", "1h", "--slide", "1h")
    return ("pipeline", "match", *there, "-s", "grid/+/reading?voltage > 238", "-s", "grid/n7/reading", "--count")


def _cold(job: str, lake: Path, folder: Path) -> Spent:
    process = Process(job, our_program(*words(job, lake, folder)), folder / "job.log", environment=our_path())
    used: dict[int, int] = {}
    began = time.monotonic()
    process.start()
    while process.is_running:
        for pid in family(process.pid):
            used[pid] = max(used.get(pid, 0), cpu_ns([pid]))
        if time.monotonic() - began > _PATIENCE_S:
            process.kill()
            raise Failure(f"{job} did not end within {_PATIENCE_S:.0f} s: {process.said()}")
        time.sleep(_LOOK_S)
    took = Spent(time.monotonic() - began, sum(used.values()) / 1e9)
    if code := process.wait(_PATIENCE_S):
        raise Failure(f"{job} ended with exit code {code}: {process.said()}")
    return took


def _lake(site: Site, count: int) -> Path:
    """A lake with so many readings, spread over one week from a Monday on."""
    from tieline.pipeline.jobs.ingest import take_history
    from tieline.pipeline.lake import Lake

    place, history = site.folder / f"lake-{count}", site.folder / f"history-{count}"
    history.mkdir()
    pause = _WEEK_S * METERS // count
    for first in range(0, count, _PORTION):
        some = readings(first, min(_PORTION, count - first))
        pq.write_table(log_table(replace(some, second=some.second * pause)), history / f"{first}.parquet")
    lake = Lake.create(place, loads(EVENT_TYPE))
    take_history(site.spark, lake, history)
    return place
