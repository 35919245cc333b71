"""The run in words and tables: what was measured, against what, and which goals are met."""

from __future__ import annotations

from typing import Final

from tieline.bench.pipeline.metrics import shown
from tieline.bench.pipeline.record import PipelineRecord
from tieline.bench.sheets import Layout

#: Group of rows: title, and the shown numbers with their headings.
TABLES: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "ingest": (
        "From a broker's log: every record read, and every record in tables",
        {"rate": "rows", "cpu_us_row": "CPU per row", "wall_s": "time", "times_tuples": "times tuples"},
    ),
    "match": (
        "Range match: the same pairs, counted and summed, in all ways",
        {
            "events": "events",
            "pairs": "pairs",
            "wall_s": "time",
            "cpu_s": "CPU",
            "extrapolated_s": "all events, by a line",
            "times_nested": "nested : ours",
            "times_alone": "ours : one process",
        },
    ),
    "pruning": (
        "Three ranges: what is read of two tables with the same rows",
        {
            "bytes_table": "table",
            "bytes_footer": "needed, by footers",
            "bytes_read": "read by pyarrow",
            "rows_answer": "rows",
            "fewer_footer": "fewer, by footers",
            "fewer_read": "fewer, read",
        },
    ),
    "growth": (
        "History to tables: time = a + b · rows",
        {
            "wall_s": "time",
            "rate": "rows",
            "cpu_us_row": "CPU per row",
            "start_s": "a",
            "slope_us": "b",
            "bend": "b large : small",
        },
    ),
    "crash": (
        "Random kills: what the tables hold, in Spark and in DuckDB",
        {
            "kills": "kills",
            "acknowledged": "acknowledged",
            "lost": "lost",
            "twice": "twice",
            "unknown": "unknown",
            "duplicates": "repeats kept apart",
            "debris": "debris",
            "unaccounted": "unaccounted",
            "wall_s": "time",
        },
    ),
}
LAYOUT: Final[Layout[PipelineRecord]] = Layout(tables=TABLES, first=("what", "how"), shown=shown)
show, markdown, line = LAYOUT.show, LAYOUT.markdown, LAYOUT.line
