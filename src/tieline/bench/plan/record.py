"""The outcome of a run as data: rows, goals, written as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tieline.bench.load.job import Metrics
from tieline.bench.priority.goals import Goal
from tieline.bench.record import Record

FORMAT = "tieline-bench-plan-1"
#: The two that solve the paper's sizes.
OURS, NAIVE = "tieline", "naive F1"


@dataclass(slots=True, kw_only=True)
class PlanRecord(Record):
    """Everything one run found out."""

    #: Seconds to compile what is compiled once after installation; they are in no other number.
    compile_s: float = 0.0
    goals: list[Goal] = field(default_factory=list)

    def each(self, workload: str, peer: str = OURS) -> Iterator[Metrics]:
        """The single instances behind a row: goals are about the worst of them, not about the median."""
        row = self.row(workload, peer)
        if row is not None and row.status == "measured":
            yield from row.repetitions

    def write(self, path: Path) -> None:
        """The record as JSON."""
        rows = [{**asdict(row), "metrics": row.metrics} for row in self.rows]
        goals = [{**asdict(goal), "verdict": goal.verdict} for goal in self.goals]
        data = {"format": FORMAT, **asdict(self), "rows": rows, "goals": goals}
        del data["targets"]
        path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
