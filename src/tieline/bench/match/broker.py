"""Brokers with content subscriptions beside one with plain topics: the same events, subscribers and deliveries.

All brokers are loaded first, at the same time; then, while nothing changes, they take turns.  Every turn of a broker
with conditions has a turn of the plain one beside it, and what is reported is the ratio of neighbours.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tieline.bench.load.clients import clients, subscribe
from tieline.bench.load.job import Endpoint, Failure, Metrics, Stalled
from tieline.bench.load.packets import Stream
from tieline.bench.load.saturate import Saturate, Topics
from tieline.bench.match.deliveries import CountedFlow, compare_round, lone_p50_us, rotated
from tieline.bench.match.shapes import Shape
from tieline.bench.measure import CostMeter, cpu_ns, family, memory_bytes
from tieline.match.index.adaptive import SMALL_TO

#: What the rows are called.
PLAIN, WITH_NUMBA, WITHOUT_NUMBA = "plain topics", "conditions, numba", "conditions, numpy"
PUBLISHERS: Final = 4
_WARM_UP_S: Final = 0.2
#: A broker that takes less of a core than this over some looks has nothing left to do in the background.
_IDLE_CORES, _LOOK_S, _LOOKS = 0.05, 0.1, 4
_SETTLE_S: Final = 120.0
#: Flows of plain topics beside the conditions, which match none of them.
_BESIDE = {"one": Topics(pattern="beside/one"), "many": Topics(pattern="beside/{i:04d}", each=1_000)}
#: Numbers of a broker with conditions against the same of the plain one.
_RATIOS = {
    "rate_ratio": "rate",
    "cpu_ratio": "cpu_us_delivered",
    "lone_ratio": "lone_p50_us",
    "beside_one": "beside_one_rate",
    "beside_many": "beside_many_rate",
}
_LONE: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """One shape on a broker with plain topics and on brokers with conditions."""

    shape: Shape
    #: Brokers that get the conditions, by the name of their rows.
    with_conditions: tuple[tuple[str, Endpoint], ...]
    seconds: float
    repetitions: int
    beside_s: float

    @property
    def patience_s(self) -> float:
        """Loading the subscriptions takes most of the time."""
        turns = (1 + 2 * len(self.with_conditions)) * self.repetitions
        return 240.0 + 8 * turns * (self.seconds + self.beside_s)

    def run(self, at: Endpoint) -> Metrics:
        """Load, compare deliveries, take turns; numbers are named ``row/repetition/metric``."""
        with contextlib.ExitStack() as stack:
            brokers = [stack.enter_context(connected(PLAIN, at, self.shape.clients))]
            brokers += [
                stack.enter_context(connected(name, where, self.shape.clients)) for name, where in self.with_conditions
            ]
            with ThreadPoolExecutor(len(brokers)) as threads:  # a thread for each mostly waits for its broker
                for loading in [threads.submit(broker.load, self.shape) for broker in brokers]:
                    loading.result()
            for broker in brokers:
                broker.compare(self.shape)
                stack.enter_context(contextlib.closing(broker.flow))
                broker.flow.spell(_WARM_UP_S)
            for broker in brokers[1:]:
                # an index that is small needs neither numpy nor numba
                is_large = self.shape.conditions_each > SMALL_TO
                check_numba(broker.at.pid, is_expected=is_large and broker.name == WITH_NUMBA)
            found: Metrics = {}
            for repetition in range(self.repetitions):
                self._turn(brokers, found, repetition)
            return found

    def _turn(self, brokers: Sequence[Connected], found: Metrics, repetition: int) -> None:
        """One repetition; who begins alternates, and ratios are taken within it."""
        turns = list(brokers) if repetition % 2 else list(reversed(brokers))
        metrics = {broker.name: broker.spell(self.seconds) for broker in turns}
        for name, topics in _BESIDE.items():
            for broker in turns:
                metrics[broker.name][f"beside_{name}_rate"] = _beside(broker.at, topics, self.beside_s)
        plain = metrics[PLAIN]
        for broker in brokers[1:]:
            mine = metrics[broker.name]
            for ratio, metric in _RATIOS.items():
                mine[ratio] = mine[metric] / plain[metric]
        for name, numbers in metrics.items():
            found.update({f"{name}/{repetition}/{metric}": value for metric, value in numbers.items()})


def unpacked(found: Metrics) -> dict[str, list[Metrics]]:
    """The numbers of a comparison as repetitions, by the name of the row."""
    rows: dict[str, list[Metrics]] = {}
    for key, value in found.items():
        name, repetition, metric = key.split("/")
        repetitions = rows.setdefault(name, [])
        while len(repetitions) <= int(repetition):
            repetitions.append({})
        repetitions[int(repetition)][metric] = value
    return rows


def _beside(at: Endpoint, topics: Topics, seconds: float) -> float:
    """Throughput of a plain flow from one client to one other."""
    return Saturate(filters=("beside/+",), topics=topics, seconds=seconds).run(at)["rate"]


@contextlib.contextmanager
def connected(name: str, at: Endpoint, count: int) -> Iterator[Connected]:
    """A broker with its clients, connected."""
    receivers = [f"holder{number}" for number in range(count)]
    senders = [f"meter{number}" for number in range(PUBLISHERS)]
    with clients(at, receivers) as subscribers, clients(at, senders) as publishers:
        yield Connected(name, at, subscribers, publishers)


class Connected:
    """One broker, its subscribers and its publishers."""

    def __init__(
        self, name: str, at: Endpoint, subscribers: list[socket.socket], publishers: list[socket.socket]
    ) -> None:
        self.name = name
        self.at = at
        self._subscribers = subscribers
        self._publishers = publishers
        self._family = family(at.pid)
        self._stream: Stream | None = None
        self._owners: Sequence[int] = ()
        self._flow: CountedFlow | None = None
        #: What loading took, and what was compared: the same in every repetition.
        self._facts: Metrics = {}

    @property
    def flow(self) -> CountedFlow:
        assert self._flow is not None, "deliveries are compared first"
        return self._flow

    def load(self, shape: Shape) -> None:
        """Subscribe to everything, and let the broker put its indexes in order."""
        everybodys = shape.plain_filters() if self.name == PLAIN else shape.content_filters()
        before = memory_bytes(self._family)
        began = time.perf_counter()
        for sock, filters in zip(self._subscribers, everybodys, strict=True):
            subscribe(sock, filters)
        count = sum(map(len, everybodys))
        self._facts["subscriptions"] = count
        self._facts["load_s"] = time.perf_counter() - began
        self._settle()
        self._facts["bytes_subscription"] = (memory_bytes(self._family) - before) / count

    def _settle(self) -> None:
        """Wait until the broker does nothing, not even in the background."""
        latest = time.perf_counter() + _SETTLE_S
        quiet = 0
        while quiet < _LOOKS:
            before = cpu_ns(self._family)
            time.sleep(_LOOK_S)
            quiet = quiet + 1 if cpu_ns(self._family) - before < _IDLE_CORES * _LOOK_S * 1e9 else 0
            if time.perf_counter() > latest:
                raise Stalled(f"the broker was still busy {_SETTLE_S:.0f} s after the last subscription")

    def compare(self, shape: Shape) -> None:
        """Every event once: does it reach whom it is to reach?"""
        stream = shape.plain_stream() if self.name == PLAIN else shape.content_stream()
        owners = shape.owners()
        self._stream, self._owners = stream, owners
        self._facts["compared"] = compare_round(self._publishers[0], self._subscribers, stream, owners)
        parts = [rotated(stream, owners, number * stream.count // PUBLISHERS) for number in range(PUBLISHERS)]
        self._flow = CountedFlow(
            publishers=[(sock, part) for sock, (part, _) in zip(self._publishers, parts, strict=True)],
            owners=[mine for _, mine in parts],
            subscribers=self._subscribers,
        )

    def spell(self, seconds: float) -> Metrics:
        """As much as the broker takes for a while, and then one message after the other."""
        assert self._stream is not None, "deliveries are compared first"
        meter = CostMeter(self.at.pid)
        volume = self.flow.spell(seconds)
        reading = meter.read()
        return {
            "rate": volume.delivered / reading.wall_s,
            "cpu_us_delivered": reading.broker_s * 1e6 / volume.delivered,
            "delivered": volume.delivered,
            "counted": self.flow.count(),
            "lone_p50_us": lone_p50_us(self._publishers[0], self._subscribers, self._stream, self._owners, _LONE),
            **reading.shares(),
            **self._facts,
        }


def check_numba(pid: int, *, is_expected: bool) -> None:
    """See whether a running broker has loaded numba's compiler, and fail if it is not as intended."""
    try:
        is_loaded = "llvmlite" in Path(f"/proc/{pid}/maps").read_text()
    except OSError as error:
        raise Failure(f"nothing is known about the broker's libraries: {error}") from error
    if is_loaded != is_expected:
        raise Failure(f"the broker {'has' if is_loaded else 'has not'} loaded numba; its rows would be mislabelled")
