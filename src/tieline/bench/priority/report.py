"""The run in words and tables: what was measured, against what, and which goals are met."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tieline.bench.goals_report import goal_lines, goal_table, row_line
from tieline.bench.priority.metrics import shown
from tieline.bench.priority.record import PriorityRecord
from tieline.bench.record import Row
from tieline.bench.report import preamble, remarks

#: Group of rows: title, and the shown numbers with their headings.
TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "thin": (
        "Thin link, 128 kbit/s: time from send to receive",
        {
            "urgent_p50_ms": "urgent p50",
            "urgent_p99_ms": "p99",
            "urgent_max_ms": "longest",
            "bound_ms": "bound",
            "urgent_lost": "not arrived",
            "low_max_ms": "low, longest",
            "low_lost": "not arrived ",
            "drops_named": "drops, named",
            "unaccounted": "unaccounted",
            "disordered": "disordered",
        },
    ),
    "busy": (
        "Busy broker, 50 publishers at full speed: time of an urgent message",
        {
            "urgent_p50_ms": "urgent p50",
            "urgent_p99_ms": "p99",
            "urgent_max_ms": "longest",
            "flood_rate": "flood delivered",
            "longest_turn_ms": "longest turn",
        },
    ),
    "slow": (
        "Slow reader, 1 kB/s: bytes it took before an urgent message; a prompt reader of the same topics",
        {
            "ahead_p50_bytes": "ahead p50",
            "ahead_max_bytes": "most",
            "ahead_bound_bytes": "bound",
            "urgent_p50_ms": "urgent p50",
            "urgent_lost": "not arrived",
            "prompt_p50_ms": "prompt p50",
            "prompt_p99_ms": "prompt p99",
        },
    ),
    "strangers": (
        "Slow reader: what other clients notice",
        {
            "rate": "throughput",
            "p50_us": "p50",
            "p99_us": "p99",
            "rate_ratio": "throughput ratio",
            "p50_ratio": "p50 ratio",
            "p99_ratio": "p99 ratio",
        },
    ),
    "cost": (
        "Cost of classes without congestion, QoS 0",
        {
            "rate": "throughput",
            "cpu_us_delivered": "CPU per message",
            "rate_ratio": "throughput ratio",
            "cpu_ratio": "CPU ratio",
        },
    ),
}


def show(record: PriorityRecord, console: Console) -> None:
    """Print everything a reader needs to judge the numbers."""
    for text in _preamble(record):
        console.print(text, highlight=False, markup=False)
    for group, (title, columns) in TABLES.items():
        rows = [row for row in record.rows if row.group == group]
        if rows:
            table = Table(title=title, title_justify="left")
            for heading in ("case", "broker"):
                table.add_column(heading)
            for heading in columns.values():
                table.add_column(heading, justify="right")
            for cells in _cells(rows, columns):
                table.add_row(*cells)
            console.print(table)
    for text in remarks(record):
        console.print(text, highlight=False, markup=False)
    console.print(goal_table(record.goals))


def markdown(record: PriorityRecord) -> str:
    """The same tables as a page."""
    lines = [f"- {text}" for text in _preamble(record)]
    for group, (title, columns) in TABLES.items():
        rows = [row for row in record.rows if row.group == group]
        if not rows:
            continue
        lines += ["", f"### {title}", "", f"| case | broker | {' | '.join(columns.values())} |"]
        lines.append("|---|---" + "|--:" * len(columns) + "|")
        lines += [f"| {' | '.join(cells)} |" for cells in _cells(rows, columns)]
    lines += ["", *(f"- {text}" for text in remarks(record)), "", *goal_lines(record.goals)]
    return "\n".join(lines) + "\n"


def line(row: Row) -> str:
    """A row in one line, for the progress."""
    return row_line(row, TABLES[row.group][1], shown)


def _preamble(record: PriorityRecord) -> list[str]:
    return [*preamble(record), *(f"left out: {part}: {why}" for part, why in record.left_out.items())]


def _cells(rows: Sequence[Row], columns: dict[str, str]) -> list[list[str]]:
    return [
        [row.title, row.peer, *(shown(name, row.metrics.get(name)) for name in columns)]
        if row.status == "measured"
        else [row.title, row.peer, row.status, *[""] * (len(columns) - 1)]
        for row in rows
    ]
