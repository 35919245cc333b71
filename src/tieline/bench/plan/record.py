"""The outcome of a run as data: rows, goals, and the single instances behind a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tieline.bench.judged import JudgedRecord
from tieline.bench.load.job import Metrics

#: The two that solve the paper's sizes.
OURS, NAIVE = "tieline", "naive F1"


@dataclass(slots=True, kw_only=True)
class PlanRecord(JudgedRecord):
    """Everything one run found out."""

    form: ClassVar[str] = "tieline-bench-plan-1"

    #: Seconds to compile what is compiled once after installation; they are in no other number.
    compile_s: float = 0.0

    def each(self, workload: str, peer: str = OURS) -> Iterator[Metrics]:
        """The single instances behind a row: goals are about the worst of them, not about the median."""
        row = self.row(workload, peer)
        if row is not None and row.status == "measured":
            yield from row.repetitions
