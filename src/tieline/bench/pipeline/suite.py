"""The pipeline's benchmark: what its numbers mean, the goals that they are held against, and its tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tieline.bench.metrics import Metric
from tieline.bench.pipeline import formats, ingest, jobs, kills, ranges, tables
from tieline.bench.suite.declaration import GroupTable, Suite, value_goal
from tieline.bench.suite.results import Results

METRICS: Final = {
    "rate": Metric("rows per second", "/s", more_is_better=True),
    "wall_s": Metric("time of the least disturbed repetition", "s"),
    "cpu_s": Metric("processor time of everything below this process in that time", "s"),
    "cpu_us_row": Metric("the same for each row", "µs"),
    "times_tuples": Metric("time of tuples : time of Arrow batches", "x", more_is_better=True),
    "tables_of_tuples": Metric(
        "rows per second into tables : those of tuples with the same columns", "x", more_is_better=True
    ),
    "tables_cpu_of_tuples": Metric("the same for CPU", "x"),
    "times_plain": Metric("time of these tables : time of plain ones", "x"),
    "cpu_times_plain": Metric("the same for CPU", "x"),
    "driver_mb": Metric("the most memory that this process had, which drives Spark", "MB"),
    "heap_mb": Metric("what the JVM holds after a collection", "MB"),
    "times_quarter": Metric("memory with the whole log : with a quarter of it", "x"),
    "events": Metric("events that were matched", ""),
    "pairs": Metric("pairs of event and subscription, the same in all ways (count and checksum)", ""),
    "extrapolated_s": Metric("time for all events, by a line through two smaller numbers of them", "s"),
    "times_nested": Metric("that time : the job's", "x", more_is_better=True),
    "times_alone": Metric("time of the job : time of one process with the same index", "x"),
    "bytes_table": Metric("size of the table", "B"),
    "bytes_footer": Metric("bytes of row groups that statistics cannot exclude, mean of the queries", "B"),
    "bytes_read": Metric("bytes that pyarrow read for the answer, counted by the kernel, mean of the queries", "B"),
    "rows_answer": Metric("rows of the answer, mean of the queries, the same from both tables", ""),
    "fewer_footer": Metric("bytes by footers, of the table by time : of the clustered one", "x", more_is_better=True),
    "fewer_read": Metric("the same for bytes read", "x", more_is_better=True),
    "start_s": Metric("a: what no rows at all take", "s"),
    "slope_us": Metric("b: what each row takes", "µs"),
    "cpu_slope_us": Metric("the same of processor time", "µs"),
    "cpu_bend": Metric("the same of processor time", "x"),
    "bend": Metric("b of the larger sizes : b of the smaller ones, the larger by the smaller", "x"),
    "kills": Metric("processes killed", ""),
    "struck": Metric("files of the tables that a loss of power removed, emptied or cut in half", ""),
    "told": Metric("drivers that stood still, were replaced, and were told so (or their replacements)", ""),
    "restarts": Metric("drivers that ended by themselves after another process was killed, and were started again", ""),
    "acknowledged": Metric("messages that publishers were told are kept", ""),
    "doubtful": Metric("messages that nobody answered for and nobody sent again", ""),
    "lost": Metric("acknowledged messages that are not in the table, in Spark or in DuckDB", ""),
    "twice": Metric("rows too many, in Spark or in DuckDB", ""),
    "unknown": Metric("rows that nobody sent", ""),
    "debris": Metric("files in the tables that are no tables, and half-done batches", ""),
    "unaccounted": Metric("records of the log that are in no table", ""),
    "quarantined": Metric("records that could not be read", ""),
    "duplicates": Metric("records of the log that repeat others, kept apart", ""),
}

TABLES: Final = {
    "ingest": GroupTable(
        title="From a broker's log: every record read, and every record in tables",
        columns={
            "rate": "rows", "cpu_us_row": "CPU per row", "wall_s": "time", "times_tuples": "times tuples",
            "tables_of_tuples": "rows of tuples", "tables_cpu_of_tuples": "CPU of tuples",
        },
    ),
    "formats": GroupTable(
        title="The same log into tables of each kind, and the memory of the driver meanwhile",
        columns={
            "rate": "rows", "cpu_us_row": "CPU per row", "wall_s": "time", "times_plain": "time of plain",
            "cpu_times_plain": "CPU of plain", "driver_mb": "driver", "heap_mb": "live heap",
            "times_quarter": "of a quarter",
        },
    ),
    "match": GroupTable(
        title="Range match: the same pairs, counted and summed, in all ways",
        columns={
            "events": "events", "pairs": "pairs", "wall_s": "time", "cpu_s": "CPU",
            "extrapolated_s": "all events, by a line", "times_nested": "nested : ours",
            "times_alone": "ours : one process",
        },
    ),
    "pruning": GroupTable(
        title="Three ranges: what is read of two tables with the same rows",
        columns={
            "bytes_table": "table", "bytes_footer": "needed, by footers", "bytes_read": "read by pyarrow",
            "rows_answer": "rows", "fewer_footer": "fewer, by footers", "fewer_read": "fewer, read",
        },
    ),
    "growth": GroupTable(
        title="History to tables: time = a + b · rows",
        columns={
            "wall_s": "time", "rate": "rows", "cpu_us_row": "CPU per row", "start_s": "a", "slope_us": "b",
            "bend": "b large : small", "cpu_slope_us": "b of CPU", "cpu_bend": "its b large : small",
        },
    ),
    "jobs": GroupTable(
        title="Commands from cold, from the start of the process to its end",
        columns={"wall_s": "time", "cpu_s": "CPU"},
    ),
    "kills": GroupTable(
        title="Random kills: what the tables hold, in Spark and in DuckDB",
        columns={
            "kills": "kills", "acknowledged": "acknowledged", "lost": "lost", "twice": "twice", "unknown": "unknown",
            "struck": "files hit", "told": "told",
            "duplicates": "repeats kept apart", "debris": "debris", "unaccounted": "unaccounted", "wall_s": "time",
        },
    ),
}  # fmt: skip

ARROW_TIMES: Final = 5.0
NESTED_TIMES: Final = 20.0
ALONE_TIMES: Final = 3.0
FEWER_BYTES: Final = 5.0
BEND: Final = 1.15
#: What the engine of before, a streaming query, was beside tuples with the same columns in one run: its rows per second
#: (300,000 records), and its CPU for each row (600,000 records, where its start weighs less).
BEFORE_OF_TUPLES: Final = 0.34
BEFORE_CPU_OF_TUPLES: Final = 1.2
TIMES_BEFORE: Final = 1.5
CPU_OF_BEFORE: Final = 0.7
#: Delta tables beside plain ones, and the driver's memory with four times the rows.
TIMES_PLAIN: Final = 1.1
TIMES_QUARTER: Final = 1.1
#: Seconds from cold on two quiet cores: 0.6 of what they were.
REPORT_S: Final = 22.0
BRIEF_S: Final = 15.0
#: What must be zero after kills.
FAULTS: Final = ("lost", "twice", "unknown", "debris", "unaccounted", "quarantined")
_ARROW, _JOB = (ingest.WORKLOAD, ingest.ARROW), (ranges.WORKLOAD, ranges.JOB)
_CURVE, _KILLS = (tables.PRUNING, tables.BY_CURVE), (kills.WORKLOAD, kills.TOGETHER)


def _kills_made(results: Results) -> str:
    count = results.value(*_KILLS, "kills")
    return "" if count is None else f" {count:.0f}"


GOALS: Final = (
    value_goal(
        f"log to Spark ({', '.join(ingest.COLUMNS)}): Arrow batches, times as fast as tuples",
        ARROW_TIMES, "x", _ARROW, "times_tuples", at_least=True,
    ),
    value_goal(
        "log to tables: rows per second, times those of tuples (1.5 times the engine of before)",
        TIMES_BEFORE * BEFORE_OF_TUPLES, "x", (ingest.WORKLOAD, ingest.TABLES), "tables_of_tuples", at_least=True,
    ),
    value_goal(
        "log to tables: CPU, times that of tuples (0.7 times the engine of before)",
        CPU_OF_BEFORE * BEFORE_CPU_OF_TUPLES, "x", (ingest.WORKLOAD, ingest.TABLES), "tables_cpu_of_tuples",
    ),
    *(
        value_goal(
            f"log to Delta tables: {what}, times that of plain ones", TIMES_PLAIN, "x",
            (formats.WORKLOAD, formats.DELTA), metric,
        )
        for metric, what in (("times_plain", "time"), ("cpu_times_plain", "CPU"))
    ),
    value_goal(
        "four times the rows in batches of one size: memory of the driver, times what it was",
        TIMES_QUARTER, "x", (formats.DRIVER, formats.ALL), "times_quarter",
    ),
    value_goal(
        "range match: our job, times as fast as a nested-loop join",
        NESTED_TIMES, "x", _JOB, "times_nested", at_least=True,
    ),
    value_goal(
        "range match: our job, times the time of one process with the same index",
        ALONE_TIMES, "x", _JOB, "times_alone",
    ),
    *(
        value_goal(
            f"three ranges: bytes of a table by time : of a Hilbert-clustered one, {how}",
            FEWER_BYTES, "x", _CURVE, metric, at_least=True,
        )
        for metric, how in (("fewer_footer", "by the footers"), ("fewer_read", "as read by pyarrow"))
    ),
    value_goal(
        "time = a + b · rows: b of large and small sizes, the larger by the smaller",
        BEND, "x", (tables.GROWTH, tables.FIT), "bend",
    ),
    value_goal(
        "CPU = a + b · rows: b of large and small sizes, the larger by the smaller",
        BEND, "x", (tables.GROWTH, tables.FIT), "cpu_bend",
    ),
    value_goal(
        "the report of a week of a million readings, from cold", REPORT_S, "s", (jobs.WORKLOAD, jobs.REPORT), "wall_s"
    ),
    *(
        value_goal(f"60,000 readings from cold: {job}", BRIEF_S, "s", (jobs.WORKLOAD, job), "wall_s")
        for job in jobs.BRIEF_JOBS
    ),
    *(
        value_goal(f"after{{}} random kills: {what}", 0, "", _KILLS, metric, detail=_kills_made)
        for metric, what in (("lost", "acknowledged messages lost"), ("twice", "messages twice in the tables"))
    ),
)  # fmt: skip


def _faults(results: Results) -> Iterator[str]:
    """Rows that failed, and tables that do not hold what they should, in words."""
    yield from results.failures
    for row in results.rows:
        metrics = row.metrics
        for name in FAULTS:
            if metrics.get(name):
                yield f"{row.title}: {row.peer}: {metrics[name]:.0f} {name}"


SUITE: Final = Suite(
    name="pipeline", metrics=METRICS, tables=TABLES, goals=GOALS, headings=("what", "how"), faults=_faults
)
