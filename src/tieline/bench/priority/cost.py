"""Cost: what priorities take from the fast path while nothing is congested.

The same broker twice, with and without classes, both running; they take turns repetition by repetition, and what is
reported is the median of the ratios of neighbours, so that a machine that becomes slower is slower for both.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

from tieline.bench.brokers import Tieline, topic_class
from tieline.bench.load.job import Endpoint, Generator, Job, Metrics
from tieline.bench.load.latency import PacedClients
from tieline.bench.load.saturate import Saturate, Topics
from tieline.bench.peer import Instance

#: What the rows are called.
LACKING, HAVING = "without classes", "with classes"
#: The fast path keeps at least so much of its throughput.
KEPT = 0.9
#: Rules of the kind an operator writes; the topics of the workloads match the first, the middle and the last of them.
CLASSES = "".join(
    topic_class(name, filter, level)
    for name, filter, level in (
        ("alarms", "one/to/#", 2),
        ("trips", "site/+/breaker/+/trip", 3),
        ("commands", "site/+/command/#", 2),
        ("measurements", "turn/#", 1),
        ("waveforms", "site/+/waveform/#", 0),
        ("logs", "log/#", 0),
        ("field", "fan/in/+", 1),
        ("clients", "paced/+", 1),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostCase:
    """A workload, and which of its numbers says what the work cost."""

    name: str
    title: str
    job: Callable[[float], Job]
    is_saturated: bool = True


def _saturated(publishers: int, filters: tuple[str, ...], topics: Topics) -> Callable[[float], Job]:
    def job(seconds: float) -> Job:
        return Saturate(publishers=publishers, filters=filters, topics=topics, seconds=seconds)

    return job


def _paced(seconds: float) -> Job:
    return PacedClients(clients=200, per_second=20, seconds=2 * seconds)


CASES = (
    CostCase(name="cost-1to1", title="1:1", job=_saturated(1, ("one/to/one",), Topics(pattern="one/to/one"))),
    CostCase(
        name="cost-topics",
        title="1:1, topics change (1,000)",
        job=_saturated(1, ("turn/#",), Topics(pattern="turn/{i:04d}", each=1_000)),
    ),
    CostCase(
        name="cost-fanin", title="fan-in 100:1", job=_saturated(100, ("fan/in/#",), Topics(pattern="fan/in/{p:03d}"))
    ),
    CostCase(name="cost-paced", title="200 clients x 20 msg/s", job=_paced, is_saturated=False),
)


class Pair:
    """The two brokers, started when first needed, and their load generator."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._generator = Generator()
        self._brokers: tuple[Endpoint, Endpoint] | None = None

    def __enter__(self) -> Self:
        self._stack.enter_context(self._generator)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def measure(self, case: CostCase, *, seconds: float, repetitions: int) -> tuple[list[Metrics], list[Metrics]]:
        """The repetitions without and with classes, taking turns; who goes first alternates too."""
        if self._brokers is None:
            self._brokers = self._start(""), self._start(CLASSES)
        found: tuple[list[Metrics], list[Metrics]] = ([], [])
        for repetition in range(repetitions):
            for which in (0, 1) if repetition % 2 else (1, 0):
                found[which].append(self._generator.run(case.job(seconds), self._brokers[which]))
        return found

    def _start(self, configuration: str) -> Endpoint:
        return self._stack.enter_context(Instance(Tieline(configuration)))
