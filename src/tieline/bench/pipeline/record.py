"""The outcome of a run as data: rows, goals, what was left out and why, written as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tieline.bench.pipeline.goals import FAULTS, Goal
from tieline.bench.record import Record

FORMAT = "tieline-bench-pipeline-1"


@dataclass(slots=True, kw_only=True)
class PipelineRecord(Record):
    """Everything one run found out."""

    #: Parts that did not run, and why.
    left_out: dict[str, str] = field(default_factory=dict)
    goals: list[Goal] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """Rows that failed, and tables that do not hold what they should, in words."""
        failed = [f"{row.title}: {row.peer}: {row.note}" for row in self.rows if row.status == "failed"]
        faulty = [
            f"{row.title}: {row.peer}: {row.metrics[name]:.0f} {name}"
            for row in self.rows
            for name in FAULTS
            if row.metrics.get(name)
        ]
        return [*failed, *faulty]

    def write(self, path: Path) -> None:
        """The record as JSON."""
        rows = [{**asdict(row), "metrics": row.metrics, "flags": row.flags} for row in self.rows]
        goals = [{**asdict(goal), "verdict": goal.verdict} for goal in self.goals]
        data = {"format": FORMAT, **asdict(self), "rows": rows, "goals": goals}
        del data["targets"]
        path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
