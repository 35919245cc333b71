"""Goals and rows as every benchmark reports them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.table import Table

from tieline.bench.metrics import readable, three_digits
from tieline.bench.priority.goals import Goal
from tieline.bench.record import Row


def goal_table(goals: Sequence[Goal]) -> Table:
    """For a terminal."""
    table = Table(title="Goals", title_justify="left")
    table.add_column("goal")
    for heading in ("limit", "measured"):
        table.add_column(heading, justify="right")
    table.add_column("")
    colours = {"met": "green", "not met": "red", "not measured": "dim"}
    for goal in goals:
        verdict = f"[{colours[goal.verdict]}]{goal.verdict}[/]"
        table.add_row(goal.text, limit(goal), amount(goal.measured, goal.unit), verdict)
    return table


def goal_lines(goals: Sequence[Goal]) -> list[str]:
    """The same for a page."""
    return [
        "### Goals",
        "",
        "| goal | limit | measured | |",
        "|---|--:|--:|---|",
        *(f"| {goal.text} | {limit(goal)} | {amount(goal.measured, goal.unit)} | {goal.verdict} |" for goal in goals),
    ]


def row_line(row: Row, columns: Mapping[str, str], shown: Callable[[str, float | None], str]) -> str:
    """A row in one line, for the progress."""
    if row.status != "measured":
        return f"{row.title}: {row.peer}: {row.status}: {row.note}"
    metrics = row.metrics
    numbers = ", ".join(
        f"{heading.strip()} {shown(name, metrics[name])}" for name, heading in columns.items() if name in metrics
    )
    return f"{row.title}: {row.peer}: {numbers}"


def limit(goal: Goal) -> str:
    """The goal's limit with its direction."""
    return ("≥ " if goal.at_least else "≤ ") + amount(goal.limit, goal.unit)


def amount(value: float | None, unit: str) -> str:
    """A goal's number."""
    if value is None:
        return "-"
    if unit == "x":
        return f"{three_digits(value)}x"
    if unit == "ms" and value >= 1_000:
        return f"{three_digits(value / 1e3)} s"
    return readable(value, unit) if unit else f"{value:.0f}"
