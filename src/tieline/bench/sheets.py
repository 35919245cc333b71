"""What a run has found, for a terminal and for a page: words, a table for each group of rows, remarks, goals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from tieline.bench.goals_report import goal_lines, goal_table, row_line
from tieline.bench.priority.goals import Goal
from tieline.bench.record import Record, Row
from tieline.bench.report import remarks

#: Group of rows: title, and the shown numbers with their headings.
Tables = Mapping[str, tuple[str, dict[str, str]]]


class Sheet(NamedTuple):
    """One table."""

    title: str
    headings: list[str]
    cells: list[list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the rows of a benchmark are shown."""

    tables: Tables
    #: The headings of a row's title and of who was measured.
    first: tuple[str, str]
    #: A number by its name, as text.
    shown: Callable[[str, float | None], str]
    #: A cell of a measured row; the number itself if nothing is given.
    cell: Callable[[Row, str], str] | None = None

    def line(self, row: Row) -> str:
        """A row in one line, for the progress."""
        return row_line(row, self.tables[row.group][1], self.shown)

    def sheets(self, rows: Iterable[Row]) -> Iterator[Sheet]:
        """The tables that have rows."""
        known = list(rows)
        for group, (title, columns) in self.tables.items():
            here = [row for row in known if row.group == group]
            if here:
                yield Sheet(title, [*self.first, *columns.values()], [self._cells(row, columns) for row in here])

    def _cells(self, row: Row, columns: dict[str, str]) -> list[str]:
        if row.status != "measured":
            return [row.title, row.peer, row.status, *[""] * (len(columns) - 1)]
        metrics = row.metrics
        cell = self.cell
        numbers = (self.shown(name, metrics.get(name)) if cell is None else cell(row, name) for name in columns)
        return [row.title, row.peer, *numbers]


def show_words(console: Console, words: Iterable[str]) -> None:
    """Lines as they are."""
    for text in words:
        console.print(text, highlight=False, markup=False)


def show(console: Console, sheets: Iterable[Sheet], record: Record, goals: Sequence[Goal]) -> None:
    """Tables, what to read with care, goals."""
    for sheet in sheets:
        table = Table(title=sheet.title, title_justify="left")
        for place, heading in enumerate(sheet.headings):
            table.add_column(heading, justify="right" if place > 1 else "left", overflow="fold")
        for cells in sheet.cells:
            table.add_row(*cells)
        console.print(table)
    show_words(console, remarks(record))
    console.print(goal_table(goals))


def page(words: Iterable[str], sheets: Iterable[Sheet], record: Record, goals: Sequence[Goal]) -> str:
    """The same as Markdown, words first."""
    lines = list(words)
    for sheet in sheets:
        lines += ["", f"### {sheet.title}", "", f"| {' | '.join(sheet.headings)} |"]
        lines.append("|---|---" + "|--:" * (len(sheet.headings) - 2) + "|")
        lines += [f"| {' | '.join(cells)} |" for cells in sheet.cells]
    lines += ["", *(f"- {text}" for text in remarks(record)), "", *goal_lines(goals)]
    return "\n".join(lines) + "\n"
