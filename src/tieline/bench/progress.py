"""Progress while the broker benchmark lasts: a bar on a terminal, a line for each workload."""

from __future__ import annotations

from collections.abc import Sequence

from tieline.bench.bar import Bar
from tieline.bench.record import Row
from tieline.bench.report import cell
from tieline.bench.workloads.workload import Workload


class Display(Bar):
    """A watcher that shows what is going on."""

    def measuring(self, workload: Workload, peer: str, repetition: int) -> None:
        """A measurement begins."""
        self.begin(f"{workload.title}: {peer} ({repetition + 1})")

    def finished(self, workload: Workload, rows: Sequence[Row]) -> None:
        """All rows of a workload are there."""
        numbers = ", ".join(f"{row.peer} {cell(row, workload)}{row.note and f' ({row.note})'}" for row in rows)
        self.say(f"[{self._begun}/{self._steps}] {workload.title}: {numbers}")
