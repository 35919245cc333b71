"""What the broker is to reach, and whether it did: computed from the rows, never stated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from tieline.bench.peers import BASELINE, SUBJECT


class Numbers(Protocol):
    """Where targets get their numbers from."""

    def value(self, workload: str, peer: str, metric: str) -> float | None:
        """One measured number."""

    def ratio(self, workload: str, metric: str, peer: str, baseline: str) -> float | None:
        """One measured ratio."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One target with what was measured for it."""

    target: str
    limit: float
    at_least: bool
    unit: Literal["x", "B"]
    measured: float | None

    @property
    def verdict(self) -> str:
        """``met``, ``not met`` or ``not measured``."""
        if self.measured is None:
            return "not measured"
        return "met" if (self.measured >= self.limit if self.at_least else self.measured <= self.limit) else "not met"


@dataclass(frozen=True, slots=True)
class _Target:
    text: str
    limit: float
    measure: Callable[[Numbers], float | None]
    at_least: bool = False
    unit: Literal["x", "B"] = "x"


def _against_baseline(workload: str, metric: str) -> Callable[[Numbers], float | None]:
    return lambda numbers: numbers.ratio(workload, metric, SUBJECT, BASELINE)


def _own(workload: str, *metrics: str) -> Callable[[Numbers], float | None]:
    def worst(numbers: Numbers) -> float | None:
        found = [value for name in metrics if (value := numbers.value(workload, SUBJECT, name)) is not None]
        return max(found, default=None)

    return worst


_SHAPES = (("1:1", "1to1"), ("fan-in", "fanin"), ("fan-out", "fanout"))
#: The same targets where no two consecutive messages share a topic, so that nothing can be handled by the run.
_ALL_SHAPES = _SHAPES + tuple((f"{title}, topics change", f"{name}-topics") for title, name in _SHAPES)
_PACED = ("200x1", "200x50", "1000x1", "1000x10", "200x50-tls", "1000x10-tls")

TARGETS = (
    *(
        _Target(f"QoS 0 {title}: throughput, times mosquitto's", 3.0, _against_baseline(f"qos0-{name}", "rate"), True)
        for title, name in _ALL_SHAPES
    ),
    *(
        _Target(
            f"QoS 0 {title}: CPU per delivered message, times mosquitto's",
            1 / 3,
            _against_baseline(f"qos0-{name}", "cpu_us_delivered"),
        )
        for title, name in _ALL_SHAPES
    ),
    *(
        _Target(f"QoS 1 {title}: throughput, times mosquitto's", 2.0, _against_baseline(f"qos1-{name}", "rate"), True)
        for title, name in _SHAPES
    ),
    _Target("latency p50, times mosquitto's", 1.2, _against_baseline("latency", "p50_us")),
    *(
        _Target(f"paced {name}: CPU, times mosquitto's", 1.5, _against_baseline(f"paced-{name}", "cpu_us_delivered"))
        for name in _PACED
    ),
    _Target("memory of an idle connection", 20_000, _own("idle", "bytes_connection"), unit="B"),
    _Target("memory of an idle TLS connection", 45_000, _own("idle-tls", "bytes_connection"), unit="B"),
    _Target(
        "PUBLISH beside 100k filters that do not match : beside none",
        1.2,
        _own("filters", "ratio_one_topic", "ratio_many_topics"),
    ),
)


def judge(numbers: Numbers) -> list[Verdict]:
    """Every target with its verdict."""
    return [
        Verdict(target.text, target.limit, target.at_least, target.unit, target.measure(numbers)) for target in TARGETS
    ]
