"""The run in words and tables: what was measured, against what, and which goals are met."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.table import Table

from tieline.bench.goals_report import row_line
from tieline.bench.match.engines import ENGINES
from tieline.bench.match.metrics import shown
from tieline.bench.match.plan import COLUMNS, LARGE, MANY, SMALL
from tieline.bench.match.record import MatchRecord
from tieline.bench.match.workload import Configuration, counted
from tieline.bench.record import Row
from tieline.bench.sheets import Layout

#: What is shown of every engine in every configuration, in short; and for a table of its own.
SEARCH = {
    "match_p50_us": "p50",
    "match_p99_us": "p99",
    "first_p50_us": "p50 of the first pass",
    "batch_rate": "batches",
}
_ALONE = {
    "match_p50_us": "time for one event, p50",
    "match_p99_us": "time for one event, p99",
    "first_p50_us": "time for one event in the first pass, p50",
    "batch_rate": "events per second of CPU time, in batches",
}
#: Group of rows: title, and the shown numbers with their headings.
TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "update": (
        "Changes: one subscription, all of them, memory",
        {
            "insert_p50_us": "insert p50",
            "insert_p99_us": "p99",
            "delete_p50_us": "delete p50",
            "delete_p99_us": "p99 ",
            "build_s": "build",
            "rebuild_s": "rebuild",
            "bytes_index": "index, each",
            "bytes_resident": "process, each",
        },
    ),
    "end": (
        "Brokers: the same events to the same subscribers, by conditions and by plain topics",
        {
            "rate": "throughput",
            "cpu_us_delivered": "CPU per message",
            "rate_ratio": "throughput : plain",
            "cpu_ratio": "CPU : plain",
            "lone_p50_us": "one in flight p50",
            "beside_one": "plain 1:1 beside",
            "beside_many": "1,000 topics",
            "load_s": "loading",
            "bytes_subscription": "memory, each",
        },
    ),
}


def _words(record: MatchRecord) -> list[str]:
    return [
        f"{record.compared:,} answers and deliveries compared with the right ones; {len(record.failures)} rows failed"
    ]


LAYOUT: Final[Layout[MatchRecord]] = Layout(tables=TABLES, first=("case", "with"), shown=shown, words=_words)


def show(record: MatchRecord, console: Console) -> None:
    """Print everything a reader needs to judge the numbers."""
    LAYOUT.show(record, console, lambda: _show_grids(record, console))


def _show_grids(record: MatchRecord, console: Console) -> None:
    for number, columns, engines in _grids(record):
        title = f"{counted(number)} subscriptions: {'; '.join(_ALONE.values())}"
        console.print(title, highlight=False, markup=False, style="italic")
        table = Table(show_lines=True)
        table.add_column("engine")
        for column in columns:
            table.add_column(column.column.replace(", ", "\n"), justify="right")
        for engine in engines:
            stacks = [[_cell(record, column, engine, metric) for metric in SEARCH] for column in columns]
            table.add_row(engine, *("\n".join(numbers) if any(numbers) else "" for numbers in stacks))
        console.print(table)


def markdown(record: MatchRecord) -> str:
    """The same tables as a page."""
    lines: list[str] = []
    for number, columns, engines in _grids(record):
        for metric, heading in _ALONE.items():
            lines += ["", f"### {counted(number)} subscriptions: {heading}", ""]
            lines.append(f"| engine | {' | '.join(column.column for column in columns)} |")
            lines.append("|---" + "|--:" * len(columns) + "|")
            for engine in engines:
                cells = [_cell(record, column, engine, metric) for column in columns]
                lines.append(f"| {engine} | {' | '.join(cells)} |")
    return LAYOUT.markdown(record, lines)


def line(row: Row) -> str:
    """A row in one line, for the progress."""
    return row_line(row, SEARCH, shown) if row.group == "engine" else LAYOUT.line(row)


def _grids(record: MatchRecord) -> Iterator[tuple[int, list[Configuration], list[str]]]:
    """For each number of subscriptions, the configurations and engines that were measured."""
    for number in (SMALL, MANY, LARGE):
        columns = [column.with_subscriptions(number) for column in COLUMNS]
        columns = [column for column in columns if any(row.workload == column.name for row in record.rows)]
        names = {column.name for column in columns}
        engines = [name for name in ENGINES if any(row.peer == name and row.workload in names for row in record.rows)]
        if columns:
            yield number, columns, engines


def _cell(record: MatchRecord, configuration: Configuration, engine: str, metric: str) -> str:
    row = record.row(configuration.name, engine)
    if row is None:
        return ""
    return shown(metric, row.metrics.get(metric)) if row.status == "measured" else row.status
