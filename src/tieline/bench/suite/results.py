"""The outcome of a run as data: rows, verdicts, versions and machine, written as JSON."""

from __future__ import annotations

import datetime as dt
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self  # Any: fields of any kind of record

from tieline.bench.load.job import Metrics
from tieline.bench.machine import describe_commit, describe_machine

Status = Literal["measured", "failed", "not offered", "not run"]
#: A row is known by its workload and its peer.
Key = tuple[str, str]

#: Beyond these the generator, not the broker, was what a row measured.
_GENERATOR_BUSY = 0.9
_DISTURBED = 0.25


@dataclass(slots=True, kw_only=True)
class Row:
    """One workload on one peer: a broker, an engine, a way to do something."""

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

    def end(self, status: Status, note: str) -> None:
        """There will be no numbers, for this reason."""
        self.status, self.note = status, note


def rows_of(workload: str, title: str, group: str, peers: Sequence[str]) -> list[Row]:
    """A row of one workload for each of the peers."""
    return [Row(workload=workload, title=title, group=group, peer=peer) for peer in peers]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One goal with what was measured for it."""

    text: str
    limit: float
    unit: str
    at_least: bool
    measured: float | None
    #: What was measured is no good: messages were lost, an answer was wrong, or a process died.
    failed: bool = False
    #: Why nothing was measured.
    why: str = ""

    @property
    def verdict(self) -> str:
        """``met``, ``not met`` or ``not measured``."""
        if self.failed:
            return "not met"
        if self.measured is None:
            return "not measured"
        return "met" if (self.measured >= self.limit if self.at_least else self.measured <= self.limit) else "not met"


@dataclass(slots=True, kw_only=True)
class Record:
    """Where, when and with what a run took place."""

    #: What was run, and the version of the form in which it is written.
    form: str
    quick: bool
    started: str
    commit: str
    machine: dict[str, str | int | float]
    versions: dict[str, str]
    #: What is not installed, and the command that would install each.
    absent: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @classmethod
    def begun(cls, form: str, versions: Mapping[str, str], *, quick: bool, **more: Any) -> Self:
        """A run that begins here and now, with these versions; ``more`` are fields of the kind of record."""
        started = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        return cls(
            form=form,
            quick=quick,
            started=started,
            commit=describe_commit(),
            machine=describe_machine(),
            versions=dict(versions),
            **more,
        )

    def data(self) -> dict[str, object]:
        """What the file holds."""
        data = asdict(self)
        return {"format": data.pop("form"), **data}

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(self.data(), indent=1, ensure_ascii=False) + "\n")

    def preamble(self) -> Iterator[str]:
        """Machine, commit, versions, and what is not installed."""
        machine = self.machine
        yield (
            f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, Linux {machine['kernel']}; "
            f"commit {self.commit}; {'quick ' if self.quick else ''}run of {self.seconds:.0f} s at {self.started}"
        )
        yield "  ".join(f"{name} {version}" for name, version in self.versions.items())
        for name, install in self.absent.items():
            yield f"absent: {name} (to install it: {install})"


@dataclass(slots=True, kw_only=True)
class Results(Record):
    """Everything one run of a benchmark found out."""

    rows: list[Row] = field(default_factory=list)
    goals: list[Verdict] = field(default_factory=list)
    #: Numbers of the run as a whole.
    totals: dict[str, float] = field(default_factory=dict)
    #: What happened in the course of a row, by workload and peer: (second, value).
    timelines: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def row(self, workload: str, peer: str) -> Row | None:
        """The row of a workload on a peer, if there is one."""
        return next((row for row in self.rows if row.workload == workload and row.peer == peer), None)

    def value(self, workload: str, peer: str, metric: str) -> float | None:
        """One median, if it was measured."""
        row = self.row(workload, peer)
        return row.metrics.get(metric) if row else None

    def ratio(self, workload: str, metric: str, peer: str, baseline: str) -> float | None:
        """One peer's median against another's, if both were measured and the divisor is not zero."""
        above, below = self.value(workload, peer, metric), self.value(workload, baseline, metric)
        return above / below if above is not None and below else None

    def each(self, workload: str, peer: str) -> Iterator[Metrics]:
        """The single repetitions behind a row, for goals that are about the worst of them and not about the median."""
        row = self.row(workload, peer)
        if row is not None and row.status == "measured":
            yield from row.repetitions

    def failed(self, key: Key) -> bool:
        """Whether this peer was asked and did not do the work."""
        row = self.row(*key)
        return row is not None and row.status == "failed"

    @property
    def failures(self) -> list[str]:
        """The rows that failed, in words."""
        return [f"{row.title}: {row.peer}: {row.note}" for row in self.rows if row.status == "failed"]

    def data(self) -> dict[str, object]:
        """What the file holds: medians, flags and verdicts beside what they are computed from."""
        return {
            "format": f"tieline-bench-{self.form}",
            **{each.name: getattr(self, each.name) for each in fields(Record) if each.name != "form"},
            **self.totals,
            **({"timelines": self.timelines} if self.timelines else {}),
            "rows": [{**asdict(row), "metrics": row.metrics, "flags": row.flags} for row in self.rows],
            "goals": [{**asdict(goal), "verdict": goal.verdict} for goal in self.goals],
        }
