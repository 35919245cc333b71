"""What jobs print: results as columns side by side, JSON lines or CSV; and how far ingest has come."""

from __future__ import annotations

import csv
import json
import math
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self  # Any: rows of Spark

import typer
from rich.console import Console
from rich.status import Status

if TYPE_CHECKING:
    from tieline.pipeline.jobs.ingest_batch import Landed


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


#: Between two lines where there is no terminal.
_PAUSE_S: Final = 2.0
#: The rate is that of about so many seconds.
_WINDOW_S: Final = 30.0


class Rate:
    """Records per second over the last while."""

    def __init__(self, now: float) -> None:
        self._marks: list[tuple[float, int]] = [(now, 0)]
        self.total = 0

    def add(self, count: int, now: float) -> None:
        self.total += count
        self._marks.append((now, self.total))
        while len(self._marks) > 2 and self._marks[1][0] < now - _WINDOW_S:
            self._marks.pop(0)

    def per_second(self, now: float) -> float:
        began, before = self._marks[0]
        return (self.total - before) / max(now - began, 1e-9)


class Progress:
    """Tells about batches as they land; on standard error, so that results can be piped."""

    def __init__(self, *, quiet: bool = False, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._quiet = quiet
        self._rate = Rate(time.monotonic())
        self._bad = self._again = 0
        self._told = float("-inf")
        self._status: Status | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._quiet:
            self._status = self._console.status("starting")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    @property
    def records(self) -> int:
        """How many records have landed so far, in all batches."""
        return self._rate.total

    def landed(self, batch: Landed) -> None:
        """A batch is in the tables; called from Spark's thread."""
        with self._lock:
            self._rate.add(batch.records, time.monotonic())
            self._bad += batch.rows.get("quarantine", 0)
            self._again += batch.rows.get("duplicates", 0)

    def tell(self, left: int | None) -> None:
        """Show where it stands; ``left`` records are still to come, if that is known."""
        now = time.monotonic()
        with self._lock:
            text = line(self._rate.total, self._rate.per_second(now), left, self._bad, self._again)
        if self._status is not None:
            self._status.update(text)
        elif not self._quiet and now >= self._told + _PAUSE_S and self._rate.total:
            self._told = now
            self._console.print(text, soft_wrap=True, highlight=False, markup=False)

    def say(self, text: str) -> None:
        """A line that stays."""
        if not self._quiet:
            self._console.print(text, soft_wrap=True, highlight=False, markup=False)


def line(records: int, rate: float, left: int | None, bad: int, again: int) -> str:
    """How far it has come, in words."""
    parts = [f"{records:,} records", f"{rate:,.0f}/s"]
    if left is not None:
        parts.append(f"{left:,} behind")
        if left and rate >= 1:
            parts.append(f"{_clock(left / rate)} left")
    if bad:
        parts.append(f"{bad:,} in quarantine")
    if again:
        parts.append(f"{again:,} duplicates")
    return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
