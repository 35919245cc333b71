"""The run: the parts in order, in one Spark session; a part that fails becomes rows that say so."""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tieline.bench.load.job import Failure
from tieline.bench.machine import describe_commit, describe_machine, versions
from tieline.bench.match.run import Watcher
from tieline.bench.pipeline import growth, ingest, kills, pruning, ranges
from tieline.bench.pipeline.goals import judge
from tieline.bench.pipeline.plan import PARTS, Plan
from tieline.bench.pipeline.record import PipelineRecord
from tieline.bench.record import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PARTS", "Plan", "Watcher", "run"]

#: What a part needs beside Spark, and what brings it.
_NEEDS: Final = {"crash": ("duckdb", "pip install 'tieline[bench]'")}
_LIBRARIES: Final = ("pyspark", "pyarrow", "numpy", "numba", "duckdb")

#: Measures one part in a directory of its own.
Part = Callable[["SparkSession", Path, list[Row]], None]


def run(plan: Plan, watcher: Watcher, *, disk: Path | None = None) -> PipelineRecord:
    """Measure everything planned; on Ctrl-C everything started is ended and the interruption passes on.

    ``disk`` is where tables and stores are made while the run lasts.
    """
    from tieline.pipeline.java import find_java
    from tieline.pipeline.session import make_session

    began = time.monotonic()
    record = PipelineRecord(
        quick=plan.quick,
        started=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        commit=describe_commit(),
        machine=describe_machine(),
        versions={**versions(*_LIBRARIES), "Java": str(find_java().version)},
        absent={},
    )
    watcher.planned(plan.steps)
    spark = make_session("tieline bench pipeline")
    try:
        with tempfile.TemporaryDirectory(prefix="tieline-bench-", dir=disk, ignore_cleanup_errors=True) as folder:
            for name in plan.parts:
                _run_part(name, plan, watcher, record, spark, Path(folder, name))
    finally:
        spark.stop()
    record.seconds = round(time.monotonic() - began, 1)
    record.goals = judge(record)
    return record


def _run_part(
    name: str, plan: Plan, watcher: Watcher, record: PipelineRecord, spark: SparkSession, folder: Path
) -> None:
    from pyspark.errors import PySparkException

    from tieline.pipeline.said import sentence

    library, remedy = _NEEDS.get(name, ("", ""))
    if library and find_spec(library) is None:
        record.left_out[name] = f"it needs {library}: {remedy}"
        return
    rows, measure = _part(name, plan, watcher)
    folder.mkdir()
    try:
        measure(spark, folder, rows)
    except (Failure, OSError) as problem:
        _fail(rows, str(problem))
    except PySparkException as problem:
        _fail(rows, sentence(problem) or str(problem).partition("\n")[0])
    finally:
        # the next part needs the room, and its files should not wait for these in the cache
        shutil.rmtree(folder, ignore_errors=True)
    record.rows += rows
    watcher.found(rows)


def _part(name: str, plan: Plan, watcher: Watcher) -> tuple[list[Row], Part]:
    effort, step = plan.effort, watcher.step
    if name == "ingest":
        return ingest.rows(), lambda spark, folder, rows: ingest.measure(
            spark,
            folder,
            rows,
            records=effort.ingest_records,
            from_memory=effort.memory_records,
            repetitions=effort.ingest_repetitions,
            step=step,
        )
    if name == "match":
        return ranges.rows(), lambda spark, folder, rows: ranges.measure(
            spark,
            folder,
            rows,
            events=effort.match_events,
            subscriptions=effort.match_subscriptions,
            share=effort.match_share,
            repetitions=effort.match_repetitions,
            step=step,
        )
    if name == "pruning":
        return pruning.rows(), lambda spark, folder, rows: pruning.measure(
            spark, folder, rows, records=effort.pruning_records, queries=effort.pruning_queries, step=step
        )
    if name == "growth":
        return growth.rows(effort.growth_sizes), lambda spark, folder, rows: growth.measure(
            spark, folder, rows, sizes=effort.growth_sizes, repetitions=effort.growth_repetitions, step=step
        )
    return kills.rows(), lambda spark, folder, rows: kills.measure(
        spark, folder, rows, kills=effort.kills, seed=plan.seed, on_cluster=effort.on_cluster, step=step
    )


def _fail(rows: list[Row], why: str) -> None:
    for row in rows:
        row.status, row.note = "failed", why
