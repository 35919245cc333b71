"""The outcome of a run as data: rows, goals, and the course of urgent messages over the thin link."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tieline.bench.judged import JudgedRecord


@dataclass(slots=True, kw_only=True)
class PriorityRecord(JudgedRecord):
    """Everything one run found out."""

    form: ClassVar[str] = "tieline-bench-priority-1"

    #: Urgent messages over the thin link: (second of sending, seconds taken), by workload and broker.
    timelines: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
