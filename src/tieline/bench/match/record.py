"""The outcome of a run as data: rows, goals, and how much was compared with the right answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tieline.bench.judged import JudgedRecord


@dataclass(slots=True, kw_only=True)
class MatchRecord(JudgedRecord):
    """Everything one run found out."""

    form: ClassVar[str] = "tieline-bench-match-1"

    @property
    def compared(self) -> int:
        """Answers and messages that were compared with the right ones."""
        return sum(int(one.get("compared", 0)) for row in self.rows for one in row.repetitions[:1])

    def derived(self) -> dict[str, object]:
        """What is computed from the rows and written with them."""
        return {"compared": self.compared}
