"""The outcome of a run as data: rows, goals, what was left out and why, written as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tieline.bench.priority.goals import Goal
from tieline.bench.record import Record

FORMAT = "tieline-bench-priority-1"


@dataclass(slots=True, kw_only=True)
class PriorityRecord(Record):
    """Everything one run found out."""

    #: Parts that did not run, and why.
    left_out: dict[str, str] = field(default_factory=dict)
    goals: list[Goal] = field(default_factory=list)
    #: Urgent messages over the thin link: (second of sending, seconds taken), by workload and broker.
    timelines: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """The record as JSON."""
        rows = [{**asdict(row), "metrics": row.metrics, "flags": row.flags} for row in self.rows]
        goals = [{**asdict(goal), "verdict": goal.verdict} for goal in self.goals]
        data = {"format": FORMAT, **asdict(self), "rows": rows, "goals": goals}
        del data["targets"]
        path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
