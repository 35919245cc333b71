"""The parts of the pipeline's benchmark as cases, in one Spark session; each has a directory of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from tieline.bench.load.job import Failure
from tieline.bench.machine import versions
from tieline.bench.pipeline import PARTS, ingest, kills, ranges, tables
from tieline.bench.suite.declaration import Case, Running, Schedule
from tieline.bench.suite.results import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineEffort:
    """How much is done."""

    ingest_records: int
    #: Rows that are handed over from memory.
    memory_records: int
    ingest_repetitions: int
    match_events: int
    match_subscriptions: int
    #: One of so many events goes through the nested-loop join.
    match_share: int
    match_repetitions: int
    pruning_records: int
    pruning_queries: int
    growth_sizes: Sequence[int]
    growth_repetitions: int
    kills: int
    #: Whether kills hit a standalone cluster with two workers, or Spark in one process.
    on_cluster: bool
    #: About how many seconds each part takes.
    expected_s: Mapping[str, float]


FULL: Final = PipelineEffort(
    ingest_records=3_000_000,
    memory_records=3_000_000,
    ingest_repetitions=3,
    match_events=1_000_000,
    match_subscriptions=10_000,
    match_share=20,
    match_repetitions=6,
    pruning_records=4_000_000,
    pruning_queries=30,
    growth_sizes=(1_000_000, 3_000_000, 10_000_000),
    growth_repetitions=2,
    kills=20,
    on_cluster=True,
    expected_s={"ingest": 200.0, "match": 150.0, "pruning": 60.0, "growth": 250.0, "crash": 400.0},
)
QUICK: Final = replace(
    FULL, ingest_records=200_000, memory_records=1_000_000, ingest_repetitions=2, match_share=100, match_repetitions=4,
    pruning_records=2_000_000, pruning_queries=20, growth_sizes=(100_000, 300_000, 1_000_000), kills=3,
    on_cluster=False, expected_s={"ingest": 60.0, "match": 70.0, "pruning": 40.0, "growth": 50.0, "crash": 80.0},
)  # fmt: skip


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
    return Schedule(
        cases=cases_of(parts, QUICK if quick else FULL, place, seed=seed),
        quick=quick,
        versions={**versions(*_LIBRARIES), "Java": str(find_java().version)},
        budget_s=_BUDGET_S,
        resources=[place],
    )


def cases_of(parts: Sequence[str], effort: PipelineEffort, place: Workplace, *, seed: int) -> list[Case]:
    """One case for each part, in the order in which they were asked for."""
    made = {
        "ingest": _case(
            ingest.rows(),
            partial(
                ingest.measure,
                records=effort.ingest_records,
                from_memory=effort.memory_records,
                repetitions=effort.ingest_repetitions,
            ),
            place,
            steps=5 + 8 * effort.ingest_repetitions,
            seconds=effort.expected_s["ingest"],
        ),
        "match": _case(
            ranges.rows(),
            partial(
                ranges.measure,
                events=effort.match_events,
                subscriptions=effort.match_subscriptions,
                share=effort.match_share,
                repetitions=effort.match_repetitions,
            ),
            place,
            steps=4 + 2 * effort.match_repetitions,
            seconds=effort.expected_s["match"],
        ),
        "pruning": _case(
            tables.pruning_rows(),
            partial(tables.measure_pruning, records=effort.pruning_records, queries=effort.pruning_queries),
            place,
            steps=2,
            seconds=effort.expected_s["pruning"],
        ),
        "growth": _case(
            tables.growth_rows(effort.growth_sizes),
            partial(tables.measure_growth, sizes=effort.growth_sizes, repetitions=effort.growth_repetitions),
            place,
            steps=2 + len(effort.growth_sizes) * effort.growth_repetitions,
            seconds=effort.expected_s["growth"],
        ),
        "crash": _case(
            kills.rows(),
            partial(kills.measure, kills=effort.kills, seed=seed, on_cluster=effort.on_cluster),
            place,
            steps=2 + effort.kills,
            seconds=effort.expected_s["crash"],
            obstacle="" if find_spec("duckdb") else "it needs duckdb: pip install 'tieline[bench]'",
        ),
    }
    return [made[name] for name in parts]


def _case(
    rows: list[Row], measure: Callable[..., None], place: Workplace, *, steps: int, seconds: float, obstacle: str = ""
) -> Case:
    return Case(
        rows=rows,
        measure=partial(_measure, measure, place, rows[0].group),
        steps=steps,
        seconds=seconds,
        obstacle=obstacle,
    )


def _measure(measure: Callable[..., None], place: Workplace, name: str, run: Running, rows: list[Row]) -> None:
    from pyspark.errors import PySparkException

    from tieline.pipeline.complaint import our_sentence

    folder = place.folder / name
    folder.mkdir()
    try:
        measure(place.spark, folder, rows, step=run.step)
    except PySparkException as problem:
        raise Failure(our_sentence(problem) or str(problem).partition("\n")[0]) from problem
    finally:
        # the next part needs the room, and its files should not wait for these in the cache
        shutil.rmtree(folder, ignore_errors=True)
