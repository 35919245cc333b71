"""The outcome of a run as data: rows, goals, what was left out and why, written as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tieline.bench.match.goals import Goal
from tieline.bench.record import Record

FORMAT = "tieline-bench-match-1"


@dataclass(slots=True, kw_only=True)
class MatchRecord(Record):
    """Everything one run found out."""

    #: Parts that did not run, and why.
    left_out: dict[str, str] = field(default_factory=dict)
    goals: list[Goal] = field(default_factory=list)

    @property
    def compared(self) -> int:
        """Answers and messages that were compared with the right ones."""
        return sum(int(one.get("compared", 0)) for row in self.rows for one in row.repetitions[:1])

    @property
    def wrong(self) -> list[str]:
        """Rows that failed, in words."""
        return [f"{row.title}: {row.peer}: {row.note}" for row in self.rows if row.status == "failed"]

    def write(self, path: Path) -> None:
        """The record as JSON."""
        rows = [{**asdict(row), "metrics": row.metrics, "flags": row.flags} for row in self.rows]
        goals = [{**asdict(goal), "verdict": goal.verdict} for goal in self.goals]
        data = {"format": FORMAT, **asdict(self), "compared": self.compared, "rows": rows, "goals": goals}
        del data["targets"]
        path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
