"""The parts of the pipeline's benchmark as cases, in one Spark session; each has a directory of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from tieline.bench.load.job import Failure
from tieline.bench.machine import versions
from tieline.bench.pipeline import PARTS
from tieline.bench.pipeline.formats import Formats
from tieline.bench.pipeline.ingest import Ingest
from tieline.bench.pipeline.jobs import Jobs
from tieline.bench.pipeline.kills import KillCase, Kills
from tieline.bench.pipeline.part import Part, Site
from tieline.bench.pipeline.ranges import Match
from tieline.bench.pipeline.tables import Growth, Pruning
from tieline.bench.suite.declaration import Case, Running, Schedule
from tieline.bench.suite.results import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FULL: Final[tuple[Part, ...]] = (
    Ingest(records=3_000_000, from_memory=3_000_000, repetitions=3, seconds=200.0),
    Formats(records=2_000_000, repetitions=3, seconds=180.0),
    Match(events=1_000_000, subscriptions=10_000, share=20, repetitions=6, seconds=150.0),
    Pruning(records=4_000_000, queries=30, seconds=60.0),
    Growth(sizes=(1_000_000, 4_000_000, 20_000_000), repetitions=2, seconds=450.0),
    Jobs(report_rows=1_000_000, brief_rows=60_000, repetitions=2, seconds=200.0),
    Kills(kills=50, seconds=2_000.0),
)
QUICK: Final[tuple[Part, ...]] = (
    Ingest(records=200_000, from_memory=1_000_000, repetitions=2, seconds=60.0),
    Formats(records=320_000, repetitions=2, seconds=60.0),
    Match(events=1_000_000, subscriptions=10_000, share=100, repetitions=4, seconds=70.0),
    Pruning(records=2_000_000, queries=20, seconds=40.0),
    Growth(sizes=(100_000, 300_000, 1_000_000), repetitions=2, seconds=50.0),
    Jobs(report_rows=1_000_000, brief_rows=60_000, repetitions=1, seconds=100.0),
    Kills(kills=3, places=(KillCase("parquet", on_cluster=False),), seconds=80.0),
)
_LIBRARIES: Final = ("pyspark", "pyarrow", "numpy", "numba", "duckdb")
_BUDGET_S: Final = 3_600.0


class Workplace:
    """A Spark session, and a directory in which tables and stores are made while the run lasts."""

    def __init__(self, disk: Path | None = None) -> None:
        self._disk = disk
        self._stack = ExitStack()
        self.spark: SparkSession | None = None
        self.folder = Path()

    def __enter__(self) -> Self:
        from tieline.pipeline.session import make_session

        self.spark = make_session("tieline bench pipeline")
        self._stack.callback(self.spark.stop)
        made = tempfile.TemporaryDirectory(prefix="tieline-bench-", dir=self._disk, ignore_cleanup_errors=True)
        self.folder = Path(self._stack.enter_context(made))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def make_plan(parts: Sequence[str] = tuple(PARTS), *, quick: bool, seed: int = 1, disk: Path | None = None) -> Schedule:
    """What is measured in these parts; ``seed`` is for what is killed and when, ``disk`` where tables are made."""
    from tieline.pipeline.java import find_java

    place = Workplace(disk)
    made = {part.name: part for part in (QUICK if quick else FULL)}
    asked = [replace(part, seed=seed) if isinstance(part, Kills) else part for part in map(made.__getitem__, parts)]
    return Schedule(
        cases=[case_of(part, place) for part in asked],
        quick=quick,
        versions={**versions(*_LIBRARIES), "Java": str(find_java().version)},
        budget_s=_BUDGET_S,
        resources=[place],
    )


def case_of(part: Part, place: Workplace) -> Case:
    """A part as a case, in a directory of its own."""
    return Case(
        rows=part.rows(),
        measure=partial(_measure, part, place),
        steps=part.steps,
        seconds=part.seconds,
        obstacle=part.obstacle(),
    )


def _measure(part: Part, place: Workplace, run: Running, rows: list[Row]) -> None:
    from pyspark.errors import PySparkException

    from tieline.pipeline.complaint import our_sentence

    assert place.spark is not None
    folder = place.folder / part.name
    folder.mkdir()
    try:
        part.measure(Site(place.spark, folder, run.step), rows)
    except PySparkException as problem:
        raise Failure(our_sentence(problem) or str(problem).partition("\n")[0]) from problem
    finally:
        # the next part needs the room, and its files should not wait for these in the cache
        shutil.rmtree(folder, ignore_errors=True)
