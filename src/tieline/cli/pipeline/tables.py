"""Results of jobs as people and programs take them: columns side by side, JSON lines, or CSV."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import typer

Style = Literal["human", "json", "csv"]
Format = Annotated[Style, typer.Option("--format", help="For people, one JSON object on each line, or CSV.")]


def show(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], style: Style) -> int:
    """Print rows; how many there were."""
    if style == "human":
        return _aligned(columns, rows)
    count = 0
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if style == "csv":
        writer.writerow(columns)
    for row in rows:
        count += 1
        if style == "csv":
            writer.writerow([_plain(row[name]) for name in columns])
        else:
            print(json.dumps({name: _plain(row[name]) for name in columns}))
    return count


def _aligned(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> int:
    found = [[row[name] for name in columns] for row in rows]
    if not found:
        print("nothing")
        return 0
    texts = [[_told(value) for value in row] for row in found]
    is_number = [all(isinstance(row[place], int | float | None) for row in found) for place in range(len(columns))]
    widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    for row in (list(columns), *texts):
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number, strict=True)
        )
        print("  ".join(cells).rstrip())
    return len(found)


def _told(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return _utc(value).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}" if math.isfinite(value) else "unknown"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _plain(value: Any) -> Any:
    """A value that JSON has: no infinity, and times as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return _utc(value).isoformat() if isinstance(value, datetime) else value


def _utc(when: datetime) -> datetime:
    """Spark hands times over on this machine's wall clock; people give them in UTC, and read them so."""
    return when.astimezone(UTC)
