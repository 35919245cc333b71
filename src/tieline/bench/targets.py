"""What the broker is to reach, and whether it did: computed from the rows, never stated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from tieline.bench.peers import BASELINE, SUBJECT


class Numbers(Protocol):
    """Where targets get their numbers from."""

    def value(self, workload: str, peer: str, metric: str) -> float | None:
        """One measured number."""

    def ratio(self, workload: str, metric: str, peer: str, baseline: str) -> float | None:
        """One measured ratio."""

    def failed(self, workload: str, peer: str) -> bool:
        """Whether this broker did not do the work."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One target with what was measured for it."""

    target: str
    limit: float
    at_least: bool
    unit: Literal["x", "B"]
    measured: float | None
    #: Messages were lost, or the broker died: no number, but an answer.
    failed: bool = False

    @property
    def verdict(self) -> str:
        """``met``, ``not met`` or ``not measured``."""
        if self.failed:
            return "not met"
        if self.measured is None:
            return "not measured"
        return "met" if (self.measured >= self.limit if self.at_least else self.measured <= self.limit) else "not met"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One sentence of the requirements, with the row that decides about it."""

    text: str
    limit: float
    workload: str
    #: The worst of these counts.
    metrics: tuple[str, ...]
    at_least: bool = False
    #: Compared with the baseline's number, or taken as it is.
    relative: bool = True
    unit: Literal["x", "B"] = "x"

    def judge(self, numbers: Numbers) -> Verdict:
        """Look the number up and hold it against the limit."""
        if self.relative:
            values = [numbers.ratio(self.workload, metric, SUBJECT, BASELINE) for metric in self.metrics]
        else:
            values = [numbers.value(self.workload, SUBJECT, metric) for metric in self.metrics]
        found = [value for value in values if value is not None]
        worst = min(found, default=None) if self.at_least else max(found, default=None)
        failed = numbers.failed(self.workload, SUBJECT)
        return Verdict(self.text, self.limit, self.at_least, self.unit, worst, failed)


_SHAPES = (("1:1", "1to1"), ("fan-in", "fanin"), ("fan-out", "fanout"))
#: The same targets where no two consecutive messages share a topic, so that nothing can be handled by the run.
_ALL_SHAPES = _SHAPES + tuple((f"{title}, topics change", f"{name}-topics") for title, name in _SHAPES)
_PACED = (
    *((name, 1.15) for name in ("200x1", "200x50", "1000x1", "1000x10")),
    *((name, 1.25) for name in ("1000x1-first", "200x50-tls", "1000x10-tls")),
)
_KILOBYTES = (1, 4, 16, 64, 256)
#: Times mosquitto's throughput: where no two messages in a row share a topic, a run gives nothing away.
_TIMES = {"1to1-topics": 5.0, "fanin-topics": 4.0}


def _throughput(qos: int, title: str, name: str, times: float) -> Target:
    return Target(
        text=f"QoS {qos} {title}: throughput, times mosquitto's",
        limit=times,
        workload=f"qos{qos}-{name}",
        metrics=("rate",),
        at_least=True,
    )


def _cpu(text: str, workload: str, limit: float) -> Target:
    return Target(text=f"{text}, times mosquitto's", limit=limit, workload=workload, metrics=("cpu_us_delivered",))


def _memory(text: str, workload: str, limit: float) -> Target:
    return Target(text=text, limit=limit, workload=workload, metrics=("bytes_connection",), relative=False, unit="B")


TARGETS = (
    *(_throughput(0, title, name, _TIMES.get(name, 3.0)) for title, name in _ALL_SHAPES),
    *(_cpu(f"QoS 0 {title}: CPU per delivered message", f"qos0-{name}", 1 / 3) for title, name in _ALL_SHAPES),
    *(_throughput(1, title, name, 2.0) for title, name in _SHAPES),
    *(
        target
        for size in _KILOBYTES
        for title, name in (("1:1", f"1to1-{size}kB"), ("fan-out", f"fanout-{size}kB"))
        for target in (
            _throughput(0, f"{title}, {size} kB", name, 1.0),
            _cpu(f"QoS 0 {title}, {size} kB: CPU per delivered message", f"qos0-{name}", 1.05),
        )
    ),
    *(
        Target(
            text=f"QoS 1 {title}, durable: throughput, times that of mosquitto with persistence",
            limit=2.0,
            workload=f"durable-{name}",
            metrics=("rate",),
            at_least=True,
        )
        for title, name in _SHAPES
    ),
    Target(text="latency p50, times mosquitto's", limit=1.1, workload="latency", metrics=("p50_us",)),
    Target(
        text="first message of a topic: CPU, times mosquitto's", limit=1.25, workload="first", metrics=("cpu_us_first",)
    ),
    *(_cpu(f"paced {name}: CPU", f"paced-{name}", limit) for name, limit in _PACED),
    Target(
        text="connect, subscribe and disconnect: visits per second, times mosquitto's",
        limit=1.0,
        workload="visits",
        metrics=("rate",),
        at_least=True,
    ),
    _memory("memory of an idle connection", "idle", 20_000),
    _memory("memory of an idle TLS connection", "idle-tls", 45_000),
    Target(
        text="PUBLISH beside 100k filters that do not match : beside none",
        limit=1.2,
        workload="filters",
        metrics=("ratio_one_topic", "ratio_many_topics"),
        relative=False,
    ),
)


def judge(numbers: Numbers) -> list[Verdict]:
    """Every target with its verdict."""
    return [target.judge(numbers) for target in TARGETS]
