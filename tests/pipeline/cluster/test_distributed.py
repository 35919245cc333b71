"""A standalone master and two workers: ingest and match through them find what they find in one process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tieline.bench.pipeline.processes import Cluster, cluster, driver_environment, our_path, our_program
from tieline.bench.pipeline.readings import readings
from tieline.bench.pipeline.sources import Station, publish, running
from tieline.conf.load import load
from tieline.match.events import Events
from tieline.pipeline.jobs.ingest import Filling
from tieline.pipeline.jobs.ingest_batch import Logs
from tieline.pipeline.jobs.match.job import match_events
from tieline.pipeline.jobs.match.subscriptions import subscription
from tieline.pipeline.lake import Lake

RECORDS = 3_000
SUBSCRIPTIONS = [
    "grid/+/reading?voltage > 240",
    "grid/+/reading?current < 10 and frequency > 50",
    "grid/n7/reading",
    "grid/n3/reading?delta(power) > 0.05",
]


def command(*words: str) -> str:
    """What a command prints; it must end well."""
    environment = {**os.environ, **our_path(), **driver_environment()}
    done = subprocess.run(
        our_program(*words), env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def ingest_here(spark: SparkSession, place: Path, stations: Sequence[Station]) -> Lake:
    lake = Lake.create(place, load(stations[0].config))
    query = Filling(spark, lake, Logs([each.url for each in stations]))
    query.start(once=True)
    for _ in range(120):
        if query.wait(1):
            break
    query.stop()
    return lake


def rows_of(spark: SparkSession, lake: Path) -> list[tuple[object, ...]]:
    rows = Lake.open(lake).read(spark, "reading").drop("batch")
    return sorted(map(tuple, rows.collect()), key=lambda row: row[:2])


def executors(made: Cluster, folder: Path) -> list[str]:
    """The directories of the executors that were started, by application."""
    return sorted(f"{path.parent.name}/{path.name}" for path in (folder / "work").glob("app-*/*") if path.is_dir())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ingest_and_match_on_a_cluster(spark: SparkSession, tmp_path: Path) -> None:
    # two brokers are two shards, and so at least two tasks
    with running(tmp_path / "east", name="east") as east, running(tmp_path / "west", name="west") as west:
        publish(east, readings(0, RECORDS))
        publish(west, readings(RECORDS, RECORDS))
        urls = [word for each in (east, west) for word in ("--url", each.url)]
        subscribed = [word for each in SUBSCRIPTIONS for word in ("-s", each)]
        with cluster(tmp_path / "cluster") as made:
            common = ("--lake", str(tmp_path / "there"), "--master", made.url)
            command("pipeline", "ingest", *common, "--config", str(east.config), *urls, "--once", "--quiet")
            printed = command("pipeline", "match", *common, *subscribed, "--count", "--format", "json")
            started = executors(made, tmp_path / "cluster")
        here = ingest_here(spark, tmp_path / "here", (east, west))
    assert len(started) >= 4, f"two commands with two executors each: {started}"
    assert rows_of(spark, tmp_path / "there") == rows_of(spark, tmp_path / "here")
    assert here.status().tables[0].rows == 2 * RECORDS
    event = Events(here.document.settings()).types["reading"]
    wanted = [subscription(each) for each in SUBSCRIPTIONS]
    counts = match_events(here.read(spark, "reading"), wanted, event, counted=True).collect()
    told = {each["subscription"]: each["matches"] for each in map(json.loads, printed.splitlines())}
    assert told == {row["subscription"]: row["matches"] for row in counts}
    assert all(told.values())
