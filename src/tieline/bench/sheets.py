"""What a run has found, for a terminal and for a page: words, a table for each group of rows, remarks, goals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from rich.console import Console
from rich.table import Table

from tieline.bench.goals_report import goal_lines, goal_table, row_line
from tieline.bench.judged import JudgedRecord
from tieline.bench.record import Row
from tieline.bench.report import preamble, remarks

R = TypeVar("R", bound=JudgedRecord)

#: Group of rows: title, and the shown numbers with their headings.
Tables = Mapping[str, tuple[str, dict[str, str]]]


class Sheet(NamedTuple):
    """One table."""

    title: str
    headings: list[str]
    cells: list[list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout(Generic[R]):
    """How the record of a benchmark is shown."""

    tables: Tables
    #: The headings of a row's title and of who was measured.
    first: tuple[str, str]
    #: A number by its name, as text.
    shown: Callable[[str, float | None], str]
    #: A cell of a measured row; the number itself if nothing is given.
    cell: Callable[[Row, str], str] | None = None
    #: What a reader should know before the tables, besides machine and versions.
    words: Callable[[R], Iterable[str]] | None = None

    def show(self, record: R, console: Console, between: Callable[[], None] | None = None) -> None:
        """Print everything a reader needs to judge the numbers."""
        _show_words(console, self._opening(record))
        if between is not None:
            between()
        for sheet in self.sheets(record.rows):
            table = Table(title=sheet.title, title_justify="left")
            for place, heading in enumerate(sheet.headings):
                table.add_column(heading, justify="right" if place > 1 else "left", overflow="fold")
            for cells in sheet.cells:
                table.add_row(*cells)
            console.print(table)
        _show_words(console, remarks(record))
        console.print(goal_table(record.goals))

    def markdown(self, record: R, between: Sequence[str] = ()) -> str:
        """The same as a page."""
        lines = [*(f"- {text}" for text in self._opening(record)), *between]
        for sheet in self.sheets(record.rows):
            lines += ["", f"### {sheet.title}", "", f"| {' | '.join(sheet.headings)} |"]
            lines.append("|---|---" + "|--:" * (len(sheet.headings) - 2) + "|")
            lines += [f"| {' | '.join(cells)} |" for cells in sheet.cells]
        lines += ["", *(f"- {text}" for text in remarks(record)), "", *goal_lines(record.goals)]
        return "\n".join(lines) + "\n"

    def line(self, row: Row) -> str:
        """A row in one line, for the progress."""
        return row_line(row, self.tables[row.group][1], self.shown)

    def _opening(self, record: R) -> Iterator[str]:
        yield from preamble(record)
        if self.words is not None:
            yield from self.words(record)
        yield from (f"left out: {part}: {why}" for part, why in record.left_out.items())

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


def _show_words(console: Console, words: Iterable[str]) -> None:
    for text in words:
        console.print(text, highlight=False, markup=False)
