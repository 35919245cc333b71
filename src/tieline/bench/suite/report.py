"""What a run has found, for a terminal and for a page: words, a table for each group of rows, remarks, goals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Drawn

from tieline.bench.metrics import Metric, amount, three_digits
from tieline.bench.suite.declaration import NOT_ASKED, GroupTable, Suite
from tieline.bench.suite.results import Results, Row, Verdict

#: More rows than these are counted instead of named.
_LISTED = 12
_COLOURS = {"met": "green", "not met": "red", "not measured": "dim"}


class _Sheet(NamedTuple):
    """One table as text; the first so many columns are words."""

    title: str
    headings: list[str]
    lines: list[list[str]]
    words: int = 1


def show(suite: Suite, results: Results, console: Console) -> None:
    """Print everything a reader needs to judge the numbers; goals that nobody asked about are left out."""
    _print(console, [*results.preamble(), *suite.words(results)])
    for sheet in _sheets(suite, results, separator="\n"):
        console.print(drawn(sheet.title, sheet.headings, sheet.lines, words=sheet.words))
    _print(console, [*remarks(results), *suite.remarks(results)])
    asked = [goal for goal in results.goals if goal.why != NOT_ASKED]
    if asked:
        table = Drawn(title="Goals", title_justify="left")
        for heading in ("goal", "limit", "measured", ""):
            table.add_column(heading, justify="right" if heading in ("limit", "measured") else "left")
        for goal in asked:
            table.add_row(goal.text, _limit(goal), _measured(goal), f"[{_COLOURS[goal.verdict]}]{_verdict(goal)}[/]")
        console.print(table)


def markdown(suite: Suite, results: Results) -> str:
    """The same as a page, with every goal."""
    lines = [f"- {text}" for text in (*results.preamble(), *suite.words(results))]
    for sheet in _sheets(suite, results, separator=", "):
        lines += ["", f"### {sheet.title}", "", *page_table(sheet.headings, sheet.lines, words=sheet.words)]
    lines += ["", *(f"- {text}" for text in (*remarks(results), *suite.remarks(results))), "", "### Goals", ""]
    goals = [[goal.text, _limit(goal), _measured(goal), _verdict(goal)] for goal in results.goals]
    lines += ["| goal | limit | measured | |", "|---|--:|--:|---|", *(f"| {' | '.join(cells)} |" for cells in goals)]
    return "\n".join(lines) + "\n"


def line(suite: Suite, row: Row) -> str:
    """A row in one line, for the progress."""
    if row.status != "measured":
        return f"{row.title}: {row.peer}: {row.status}: {row.note}"
    table, metrics = suite.tables[row.group], row.metrics
    shown = [name for name in table.instead.get(row.workload, table.columns) if name in metrics]
    numbers = ", ".join(
        f"{table.columns.get(name, '').strip()} {amount(metrics[name], suite.metrics[name].unit)}".strip()
        for name in shown
    )
    return f"{row.title}: {row.peer}: {numbers}"


def remarks(results: Results) -> Iterator[str]:
    """Rows without numbers, and rows to be read with care."""
    ended: dict[str, list[Row]] = {}
    flagged: dict[str, list[Row]] = {}
    for row in results.rows:
        if row.status != "measured":
            ended.setdefault(f"{row.status}: {row.note}", []).append(row)
        for flag in row.flags:
            flagged.setdefault(flag, []).append(row)
    for how, rows in ended.items():
        if len(rows) == 1:
            yield f"{rows[0].title}: {rows[0].peer}: {how}"
        else:
            yield f"{how}: {_named(rows, f'{len(rows)} rows')}"
    measured = sum(row.status == "measured" for row in results.rows)
    for flag, rows in flagged.items():
        yield f"* {flag}: {_named(rows, f'{len(rows)} of {measured} rows, marked *')}"


def _named(rows: Sequence[Row], count: str) -> str:
    return ", ".join(f"{row.workload} ({row.peer})" for row in rows) if len(rows) <= _LISTED else count


def drawn(title: str, headings: Sequence[str], lines: Iterable[Sequence[str]], *, words: int = 1) -> Drawn:
    """A table for a terminal; all columns but the first ``words`` are numbers."""
    table = Drawn(title=title, title_justify="left", show_lines=any("\n" in cell for cells in lines for cell in cells))
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < words else "right", overflow="fold")
    for cells in lines:
        table.add_row(*map(escape, cells))
    return table


def page_table(headings: Sequence[str], lines: Iterable[Sequence[str]], *, words: int = 1) -> list[str]:
    """The same as lines of Markdown."""
    return [
        f"| {' | '.join(headings)} |",
        "|---" * words + "|--:" * (len(headings) - words) + "|",
        *(f"| {' | '.join(cells)} |" for cells in lines),
    ]


def _sheets(suite: Suite, results: Results, *, separator: str) -> Iterator[_Sheet]:
    """The tables that have rows; several numbers of a cell stand with this between them."""
    for group, table in suite.tables.items():
        rows = [row for row in results.rows if row.group == group]
        if rows:
            yield _grid(suite, table, results, rows, separator) if table.is_grid else _list(suite, table, rows)


def _list(suite: Suite, table: GroupTable, rows: Sequence[Row]) -> _Sheet:
    lines = []
    for row in rows:
        if row.status == "measured":
            numbers = [cell(row, name, suite.metrics[name]) for name in table.columns]
        else:
            numbers = [row.status, *[""] * (len(table.columns) - 1)]
        lines.append([row.title, row.peer, *numbers])
    return _Sheet(table.title, [*suite.headings, *table.columns.values()], lines, words=2)


def _grid(suite: Suite, table: GroupTable, results: Results, rows: Sequence[Row], separator: str) -> _Sheet:
    peers = list(dict.fromkeys(row.peer for row in rows))
    lines = []
    for workload, title in dict.fromkeys((row.workload, row.title) for row in rows):
        shown = table.instead.get(workload, tuple(table.columns))
        cells = [_stack(suite, results.row(workload, peer), shown, separator) for peer in peers]
        if table.ratio is not None:
            subject, baseline = table.ratio
            ratios = [results.ratio(workload, name, subject, baseline) for name in shown]
            cells.append(separator.join("-" if ratio is None else f"{three_digits(ratio)}x" for ratio in ratios))
        lines.append([title, *cells])
    last = [] if table.ratio is None else [" : ".join(table.ratio)]
    return _Sheet(table.title, [suite.headings[0], *peers, *last], lines)


def _stack(suite: Suite, row: Row | None, shown: Sequence[str], separator: str) -> str:
    """The shown numbers of a row, or why there are none."""
    if row is None:
        return ""
    metrics = row.metrics
    if not metrics:
        return row.status
    mark = " *" if row.flags else ""
    return separator.join(amount(metrics.get(name), suite.metrics[name].unit) for name in shown) + mark


def cell(row: Row, name: str, metric: Metric) -> str:
    """One number of a row: its median, and the worst where that matters; of yes and no, how often yes."""
    values = [one[name] for one in row.repetitions if name in one]
    if not values:
        return ""
    if metric.unit == "yes":
        return f"{sum(values):.0f} of {len(values)}"
    middle = amount(median(values), metric.unit)
    return f"{middle} / {amount(max(values), metric.unit)}" if metric.shows_worst and len(values) > 1 else middle


def _limit(goal: Verdict) -> str:
    return ("≥ " if goal.at_least else "≤ ") + amount(goal.limit, goal.unit)


def _measured(goal: Verdict) -> str:
    return "-" if goal.measured is None else amount(goal.measured, goal.unit)


def _verdict(goal: Verdict) -> str:
    return f"{goal.verdict}: {goal.why}" if goal.why and goal.verdict == "not measured" else goal.verdict


def _print(console: Console, words: Iterable[str]) -> None:
    for text in words:
        console.print(text, highlight=False, markup=False)
