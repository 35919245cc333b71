"""Every part of the pipeline's benchmark at its smallest: real processes, real Spark, numbers in every column."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from tests.bench.watching import Quiet
from tieline.bench.load.job import Failure
from tieline.bench.pipeline import formats, ingest, jobs, kills, ranges, tables
from tieline.bench.pipeline.cases import Workplace, case_of
from tieline.bench.pipeline.part import Site
from tieline.bench.pipeline.suite import METRICS, SUITE
from tieline.bench.suite import report
from tieline.bench.suite.results import Results, Row
from tieline.bench.suite.runner import CaseRunner


def site(spark: SparkSession, folder: Path) -> Site:
    """Nobody watches, but pytest keeps what is printed."""
    return Site(spark, folder, print)


def by_peer(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """The numbers of rows, all of which have a meaning."""
    found = {row.peer: row.metrics for row in rows}
    assert all(name in METRICS for metrics in found.values() for name in metrics)
    assert all(found.values())
    return found


@pytest.mark.slow  # half a minute; CI runs it before the others
def test_ingest(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "_TASKS", 2)  # a task takes longer to start than so few records to read
    part = ingest.Ingest(records=3_000, from_memory=40_000, repetitions=1)
    rows = part.rows()
    part.measure(site(spark, tmp_path), rows)
    found = by_peer(rows)
    assert all(found[peer]["times_tuples"] > 0 for peer in (ingest.ARROW, ingest.MEMORY_ARROW))
    assert set(found) == set(ingest.PEERS)
    into, tuples = found[ingest.TABLES], found[ingest.WIDE_TUPLES]
    assert into["tables_of_tuples"] == pytest.approx(into["rate"] / tuples["rate"])
    assert into["tables_cpu_of_tuples"] == pytest.approx(into["cpu_us_row"] / tuples["cpu_us_row"])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_formats(spark: SparkSession, tmp_path: Path) -> None:
    part = formats.Formats(records=3_200, repetitions=1)
    rows = part.rows()
    # where no server of the S3 API is installed, its row says what would install it
    part.measure(site(spark, tmp_path), rows)
    assert {row.peer: row.note for row in rows if row.status != "measured"} in (
        {}, {formats.S3: "no moto_server is installed: make object-store installs one"}
    )  # fmt: skip
    found = by_peer([row for row in rows if row.status == "measured"])
    assert found[formats.PLAIN]["times_plain"] == found[formats.PLAIN]["cpu_times_plain"] == 1.0
    assert found[formats.DELTA]["cpu_times_plain"] > 0
    assert found[formats.ALL]["driver_mb"] > 10 and found[formats.ALL]["heap_mb"] > 10
    assert found[formats.ALL]["times_quarter"] == pytest.approx(
        found[formats.ALL]["driver_mb"] / found[formats.QUARTER]["driver_mb"]
    )


@pytest.mark.slow
def test_match(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # on so few events the join takes no time that could be told from the rest
    monkeypatch.setattr(ranges, "extrapolated", lambda _sizes, times, _size: max(times))
    part = ranges.Match(events=4_000, subscriptions=200, share=2, repetitions=1)
    rows = part.rows()
    part.measure(site(spark, tmp_path), rows)
    found = by_peer(rows)
    assert found[ranges.JOB]["pairs"] == found[ranges.ALONE]["pairs"] > 10
    assert found[ranges.NESTED]["events"] == 2_000


def test_a_match_that_finds_other_pairs_is_noticed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "_alone", lambda _folder, _plan: ranges.Pairs(1, 1))
    part = ranges.Match(events=100, subscriptions=20, share=2, repetitions=1)
    with pytest.raises(Failure, match="different pairs"):
        part.measure(site(spark, tmp_path), part.rows())


def test_pruning(spark: SparkSession, tmp_path: Path) -> None:
    part = tables.Pruning(records=60_000, queries=5)
    rows = part.rows()
    part.measure(site(spark, tmp_path), rows)
    time, curve = (by_peer(rows)[peer] for peer in (tables.BY_TIME, tables.BY_CURVE))
    assert time["rows_answer"] == curve["rows_answer"] > 0
    for table in (time, curve):
        # beside the row groups, footers are read
        assert table["bytes_footer"] < table["bytes_read"] < table["bytes_footer"] + 200_000


def test_growth_and_the_report(spark: SparkSession, tmp_path: Path) -> None:
    sizes = (1_000, 2_000, 4_000)
    part = tables.Growth(sizes=sizes, repetitions=1)
    rows = part.rows()
    part.measure(site(spark, tmp_path), rows)
    assert set(by_peer(rows)) == {*map(tables.peer, sizes), tables.FIT}
    record = Results(
        form="pipeline-2", quick=True, started="", commit="", versions={}, absent={}, rows=rows,
        machine={"processor": "Abacus", "cores": 2, "memory_gb": 1.0, "kernel": "6"},
    )  # fmt: skip
    record.goals = [goal.judge(record) for goal in SUITE.goals]
    console = Console(file=io.StringIO(), width=200)
    report.show(SUITE, record, console)
    page = report.markdown(SUITE, record)
    assert "time = a + b · rows" in page and "4,000 rows" in page
    assert all(report.line(SUITE, row) for row in rows)
    record.write(tmp_path / "pipeline.json")
    written = json.loads((tmp_path / "pipeline.json").read_text())
    assert written["format"] == "tieline-bench-pipeline-2" and len(written["rows"]) == 4


def test_a_part_that_fails_becomes_rows_that_say_so(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object, **_named: object) -> None:
        raise Failure("the broker died")

    monkeypatch.setattr(tables.Pruning, "measure", fail)
    place = Workplace()
    place.spark, place.folder = spark, tmp_path
    case = case_of(tables.Pruning(records=1, queries=1), place)
    record = Results(form="pipeline-2", quick=True, started="", commit="", machine={}, versions={}, absent={})
    CaseRunner(SUITE, record, Quiet()).measure(case)
    assert list(SUITE.faults(record)) == [f"three ranges: {peer}: the broker died" for peer in tables.PEERS]
    assert not (tmp_path / "pruning").exists()


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_jobs(spark: SparkSession, tmp_path: Path) -> None:
    part = jobs.Jobs(report_rows=20_000, brief_rows=6_000, repetitions=1)
    rows = part.rows()
    part.measure(site(spark, tmp_path), rows)
    assert all(found["wall_s"] > 0 and found["cpu_s"] > 1 for found in by_peer(rows).values())
    assert (tmp_path / "report.csv").stat().st_size > 1_000


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("place", kills.EVERYWHERE, ids=lambda place: place.title)
def test_nothing_is_lost_or_double_after_kills(spark: SparkSession, tmp_path: Path, place: kills.KillCase) -> None:
    victims = kills.CLUSTER_VICTIMS if place.on_cluster else kills.VICTIMS
    part = kills.Kills(kills=len(victims), seed=4, places=(place,))
    rows = part.rows()
    part.measure(site(spark, tmp_path), rows)
    found = by_peer(rows)[kills.TOGETHER]
    print(found)
    assert found["acknowledged"] > 1_000
    wrong = {name: found[name] for name in ("lost", "twice", "unknown", "debris", "unaccounted", "quarantined")}
    assert not any(wrong.values()), wrong
