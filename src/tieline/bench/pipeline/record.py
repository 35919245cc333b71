"""The outcome of a run as data: rows, goals, and what is wrong with the tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tieline.bench.judged import JudgedRecord
from tieline.bench.pipeline.goals import FAULTS


@dataclass(slots=True, kw_only=True)
class PipelineRecord(JudgedRecord):
    """Everything one run found out."""

    form: ClassVar[str] = "tieline-bench-pipeline-1"

    @property
    def wrong(self) -> list[str]:
        """Rows that failed, and tables that do not hold what they should, in words."""
        faulty = [
            f"{row.title}: {row.peer}: {row.metrics[name]:.0f} {name}"
            for row in self.rows
            for name in FAULTS
            if row.metrics.get(name)
        ]
        return [*self.failures, *faulty]
