"""The numbers of the pipeline's benchmark: what each means."""

from __future__ import annotations

from tieline.bench.match.metrics import METRICS as MATCH_METRICS
from tieline.bench.metrics import Metric, readable, three_digits

METRICS = {
    **MATCH_METRICS,
    "rate": Metric("rows per second", "/s", more_is_better=True),
    "wall_s": Metric("time of the least disturbed repetition", "s"),
    "cpu_s": Metric("processor time of everything below this process in that time", "s"),
    "cpu_us_row": Metric("the same for each row", "µs"),
    "times_tuples": Metric("time of tuples : time of Arrow batches", "x", more_is_better=True),
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
    "bend": Metric("b of the larger sizes : b of the smaller ones, the larger by the smaller", "x"),
    "kills": Metric("processes killed", ""),
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


def shown(name: str, value: float | None) -> str:
    """A number with its unit, as tables have it."""
    if value is None:
        return ""
    unit = METRICS[name].unit
    if unit == "":
        return f"{value:,.0f}"
    if unit == "x":
        return f"{three_digits(value)}x"
    return readable(value, unit)
