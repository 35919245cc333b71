"""The run in words and tables: what was measured, against what, and which goals are met."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from rich.console import Console
from rich.table import Table

from tieline.bench.goals_report import goal_lines, goal_table, row_line
from tieline.bench.plan.metrics import shown
from tieline.bench.plan.record import NAIVE, PlanRecord
from tieline.bench.record import Row
from tieline.bench.report import preamble, remarks

#: Group of rows: title, and the shown numbers with their headings.
TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "sizes": (
        "The paper's sizes: CPU seconds, median and worst over the seeds",
        {"cpu_s": "until the end", "found_s": "best plan found", "is_proven": "proven", "gap": "gap", "unmet": "unmet"},
    ),
    "networks": (
        "Larger meshes: what is proven after the time given",
        {
            "gap": "gap",
            "unmet": "unmet",
            "first_s": "first plan",
            "done_s": "gap of 1 %",
            "cpu_s": "CPU",
            "wall_s": "clock",
        },
    ),
    "first": (
        "Very large: the first plan that keeps every limit",
        {"first_s": "first plan, CPU", "first_wall_s": "by the clock", "unmet": "unmet", "gap": "gap"},
    ),
    "replan": (
        "A link fails: planning again, beside a cold start; seconds by the clock",
        {
            "warm_s": "again",
            "cold_s": "cold, to a gap of 1 %",
            "as_good_s": "cold, as good",
            "moved": "flows moved",
            "moved_cold": "cold",
            "flows": "of",
            "lost": "lost",
            "gap": "gap",
        },
    ),
    "bounds": (
        "Bounds against the optimum",
        {"instances": "instances", "above": "above the optimum", "closeness": "bound : optimum"},
    ),
    "distributed": (
        "Brokers among themselves, beside the central plan",
        {
            "behind": "dearer per served request",
            "more_unmet": "more unmet",
            "messages": "messages",
            "messages_request": "per request",
            "cpu_s": "CPU",
        },
    ),
}
#: Numbers of which the worst is shown beside the median.
_WITH_WORST = ("cpu_s", "found_s", "gap")


def show(record: PlanRecord, console: Console) -> None:
    """Print everything a reader needs to judge the numbers."""
    for text in _preamble(record):
        console.print(text, highlight=False, markup=False)
    for title, headings, lines in _tables(record):
        table = Table(title=title, title_justify="left")
        for place, heading in enumerate(headings):
            table.add_column(heading, justify="right" if place > 1 else "left", overflow="fold")
        for cells in lines:
            table.add_row(*cells)
        console.print(table)
    for text in remarks(record):
        console.print(text, highlight=False, markup=False)
    console.print(goal_table(record.goals))


def markdown(record: PlanRecord) -> str:
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


def _preamble(record: PlanRecord) -> Iterator[str]:
    yield from preamble(record)
    yield f"compiling and warming up took {record.compile_s:.1f} s, which are in no number below"
    limited = sum(not one["is_proven"] for row in record.rows if row.peer == NAIVE for one in row.repetitions)
    if limited:
        yield f"the naive model was ended by its time limit {limited} times: its times are at least what is shown"


def _tables(record: PlanRecord) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Title, headings and cells of every table."""
    for group, (title, columns) in TABLES.items():
        rows = [row for row in record.rows if row.group == group]
        if rows:
            yield title, ["case", "with", *columns.values()], [_cells(row, columns) for row in rows]


def _cells(row: Row, columns: dict[str, str]) -> list[str]:
    if row.status != "measured":
        return [row.title, row.peer, row.status, *[""] * (len(columns) - 1)]
    return [row.title, row.peer, *(_cell(row, name) for name in columns)]


def _cell(row: Row, name: str) -> str:
    values = [one[name] for one in row.repetitions if name in one]
    if not values:
        return ""
    if name == "is_proven":
        return f"{sum(values):.0f} of {len(values)}"
    middle = shown(name, median(values))
    return f"{middle} / {shown(name, max(values))}" if name in _WITH_WORST and len(values) > 1 else middle
