"""The outcome of a run that has goals, as data: rows, goals, what was left out and why, written as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar

from tieline.bench.priority.goals import Goal
from tieline.bench.record import Record


@dataclass(slots=True, kw_only=True)
class JudgedRecord(Record):
    """Everything one run found out."""

    #: What the file calls itself.
    form: ClassVar[str]

    #: Parts that did not run, and why.
    left_out: dict[str, str] = field(default_factory=dict)
    goals: list[Goal] = field(default_factory=list)

    @property
    def failures(self) -> list[str]:
        """Rows that failed, in words."""
        return [f"{row.title}: {row.peer}: {row.note}" for row in self.rows if row.status == "failed"]

    @property
    def wrong(self) -> list[str]:
        """Why the run as a whole is no good, in words."""
        return self.failures

    def write(self, path: Path) -> None:
        """The record as JSON."""
        rows = [{**asdict(row), "metrics": row.metrics, "flags": row.flags} for row in self.rows]
        goals = [{**asdict(goal), "verdict": goal.verdict} for goal in self.goals]
        data = {"format": self.form, **asdict(self), **self.derived(), "rows": rows, "goals": goals}
        del data["targets"]
        path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")

    def derived(self) -> dict[str, object]:
        """What is computed from the rows and written with them."""
        return {}
