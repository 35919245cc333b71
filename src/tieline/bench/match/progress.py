"""Progress while the run lasts, as for priorities, with this benchmark's numbers."""

from __future__ import annotations

from collections.abc import Sequence

from tieline.bench.match.report import line
from tieline.bench.priority.progress import Display as StepDisplay
from tieline.bench.record import Row


class Display(StepDisplay):
    """A watcher that shows what is going on."""

    def found(self, rows: Sequence[Row]) -> None:
        """Rows are complete."""
        for row in rows:
            self._console.print(f"  {line(row)}", highlight=False, markup=False, soft_wrap=True)
