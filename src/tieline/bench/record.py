"""The outcome of a run as data: rows, targets, versions and machine, written as JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from tieline.bench.load.job import Metrics
from tieline.bench.targets import Verdict

FORMAT = "tieline-bench-broker-1"
Status = Literal["measured", "failed", "not offered", "not run"]

#: Beyond these the generator, not the broker, was what a row measured.
_GENERATOR_BUSY = 0.9
_DISTURBED = 0.25


@dataclass(slots=True, kw_only=True)
class Row:
    """One workload on one broker."""

    workload: str
    title: str
    group: str
    peer: str
    status: Status = "measured"
    #: Why there are no numbers, unless measured.
    note: str = ""
    repetitions: list[Metrics] = field(default_factory=list)

    @property
    def metrics(self) -> Metrics:
        """The median of every metric over the repetitions."""
        if self.status != "measured" or not self.repetitions:
            return {}
        return {name: statistics.median(one[name] for one in self.repetitions) for name in self.repetitions[0]}

    @property
    def flags(self) -> list[str]:
        """Reasons to read the numbers with care."""
        metrics = self.metrics
        found = []
        generator, broker = metrics.get("generator_cores", 0.0), metrics.get("broker_cores", 0.0)
        if generator > _GENERATOR_BUSY and broker < _GENERATOR_BUSY:
            found.append("the load generator was the bottleneck")
        if metrics.get("other_cores", 0.0) > _DISTURBED:
            found.append("the machine was busy with something else")
        return found


@dataclass(slots=True, kw_only=True)
class Record:
    """Everything one run found out."""

    quick: bool
    started: str
    commit: str
    machine: dict[str, str | int | float]
    versions: dict[str, str]
    #: Absent brokers and the command that would install each.
    absent: dict[str, str]
    seconds: float = 0.0
    rows: list[Row] = field(default_factory=list)
    targets: Sequence[Verdict] = ()

    def row(self, workload: str, peer: str) -> Row | None:
        """The row of a workload on a broker, if there is one."""
        return next((row for row in self.rows if row.workload == workload and row.peer == peer), None)

    def value(self, workload: str, peer: str, metric: str) -> float | None:
        """One median, if it was measured."""
        row = self.row(workload, peer)
        return row.metrics.get(metric) if row else None

    def ratio(self, workload: str, metric: str, peer: str, baseline: str) -> float | None:
        """One broker's median against another's, if both were measured and the divisor is not zero."""
        above, below = self.value(workload, peer, metric), self.value(workload, baseline, metric)
        return above / below if above is not None and below else None

    def failed(self, workload: str, peer: str) -> bool:
        """Whether this broker was asked and did not do the work."""
        row = self.row(workload, peer)
        return row is not None and row.status == "failed"

    def write(self, path: Path) -> None:
        """The record as JSON."""
        rows = [{**asdict(row), "metrics": row.metrics, "flags": row.flags} for row in self.rows]
        targets = [{**asdict(one), "verdict": one.verdict} for one in self.targets]
        data = {"format": FORMAT, **asdict(self), "rows": rows, "targets": targets}
        path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
