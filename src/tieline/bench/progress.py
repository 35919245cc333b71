"""Progress while the run lasts: a bar on a terminal, a line for each workload elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tieline.bench.record import Row
from tieline.bench.report import cell
from tieline.bench.workloads.workload import Workload


class Display:
    """A watcher that shows what is going on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            refresh_per_second=2,  # drawing takes CPU that the brokers are measured by
        )
        self._task = self._bar.add_task("starting", total=None)
        self._steps = self._done = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def planned(self, steps: int) -> None:
        """So many measurements will be made."""
        self._steps = steps
        self._bar.update(self._task, total=steps)

    def measuring(self, workload: Workload, peer: str, repetition: int) -> None:
        """A measurement begins."""
        self._bar.update(self._task, description=f"{workload.title}: {peer} ({repetition + 1})", completed=self._done)
        self._done += 1

    def finished(self, workload: Workload, rows: Sequence[Row]) -> None:
        """All rows of a workload are there."""
        numbers = ", ".join(f"{row.peer} {cell(row, workload)}{row.note and f' ({row.note})'}" for row in rows)
        self._console.print(
            f"[{self._done}/{self._steps}] {workload.title}: {numbers}", highlight=False, markup=False, soft_wrap=True
        )
