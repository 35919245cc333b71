"""The run in words and tables: what was measured, against what, and which goals are met."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.table import Table

from tieline.bench.goals_report import goal_lines, goal_table, row_line
from tieline.bench.pipeline.metrics import shown
from tieline.bench.pipeline.record import PipelineRecord
from tieline.bench.record import Row
from tieline.bench.report import preamble, remarks

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


def show(record: PipelineRecord, console: Console) -> None:
    """Print everything a reader needs to judge the numbers."""
    for text in _preamble(record):
        console.print(text, highlight=False, markup=False)
    for title, headings, lines in _tables(record):
        table = Table(title=title, title_justify="left")
        for place, heading in enumerate(headings):
            table.add_column(heading, justify="right" if place > 1 else "left")
        for cells in lines:
            table.add_row(*cells)
        console.print(table)
    for text in remarks(record):
        console.print(text, highlight=False, markup=False)
    console.print(goal_table(record.goals))


def markdown(record: PipelineRecord) -> str:
    """The same tables as a page."""
    lines = [f"- {text}" for text in _preamble(record)]
    for title, headings, rows in _tables(record):
        lines += ["", f"### {title}", "", f"| {' | '.join(headings)} |"]
        lines.append("|---|---" + "|--:" * (len(headings) - 2) + "|")
        lines += [f"| {' | '.join(cells)} |" for cells in rows]
    lines += ["", *(f"- {text}" for text in remarks(record)), "", *goal_lines(record.goals)]
    return "\n".join(lines) + "\n"


def line(row: Row) -> str:
    """A row in one line, for the progress."""
    return row_line(row, TABLES[row.group][1], shown)


def _preamble(record: PipelineRecord) -> list[str]:
    return [*preamble(record), *(f"left out: {part}: {why}" for part, why in record.left_out.items())]


def _tables(record: PipelineRecord) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Title, headings and cells of each table."""
    for group, (title, columns) in TABLES.items():
        rows = [row for row in record.rows if row.group == group]
        if rows:
            yield title, ["what", "how", *columns.values()], [_cells(row, columns) for row in rows]


def _cells(row: Row, columns: dict[str, str]) -> list[str]:
    if row.status != "measured":
        return [row.title, row.peer, row.status, *[""] * (len(columns) - 1)]
    metrics = row.metrics
    return [row.title, row.peer, *(shown(name, metrics.get(name)) for name in columns)]
