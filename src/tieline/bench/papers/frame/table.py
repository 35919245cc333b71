"""Data of an experiment in long form: a row for every point, protocol and seed, so that no mean hides what varies."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, Self

Cell = str | int | float | bool | None
#: Enough for every figure, and few enough that a file of a run can be compared with the next one's.
_DIGITS: Final = 6
#: What is no number and no word.
_WORDS: Final[Mapping[str, Cell]] = {"": None, "True": True, "False": False}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns.

    ``columns`` gives each column its words, units included, as they stand on the page.  The order of rows is the order
    in which they were measured, so that two runs from one seed write the same file.
    """

    name: str
    columns: Mapping[str, str]
    rows: Sequence[tuple[Cell, ...]]

    def where(self, **wanted: Cell | Callable[[Cell], bool]) -> Table:
        """The rows whose cells are these; a function decides about its cell itself."""
        tests = [
            (self._place(name), value if callable(value) else partial(_is_same, value))
            for name, value in wanted.items()
        ]
        return Table(self.name, self.columns, [row for row in self.rows if all(test(row[at]) for at, test in tests)])

    def column(self, name: str) -> list[float]:
        """The numbers of a column, row by row; rows without one are left out."""
        at = self._place(name)
        return [float(cell) for row in self.rows if (cell := row[at]) is not None and not isinstance(cell, str)]

    def values(self, name: str) -> list[Cell]:
        """What a column has, each value once, in the order of the rows."""
        at = self._place(name)
        return list(dict.fromkeys(row[at] for row in self.rows))

    def numbers(self, name: str) -> list[float]:
        """The different numbers of a column, sorted: the places along an axis."""
        return sorted(set(self.column(name)))

    def words(self, name: str) -> list[str]:
        """The different words of a column, in the order of the rows: the series of a figure."""
        return [str(value) for value in self.values(name)]

    def median(self, name: str, **wanted: Cell) -> float:
        """The middle of a column, over the rows whose cells are these."""
        return median(self.where(**wanted).column(name))

    def by(self, x: str, y: str, **wanted: Cell) -> list[list[float]]:
        """For every place on x the numbers of y, one for each seed: what trends are judged by."""
        chosen = self.where(**wanted)
        return [chosen.where(**{x: place}).column(y) for place in chosen.numbers(x)]

    def write(self, path: Path) -> None:
        """Write it as CSV."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows([_written(cell) for cell in row] for row in self.rows)

    @classmethod
    def read(cls, path: Path, columns: Mapping[str, str]) -> Self:
        """The table in a file, which has the names of its columns and not their words."""
        with path.open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        if head != list(columns):
            raise ValueError(f"{path} has the columns {', '.join(head)}, not {', '.join(columns)}")
        return cls(path.stem, columns, [tuple(map(_meant, row)) for row in rows])

    def flaws(self) -> list[str]:
        """What is wrong with its form."""
        odd = {len(row) for row in self.rows} - {len(self.columns)}
        found = [f"table {self.name}: rows of {width} cells under {len(self.columns)} columns" for width in sorted(odd)]
        return found if self.rows else [*found, f"table {self.name} has no rows"]

    def _place(self, name: str) -> int:
        try:
            return list(self.columns).index(name)
        except ValueError:
            raise KeyError(f"table {self.name} has no column {name}, only {', '.join(self.columns)}") from None


def _is_same(value: Cell, cell: Cell) -> bool:
    return cell == value


def _meant(text: str) -> Cell:
    """A cell as it was, but for the digits that were not written."""
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _written(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.{_DIGITS}g}"
    return str(cell)
